"""What is free now: changed by taking and releasing pods, with slot counts that keep up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kant_opt.schema import Allocation, Flag, Hold
from kant_opt.units import format_bytes
from kant_opt.view.cluster import NOT_COUNTED, Cluster, Shape
from kant_opt.view.tree import Ints, Mask

GpuIndices = tuple[int, ...]
_MANY = 1 << 32  # slots of a node that limits nothing, and as much CPU as matters


class Free:
    """Free room of every node, after the running jobs' holds and all pods taken since.

    `units` (N, G) free parts of each GPU (see Cluster.unit), `whole` (N,) wholly free GPUs, `spare` (N,) free parts in
    all, `cpu`, `memory`, `pods` (N,). Never below 0: where more is used than there is, nothing is free and `flags`
    says so. `pods_of[job]` counts pods per node index, running and placed.
    """

    def __init__(self, cluster: Cluster, *, empty: bool = False) -> None:
        self.cluster = cluster
        self.units = cluster.gpu_units.copy()
        self.cpu, self.memory, self.pods = cluster.cpu.copy(), cluster.memory.copy(), cluster.pods.copy()
        self.capacity = cluster.gpu_units.sum(axis=1)
        self.flags: list[Flag] = []
        self.pods_of: dict[str, dict[int, int]] = defaultdict(dict)
        self._slots: dict[tuple[Shape, int], _Slots] = {}
        self._touched: list[int] = []
        if not empty:
            self._hold(cluster.request.allocations)
        self.spare = self.units.sum(axis=1)
        self.whole = (self.units == cluster.unit[:, None]).sum(axis=1, dtype=np.int64)

    # -- taking and giving back ------------------------------------------------------------------

    def take(
        self, node: int, shape: Shape, count: int, job: str, gpus: tuple[GpuIndices, ...] | None = None
    ) -> tuple[GpuIndices, ...]:
        """Take room for `count` pods on a node, on `gpus` if given, and return each pod's GPU indices.

        The room must be there. Without `gpus` a share goes on the fullest GPU that holds it, whole GPUs are taken
        from the tightest NVLink island that holds the pod, else from the lowest index.
        """
        if gpus is not None:
            taken = gpus
            share = self._share(node, shape) if shape.has_share else int(self.cluster.unit[node])
            for indices in gpus:
                self.units[node, list(indices)] -= share
        else:
            taken = tuple(self._take_gpus(node, shape) for _ in range(count)) if shape.uses_gpu else ()
        self._count(node, shape, count, job)
        return taken

    def take_whole(self, nodes: Ints, shape: Shape, counts: Ints, job: str) -> list[tuple[GpuIndices, ...]]:
        """Take all GPUs of many wholly free nodes at once, as `take` would one by one; return GPUs per node and pod."""
        cluster = self.cluster
        for array, each in ((self.cpu, shape.cpu), (self.memory, shape.memory), (self.pods, 1)):
            if each:
                array[nodes] -= np.where(array[nodes] < NOT_COUNTED, counts * each, 0)
        self.units[nodes] = 0
        self.spare[nodes] = 0
        self.whole[nodes] = 0
        held = self.pods_of[job]
        for node, count in zip(nodes.tolist(), counts.tolist(), strict=True):
            held[node] = held.get(node, 0) + count
        self._touched.extend(nodes.tolist())
        return [cluster.dealt(node, shape.gpus) for node in nodes.tolist()]

    def release(self, node: int, shape: Shape, count: int, job: str, gpus: tuple[GpuIndices, ...]) -> None:
        """Give back what `take` took."""
        share = self._share(node, shape) if shape.has_share else int(self.cluster.unit[node])
        for indices in gpus:
            self.units[node, list(indices)] += share
        self._count(node, shape, -count, job)

    def _count(self, node: int, shape: Shape, count: int, job: str) -> None:
        if self.cpu[node] < NOT_COUNTED:
            self.cpu[node] -= count * shape.cpu
        if self.memory[node] < NOT_COUNTED:
            self.memory[node] -= count * shape.memory
        if self.pods[node] < NOT_COUNTED:
            self.pods[node] -= count
        if shape.uses_gpu:
            row = self.units[node]
            self.spare[node] = row.sum()
            self.whole[node] = np.count_nonzero(row == self.cluster.unit[node])
        held = self.pods_of[job]
        held[node] = held.get(node, 0) + count
        if not held[node]:
            del held[node]
        self._touched.append(node)

    def _share(self, node: int, shape: Shape) -> int:
        if shape.milli:
            return shape.milli * int(self.cluster.unit[node]) // 1000
        return shape.mib * 1000

    def _take_gpus(self, node: int, shape: Shape) -> GpuIndices:
        row = self.units[node]
        if shape.has_share:
            share = self._share(node, shape)
            fits = np.flatnonzero(row >= share)
            best = int(fits[np.argmin(row[fits])])  # the fullest GPU that holds it
            row[best] -= share
            return (best,)
        free = np.flatnonzero(row == self.cluster.unit[node])
        chosen = tuple(int(i) for i in self._one_island(node, free, shape.gpus))
        row[list(chosen)] = 0
        return chosen

    def _one_island(self, node: int, free: Ints, gpus: int) -> Ints:
        """Return the GPUs to take: inside the tightest NVLink island that holds the pod, else the lowest indices."""
        details = self.cluster.nodes[node].gpu_details
        islands = {g.index: g.island for g in details if g.island is not None}
        if islands and gpus < len(free):
            groups: dict[int, list[int]] = defaultdict(list)
            for i in free.tolist():
                if i in islands:
                    groups[islands[i]].append(i)
            fitting = sorted((len(g), g) for g in groups.values() if len(g) >= gpus)
            if fitting:
                return np.array(fitting[0][1][:gpus])
        return free[:gpus]

    # -- what runs already -----------------------------------------------------------------------

    def _hold(self, allocations: tuple[Allocation, ...]) -> None:
        index = self.cluster.tree.index
        unnamed: list[tuple[int, Hold]] = []
        for alloc in allocations:
            held = self.pods_of[alloc.job]
            for hold in alloc.holds:
                node = index[hold.node]
                if hold.pods:
                    held[node] = held.get(node, 0) + hold.pods
                self._hold_counted(node, hold)
                if hold.gpu_indices:
                    self._hold_named(node, hold)
                elif hold.gpus:
                    unnamed.append((node, hold))
        for node, hold in unnamed:
            free = np.flatnonzero(self.units[node] == self.cluster.unit[node])[: hold.gpus]
            self.units[node, free] = 0
            if len(free) < hold.gpus:
                self.units[node] = 0
                self._over(node, f"{hold.gpus - len(free)} GPUs")
        np.maximum(self.units, 0, out=self.units)
        for array, text in ((self.cpu, _cpus), (self.memory, format_bytes), (self.pods, "{} pods".format)):
            for node in np.flatnonzero(array < 0).tolist():
                self._over(node, text(-int(array[node])))
            np.maximum(array, 0, out=array)

    def _hold_counted(self, node: int, hold: Hold) -> None:
        for array, amount in ((self.cpu, hold.cpu_milli), (self.memory, hold.memory_bytes), (self.pods, hold.pods)):
            if array[node] < NOT_COUNTED:
                array[node] -= amount

    def _hold_named(self, node: int, hold: Hold) -> None:
        unit = int(self.cluster.unit[node])
        share = unit
        if hold.gpu_milli is not None:
            share = hold.gpu_milli * unit // 1000
        elif hold.gpu_memory_mib is not None:
            share = hold.gpu_memory_mib * 1000
        for i in hold.gpu_indices:
            if i >= self.cluster.nodes[node].gpus:
                self._over(node, "1 GPU")
                continue
            if self.cluster.gpu_units[node, i] and self.units[node, i] < share:
                self._over(node, "1 GPU")
            self.units[node, i] = max(0, self.units[node, i] - share)

    def _over(self, node: int, what: str) -> None:
        name = self.cluster.tree.names[node]
        self.flags.append(Flag(subject=name, text=f"over-committed by {what}; running pods stay"))

    # -- slots -----------------------------------------------------------------------------------

    def slots(self, shape: Shape, eligible: Mask) -> Ints:
        """Return how many pods of `shape` fit on each eligible node now, (N,); do not change it.

        The first call for a shape costs one pass over the nodes, later ones only the nodes touched since.
        """
        key = (shape, id(eligible))
        found = self._slots.get(key)
        if found is None:
            found = self._slots[key] = _Slots(eligible, self._count_slots(shape, eligible, slice(None)))
        else:
            stale = self._touched[found.seen :]
            if stale:
                nodes = np.unique(np.array(stale, dtype=np.int64))
                found.counts[nodes] = self._count_slots(shape, eligible, nodes)
        found.seen = len(self._touched)
        return found.counts

    def _count_slots(self, shape: Shape, eligible: Mask, at: slice | Ints) -> Ints:
        limit = np.full(eligible[at].shape, _MANY, dtype=np.int64)
        if shape.gpus:
            limit = np.minimum(limit, self.whole[at] // shape.gpus)
        elif shape.milli:
            share = shape.milli * self.cluster.unit[at] // 1000
            limit = np.minimum(limit, (self.units[at] // share[:, None]).sum(axis=1))
        elif shape.mib:
            limit = np.minimum(limit, (self.units[at] // (1000 * shape.mib)).sum(axis=1))
        if shape.cpu:
            limit = np.minimum(limit, self.cpu[at] // shape.cpu)
        if shape.memory:
            limit = np.minimum(limit, self.memory[at] // shape.memory)
        limit = np.minimum(limit, self.pods[at])
        return np.where(eligible[at], limit, 0)

    # -- questions -------------------------------------------------------------------------------

    def is_used(self) -> Mask:
        """Return which nodes have any part of a healthy GPU in use, (N,)."""
        used: Mask = self.spare < self.capacity
        return used

    def is_broken(self) -> Mask:
        """Return which schedulable nodes are in use in part: 0 < used < healthy GPUs, (N,)."""
        broken: Mask = self.is_used() & (self.spare > 0) & self.cluster.schedulable
        return broken

    def stranded(self, shape: Shape, nodes: Ints) -> Ints:
        """Return GPU thousandths that one pod of `shape` more would strand on each of `nodes`, fewer than 0 if it frees
        some: GPUs are stranded where the node's free CPU is less than the jobs seen ask for along with them.

        0 where CPU is not counted or not asked for.
        """
        cluster = self.cluster
        if not cluster.asked_cpu:
            return np.zeros(len(nodes), dtype=np.int64)
        unit = cluster.unit[nodes]
        gpus = self.spare[nodes] * 1000 // unit
        taken = 1000 * shape.gpus or shape.milli or 1_000_000 * shape.mib // unit

        def more_than_cpu_serves(gpu_milli: Ints, cpu: Ints) -> Ints:
            beyond: Ints = np.maximum(
                0, gpu_milli - np.minimum(cpu, _MANY) * cluster.asked_gpu_milli // cluster.asked_cpu
            )
            return beyond

        cpu = self.cpu[nodes]
        change: Ints = more_than_cpu_serves(gpus - taken, cpu - shape.cpu) - more_than_cpu_serves(gpus, cpu)
        return change


def _cpus(milli: int) -> str:
    return f"{milli / 1000:g} {'CPU' if milli == 1000 else 'CPUs'}"


class _Slots:
    """Slot counts of one shape and how much of the log of touched nodes they have seen."""

    def __init__(self, eligible: Mask, counts: Ints) -> None:
        self.eligible, self.counts = eligible, counts  # the mask is kept so that its id stays its own
        self.seen = 0
