"""What is used and free on every node, GPU shares exact, computed once from holds and new pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kant_opt.errors import InputError
from kant_opt.schema import Request

if TYPE_CHECKING:
    from kant_opt.metrics.placed import NewPods

Integers = NDArray[np.int64]
UNLIMITED = 1 << 60
"""Free CPU, memory or pods of a node where they are not counted."""
UNIT_OF_UNKNOWN = 1000
"""`Usage.unit` where the memory of the GPUs is unknown."""


@dataclass(frozen=True)
class Usage:
    """Arrays (n_nodes,) in order of `request.nodes`; the three `part_` arrays have one entry per GPU used in part.

    A share is counted in units of 1/(1000 M) of a GPU with M MiB: t thousandths are t M units, m MiB are 1000 m.
    Where M is unknown it counts as 1, so that a share in MiB takes the whole GPU.
    Where whole GPUs taken without an index exceed the untouched ones, the node is over-committed: nothing is free.
    """

    schedulable: NDArray[np.bool_]
    healthy: Integers
    """Healthy GPUs."""
    untouched: Integers
    """Healthy GPUs nobody uses any part of."""
    unit: Integers
    """Units of one whole GPU, 1000 M."""
    part_node: Integers
    """Node of each healthy GPU that is used, but not wholly; sorted."""
    part_free: Integers
    """Units that are free of it."""
    cpu_free: Integers
    """Thousandths of a CPU; UNLIMITED where not counted, like the next two."""
    memory_free: Integers
    """Bytes."""
    pods_free: Integers

    @property
    def counted(self) -> NDArray[np.bool_]:
        """The nodes that measures look at: schedulable with at least one healthy GPU."""
        return self.schedulable & (self.healthy > 0)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Nodes where any part of a healthy GPU is used."""
        return self.untouched < self.healthy

    @property
    def broken(self) -> NDArray[np.bool_]:
        """Counted nodes where 0 < used < healthy GPUs, exactly."""
        something_free = self.untouched > 0
        something_free[self.part_node] = True
        return self.counted & self.used & something_free

    @property
    def free_gpus(self) -> NDArray[np.float64]:
        """Free GPUs of every node, parts included."""
        free = self.untouched.astype(np.float64)
        np.add.at(free, self.part_node, self.part_free / self.unit[self.part_node])
        return free


class _Tally:
    """GPUs taken so far: named ones by (node, index) in units, unnamed whole ones by count."""

    def __init__(self, request: Request) -> None:
        self.nodes = request.nodes
        self.unit = [1000 * node.gpu_memory_mib if node.gpu_memory_mib else UNIT_OF_UNKNOWN for node in request.nodes]
        self.named: dict[tuple[int, int], int] = {}
        self.unnamed = [0] * len(request.nodes)

    def take_whole(self, node: int, indices: Iterable[int]) -> None:
        for index in indices:
            self._take(node, index, self.unit[node])

    def take_share(self, node: int, index: int, milli: int | None, mib: int | None) -> None:
        self._take(node, index, 1000 * (mib or 0) if milli is None else milli * self.unit[node] // 1000)

    def _take(self, node: int, index: int, units: int) -> None:
        self.named[node, index] = self.named.get((node, index), 0) + units

    def settle(self, healthy: list[int]) -> tuple[list[int], list[tuple[int, int]]]:
        """Return untouched GPUs per node and (node, free units) of the GPUs used in part."""
        bad = {(n, g.index) for n, node in enumerate(self.nodes) for g in node.gpu_details if not g.healthy}
        untouched = [have - unnamed for have, unnamed in zip(healthy, self.unnamed, strict=True)]
        parts = []
        for (n, index), units in sorted(self.named.items()):
            if index >= self.nodes[n].gpus or (n, index) in bad:
                continue  # what runs on a GPU that is gone or ill takes nothing of the healthy ones
            untouched[n] -= 1
            if units < self.unit[n]:
                parts.append((n, self.unit[n] - units))
        return [max(0, u) for u in untouched], [(n, free) for n, free in parts if untouched[n] >= 0]


def usage_of(request: Request, new_pods: Iterable[NewPods], node_index: Mapping[str, int]) -> Usage:
    """Return the use of every node by the holds of `request` and the new pods.

    Raises InputError where a new pod with a share does not name one GPU, or one with whole GPUs names a part of them.
    Linear in nodes, holds and pods.
    """
    nodes = request.nodes
    tally = _Tally(request)
    cpu = [UNLIMITED if node.cpu_milli is None else node.cpu_milli for node in nodes]
    memory = [UNLIMITED if node.memory_bytes is None else node.memory_bytes for node in nodes]
    pods = [UNLIMITED if node.max_pods is None else node.max_pods for node in nodes]
    for allocation in request.allocations:
        for hold in allocation.holds:
            n = node_index[hold.node]
            cpu[n] -= hold.cpu_milli
            memory[n] -= hold.memory_bytes
            pods[n] -= hold.pods
            if hold.gpu_milli is not None or hold.gpu_memory_mib is not None:
                tally.take_share(n, hold.gpu_indices[0], hold.gpu_milli, hold.gpu_memory_mib)
            elif hold.gpu_indices:
                tally.take_whole(n, hold.gpu_indices)
            else:
                tally.unnamed[n] += hold.gpus
    for new in new_pods:
        cpu[new.node] -= new.podset.cpu_milli * new.entry.count
        memory[new.node] -= new.podset.memory_bytes * new.entry.count
        pods[new.node] -= new.entry.count
        _take_new(tally, new)
    healthy = [node.healthy_gpus for node in nodes]
    untouched, parts = tally.settle(healthy)
    return Usage(
        schedulable=np.array([node.schedulable for node in nodes], dtype=np.bool_),
        healthy=_locked(healthy),
        untouched=_locked(untouched),
        unit=_locked(tally.unit),
        part_node=_locked([n for n, _ in parts]),
        part_free=_locked([free for _, free in parts]),
        cpu_free=_locked(cpu),
        memory_free=_locked(memory),
        pods_free=_locked(pods),
    )


def _take_new(tally: _Tally, new: NewPods) -> None:
    podset, entry = new.podset, new.entry
    if not podset.has_share and not any(entry.gpus):
        tally.unnamed[new.node] += podset.gpus * entry.count
        return
    wanted = 1 if podset.has_share else podset.gpus
    for pod in entry.gpus or ((),) * entry.count:
        if podset.has_share and len(pod) == 1:
            tally.take_share(new.node, pod[0], podset.gpu_milli, podset.gpu_memory_mib)
        elif not podset.has_share and len(pod) in (0, wanted):
            tally.take_whole(new.node, pod)
            tally.unnamed[new.node] += wanted - len(pod)
        else:
            raise InputError(
                f"job {new.job.name!r}: a pod of {podset.name!r} on {entry.node!r} names {len(pod)} GPUs of {wanted}",
                way_out="a pod with a share names its one GPU, a pod with whole GPUs all of them or none",
            )


def _locked(values: list[int]) -> Integers:
    array = np.array(values, dtype=np.int64)
    array.flags.writeable = False
    return array
