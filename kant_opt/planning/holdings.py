"""Who holds what of which node when, as one table: the window of any length over it is a few array operations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kant_opt.view import NOT_COUNTED, Cluster, Ints, Mask


class Row(NamedTuple):
    """What one claim holds of one node: units per GPU (see Cluster.unit), thousandths of CPUs, bytes, pods."""

    node: int
    units: dict[int, int]
    cpu: int
    memory: int
    pods: int


class Peak(NamedTuple):
    """The most in use at one instant of a window: `units` (N, G), `cpu`, `memory`, `pods` (N,)."""

    units: Ints
    cpu: Ints
    memory: Ints
    pods: Ints


class Holdings:
    """Rows (node, [start, end), use) in arrays that grow; columns of `use` are G GPUs, CPU, memory and pods.

    Adding and dropping a claim costs its rows; a question one pass over all rows and one over the nodes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.num_nodes, self.num_gpus = cluster.gpu_units.shape
        self.counted = any(bool((a < NOT_COUNTED).any()) for a in (cluster.cpu, cluster.memory, cluster.pods))
        """Some node counts CPU, memory or pods."""
        self._healthy = (cluster.gpu_units > 0).sum(axis=1, dtype=np.int64)
        self._size = 0
        self._dead = 0
        self._start: Ints = np.zeros(64, dtype=np.int64)
        self._end: Ints = np.zeros(64, dtype=np.int64)
        self._node: Ints = np.zeros(64, dtype=np.int64)
        self._whole: Mask = np.zeros(64, dtype=bool)
        self._shared: Mask = np.zeros(64, dtype=bool)
        self._use: Ints = np.zeros((64, self.num_gpus + 3), dtype=np.int64)
        self._rows_of: dict[int, slice] = {}

    # -- changes -----------------------------------------------------------------------------------

    def add(self, key: int, start: int, end: int, rows: list[Row]) -> None:
        """Add the rows of a claim under a key of its own."""
        first, last = self._size, self._size + len(rows)
        while last > len(self._start):
            self._grow()
        at = slice(first, last)
        self._start[at], self._end[at] = start, end
        self._use[at] = 0
        for i, row in enumerate(rows, start=first):
            self._node[i] = row.node
            use = self._use[i]
            for gpu, units in row.units.items():
                use[gpu] += units
            use[self.num_gpus :] = row.cpu, row.memory, row.pods
        used, unit = self._use[at, : self.num_gpus], self.cluster.unit[self._node[at], None]
        there = self.cluster.gpu_units[self._node[at]] > 0
        self._whole[at] = ((used > 0) | ~there).all(axis=1)
        self._shared[at] = ((used > 0) & (used < unit)).any(axis=1)
        self._size = last
        self._rows_of[key] = at

    def drop(self, key: int) -> None:
        """Remove the rows of a claim."""
        at = self._rows_of.pop(key)
        self._end[at] = self._start[at]
        self._dead += at.stop - at.start
        if self._dead > 256 and 2 * self._dead > self._size:
            self._compact()

    def end_at(self, key: int, end: int) -> None:
        """Let the rows of a claim end at `end`."""
        self._end[self._rows_of[key]] = end

    def _grow(self) -> None:
        for name in ("_start", "_end", "_node", "_whole", "_shared", "_use"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros_like(old)]))

    def _compact(self) -> None:
        kept = [np.arange(at.start, at.stop) for at in self._rows_of.values()]
        rows = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
        for array in (self._start, self._end, self._node, self._whole, self._shared, self._use):
            array[: len(rows)] = array[rows]
        at = 0
        for key, old in self._rows_of.items():
            self._rows_of[key] = slice(at, at + old.stop - old.start)
            at += old.stop - old.start
        self._size, self._dead = at, 0

    # -- questions ---------------------------------------------------------------------------------

    def free_gpus(self, start: int, end: int) -> Ints:
        """Return how many GPUs of each node nobody uses at any instant of [start, end), (N,)."""
        rows = self._within(start, end)
        whole = self._whole[rows]
        free: Ints = self._healthy.copy()
        part = rows[~whole]
        if len(part):
            nodes, at = np.unique(self._node[part], return_inverse=True)
            busy = self.cluster.gpu_units[nodes] == 0
            row, gpu = np.nonzero(self._use[part, : self.num_gpus])
            busy[at[row], gpu] = True
            free[nodes] = self.num_gpus - busy.sum(axis=1)
        free[self._node[rows[whole]]] = 0
        return free

    def _busy(self, rows: Ints) -> Mask:
        """Return which GPUs the rows use, (N, G)."""
        found = np.zeros((self.num_nodes, self.num_gpus), dtype=bool)
        whole = self._whole[rows]
        found[self._node[rows[whole]]] = True
        part = rows[~whole]
        if len(part):
            at, gpu = np.nonzero(self._use[part, : self.num_gpus])
            found[self._node[part[at]], gpu] = True
        return found

    def peak(self, start: int, end: int) -> Peak:
        """Return the most that is in use at one instant of [start, end), which is not empty."""
        rows = self._within(start, end)
        units = np.where(self._busy(rows), self.cluster.unit[:, None], 0)
        counted = np.zeros((self.num_nodes, self.num_gpus + 3), dtype=np.int64)
        shares = bool(self._shared[rows].any())
        if len(rows) and (shares or self.counted):
            self._add_up(rows, counted)
            late = self._not_at_once(rows)
            if late.any():
                inexact = rows[late[self._node[rows]]]
                counted[late] = 0
                self._sweep(inexact, start, counted)
        if shares:
            shared = np.zeros(self.num_nodes, dtype=bool)
            shared[self._node[rows[self._shared[rows]]]] = True
            units[shared] = counted[shared, : self.num_gpus]
        cpu, memory, pods = counted[:, self.num_gpus :].T
        return Peak(units, cpu, memory, pods)

    def next_use(self, start: int, units: dict[int, set[int]]) -> int | None:
        """Return when somebody next comes, after `start`, to one of the GPUs given by node; None for never.

        A node without GPUs named counts as used by whoever comes.
        """
        size = self._size
        later = np.flatnonzero((self._start[:size] > start) & (self._end[:size] > self._start[:size]))
        times = [
            int(self._start[row])
            for row in later[np.isin(self._node[later], sorted(units))].tolist()
            if not (gpus := units[int(self._node[row])]) or any(self._use[row, gpu] for gpu in gpus)
        ]
        return min(times, default=None)

    def nodes_of(self, key: int) -> list[int]:
        """Return the nodes of a claim's rows."""
        nodes: list[int] = self._node[self._rows_of[key]].tolist()
        return nodes

    def _within(self, start: int, end: int) -> Ints:
        size = self._size
        begins, ends = self._start[:size], self._end[:size]
        return np.flatnonzero((begins < end) & (ends > start) & (begins < ends))  # a window may be empty

    def _add_up(self, rows: Ints, into: Ints) -> None:
        """Add the use of rows per node: the peak, where all rows of the node hold at one same instant."""
        order = rows[np.argsort(self._node[rows], kind="stable")]
        nodes, first = np.unique(self._node[order], return_index=True)
        into[nodes] = np.add.reduceat(self._use[order], first, axis=0)

    def _not_at_once(self, rows: Ints) -> Mask:
        """Return the nodes whose rows do not all hold at some one instant, and where that matters, (N,)."""
        latest = np.full(self.num_nodes, np.iinfo(np.int64).min)
        np.maximum.at(latest, self._node[rows], self._start[rows])
        earliest = np.full(self.num_nodes, np.iinfo(np.int64).max)
        np.minimum.at(earliest, self._node[rows], self._end[rows])
        late: Mask = latest >= earliest
        return late

    def _sweep(self, rows: Ints, start: int, into: Ints) -> None:
        """Set the peak of each node of the rows, going through their starts and ends in time."""
        nodes = np.concatenate([self._node[rows]] * 2)
        times = np.concatenate([np.maximum(self._start[rows], start), self._end[rows]])
        ends = np.concatenate([np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)])
        change = np.concatenate([self._use[rows], -self._use[rows]])
        order = np.lexsort((~ends, times, nodes))  # ends before starts of the same instant
        nodes, running = nodes[order], np.cumsum(change[order], axis=0)
        there, first = np.unique(nodes, return_index=True)
        peaks = np.maximum.reduceat(running, first, axis=0)
        before = np.zeros_like(peaks)
        before[1:] = running[first[1:] - 1]  # all rows of a node come to nothing in the end: this is 0
        into[there] = peaks - before
