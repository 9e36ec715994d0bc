"""The least domains of a level that a gang can do with on the empty cluster, by counting."""

from __future__ import annotations

import numpy as np

from kant_opt.metrics.placed import Placed
from kant_opt.metrics.usage import UNLIMITED, Integers
from kant_opt.schema import Node, PodSet


class LeastDomains:
    """Counting bounds for the jobs of one placement; what it counts for one pod shape it keeps for the next job.

    The bound is the largest of these numbers, none of them above the true least: for each podset the fewest domains
    whose pod slots add up to its pods, and for the whole gang the fewest whose GPUs add up to its GPUs. Nodes are
    empty, schedulable and of an allowed pool; labels, taints and rules of the gang are ignored. With pods of one shape
    and no such rule it is exact.
    """

    def __init__(self, placed: Placed) -> None:
        self.placed = placed
        self._reach: dict[tuple[object, ...], Integers] = {}

    def of(self, job: str, level: str) -> int:
        """Return the bound for a placed job's pods, new and living: at least 1. All domains where they never fit."""
        return max([1, *(self._least(shape, pods, level) for shape, pods in self._demands(job))])

    def _demands(self, job: str) -> list[tuple[PodSet, int]]:
        counts = self.placed.pods_of[job]
        shapes = [(p, counts[p.name]) for p in self.placed.jobs[job].podsets if counts.get(p.name)]
        milli = sum(n * (p.gpu_milli or 1000 * p.gpus) for p, n in shapes)
        anywhere = any(not p.pools for p, _ in shapes)
        pools = () if anywhere else tuple(sorted({pool for p, _ in shapes for pool in p.pools}))
        return [*shapes, (PodSet(name="gpus", count=0, gpus=1, pools=pools), -(-milli // 1000))]

    def _least(self, shape: PodSet, pods: int, level: str) -> int:
        gpus = (shape.gpus, shape.gpu_milli, shape.gpu_memory_mib, shape.pools)
        key = (level, *gpus, shape.cpu_milli, shape.memory_bytes)
        if key not in self._reach:
            slots = np.array([_slots(node, shape) for node in self.placed.request.nodes], dtype=np.int64)
            self._reach[key] = np.cumsum(np.sort(self.placed.sum_per_domain(level, slots))[::-1])
        reach = self._reach[key]
        return min(len(reach), int(np.searchsorted(reach, pods)) + 1) if pods else 0


_ENOUGH = 1 << 30  # pods; sums over every node stay within 64 bits


def _slots(node: Node, shape: PodSet) -> int:
    """Return how many pods of `shape` the empty node takes."""
    if not node.schedulable or (shape.pools and set(node.pools).isdisjoint(shape.pools)):
        return 0
    limits = [_ENOUGH]
    if shape.gpus:
        limits.append(node.healthy_gpus // shape.gpus)
    elif shape.gpu_milli is not None:
        limits.append(node.healthy_gpus * (1000 // shape.gpu_milli))
    elif shape.gpu_memory_mib is not None:
        limits.append(node.healthy_gpus * ((node.gpu_memory_mib or 0) // shape.gpu_memory_mib))
    for have, need in ((node.cpu_milli, shape.cpu_milli), (node.memory_bytes, shape.memory_bytes), (node.max_pods, 1)):
        if need:
            limits.append((UNLIMITED if have is None else have) // need)
    return min(limits)
