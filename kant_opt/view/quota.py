"""How much of its quota each queue has left, as pods are placed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kant_opt.schema import Allocation, Hold, Quota
from kant_opt.view.cluster import Cluster
from kant_opt.view.gang import Part
from kant_opt.view.tree import Mask

_NO_LIMIT = 1 << 60


@dataclass
class _Cap:
    """One inequality: usage of `resource` in `pool` ("" = any) by these queues together <= cap."""

    queues: frozenset[str]
    resource: str
    pool: str
    cap: int
    usage: int = 0


class Quotas:
    """The rule `quota` as running sums; GPUs in thousandths. Without queues every question costs nothing."""

    def __init__(self, cluster: Cluster, running: Iterable[Allocation] | None = None) -> None:
        """Count what runs: the allocations of the request, or those given instead."""
        self.cluster = cluster
        self.caps = list(_caps(cluster))
        if self.caps:
            queue_of = {job.name: job.queue for job in cluster.request.jobs}
            for alloc in cluster.request.allocations if running is None else running:
                queue = alloc.queue or queue_of.get(alloc.job, "")
                for hold in alloc.holds:
                    node = cluster.tree.index[hold.node]
                    for resource, amount in self._held(hold, node).items():
                        self._add(queue, resource, cluster.first_pool[node], amount)

    def unused(self) -> Quotas:
        """Return the same caps with nothing running that counts towards them."""
        return Quotas(self.cluster, ())

    def __bool__(self) -> bool:
        return bool(self.caps)

    def is_exact(self, part: Part) -> bool:
        """Return whether "within quota" has one meaning for the part: not where its pods may be charged to several
        pools of which some have a quota of their own."""
        if all(not cap.pool for cap in self.caps if part.job.queue in cap.queues):
            return True
        pools = self._charged_pools(part)
        return len({pools[node] for node in np.flatnonzero(part.eligible).tolist()}) <= 1

    def pods_left(self, part: Part) -> int:
        """Return the most pods of `part` that some pool still allows."""
        if not any(part.job.queue in cap.queues for cap in self.caps):
            return _NO_LIMIT
        return max((self._left(part, pool) for pool in set(self._charged_pools(part))), default=0)

    def open_nodes(self, part: Part, count: int) -> Mask | None:
        """Return nodes in whose pool `count` pods stay within quota, (N,); None where that is all of them."""
        if not any(part.job.queue in cap.queues for cap in self.caps):
            return None
        pools = self._charged_pools(part)
        closed = {pool for pool in set(pools) if self._left(part, pool) < count}
        if not closed:
            return None
        return np.fromiter((pool not in closed for pool in pools), np.bool_, len(pools))

    def charge(self, part: Part, node: int, count: int) -> None:
        """Add (or with a negative count give back) pods on a node."""
        if self.caps:
            pool = self._charged_pool(part, node)
            for resource, amount in self._per_pod(part, node).items():
                self._add(part.job.queue, resource, pool, amount * count)

    def exceeded(self, pods: Iterable[tuple[Part, int]]) -> bool:
        """Return whether any cap is exceeded to whose usage one of `pods`, (part, node) and charged already, adds."""
        over = [cap for cap in self.caps if cap.usage > cap.cap]
        return any(
            part.job.queue in cap.queues
            and cap.pool in ("", self._charged_pool(part, node))
            and self._per_pod(part, node)[cap.resource]
            for part, node in (pods if over else ())
            for cap in over
        )

    def _add(self, queue: str, resource: str, pool: str, amount: int) -> None:
        for cap in self.caps:
            if queue in cap.queues and cap.resource == resource and cap.pool in ("", pool):
                cap.usage += amount

    def _left(self, part: Part, pool: str) -> int:
        left = _NO_LIMIT
        need = self._per_pod(part, None)
        for cap in self.caps:
            if part.job.queue in cap.queues and cap.pool in ("", pool) and need.get(cap.resource):
                left = min(left, max(0, cap.cap - cap.usage) // need[cap.resource])
        return left

    def _charged_pools(self, part: Part) -> list[str]:
        return [self._charged_pool(part, node) for node in range(len(self.cluster.nodes))]

    def _charged_pool(self, part: Part, node: int) -> str:
        own = self.cluster.nodes[node].pools
        return next((pool for pool in part.podset.pools if pool in own), own[0])

    def _per_pod(self, part: Part, node: int | None) -> dict[str, int]:
        shape = part.shape
        gpu = 1000 * shape.gpus or shape.milli
        if shape.mib:
            memory = int(self.cluster.unit[node]) // 1000 if node is not None else self._largest_memory()
            gpu = -(-1000 * shape.mib // memory)
        return {"gpu": gpu, "cpu_milli": shape.cpu, "memory_bytes": shape.memory}

    def _largest_memory(self) -> int:
        return int(self.cluster.unit.max(initial=1000)) // 1000

    def _held(self, hold: Hold, node: int) -> dict[str, int]:
        gpu = 1000 * hold.gpus or hold.gpu_milli or 0
        if hold.gpu_memory_mib is not None:
            gpu = -(-1000 * hold.gpu_memory_mib // (int(self.cluster.unit[node]) // 1000))
        return {"gpu": gpu, "cpu_milli": hold.cpu_milli, "memory_bytes": hold.memory_bytes}


def _caps(cluster: Cluster) -> list[_Cap]:
    queues = cluster.request.queues
    found: list[_Cap] = []
    shared: list[tuple[str, str, str, int]] = []
    for queue in queues:
        for quota in queue.quotas:
            cap = _own_cap(quota, borrows=bool(queue.cohort))
            if cap is not None:
                found.append(_Cap(frozenset({queue.name}), quota.resource, quota.pool, cap))
            if queue.cohort:
                scale = 1000 if quota.resource == "gpu" else 1
                shared.append((queue.cohort, quota.resource, quota.pool, quota.guaranteed * scale))
    for (cohort, resource, pool), rows in groupby(sorted(shared), key=lambda row: row[:3]):
        members = frozenset(queue.name for queue in queues if queue.cohort == cohort)
        found.append(_Cap(members, resource, pool, sum(row[3] for row in rows)))
    return found


def _own_cap(quota: Quota, *, borrows: bool) -> int | None:
    cap = quota.limit if borrows else quota.guaranteed
    return None if cap is None else cap * (1000 if quota.resource == "gpu" else 1)
