"""GAR, SOR and GFR over time, from who held what when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kant_opt.metrics.steps import Integers, Steps

NUM_BINS = 400
"""Points of a series."""
_BEFORE_ALL = -(1 << 40)
"""Seconds; the GPUs are there since then."""


@dataclass(frozen=True)
class Series:
    """A window in equal bins. All tuples are as long as `start_s`; each value is the exact mean over its bin."""

    start_s: tuple[int, ...]
    """Start of each bin, seconds."""
    end_s: int
    """End of the last one."""
    gar: tuple[float, ...]
    """GPU-seconds used / GPU-seconds there were, in the bin: the mean of GAR."""
    sor: tuple[float, ...]
    """GPU-seconds used / GPU-seconds there were, from the start of the window to the end of the bin."""
    gfr: tuple[float, ...] | None
    """Broken nodes / all nodes with GPUs; None where no nodes were looked at."""
    running_jobs: tuple[float, ...]
    waiting_jobs: tuple[float, ...]
    waiting_gpus: tuple[float, ...]


@dataclass(frozen=True)
class Shares:
    """The ratios over a window: time averages and time medians. The formulas are ours (Kant, arXiv 2510.01256)."""

    gar_mean: float
    gar_median: float
    sor: float
    """GPU-seconds used / GPU-seconds there were: the mean of GAR while the number of GPUs does not change."""
    gfr_mean: float | None
    gfr_median: float | None
    peak_gpus: int


@dataclass(frozen=True, slots=True)
class Held:
    """GPUs that one run holds in [start_s, end_s), and on which nodes, where nodes were looked at."""

    start_s: int
    end_s: int
    gpus: int
    where: tuple[tuple[int, int], ...] = ()
    """(node index, GPUs in thousandths) pairs."""


@dataclass(frozen=True, slots=True)
class Queued:
    """GPUs that one job waits for in [start_s, end_s)."""

    start_s: int
    end_s: int
    gpus: int


class OverTime:
    """A replay in steps: what is used, what waits, what is broken. Costs a sort of all starts and ends."""

    def __init__(
        self,
        held: Sequence[Held],
        queued: Sequence[Queued],
        gpus: int,
        node_gpus: Sequence[int] | None = None,
        out: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        """`gpus` there are, less those `out` in (start, end, GPUs); `node_gpus` of each node, where looked at."""
        everything = np.array([[_BEFORE_ALL, gpus]], dtype=np.int64)
        self.there = Steps(np.concatenate([everything, _changes((s, e, -g) for s, e, g in out)]))
        self.used = Steps(_changes((h.start_s, h.end_s, h.gpus) for h in held))
        self.running = Steps(_changes((h.start_s, h.end_s, 1) for h in held))
        self.waiting_jobs = Steps(_changes((q.start_s, q.end_s, 1) for q in queued))
        self.waiting_gpus = Steps(_changes((q.start_s, q.end_s, q.gpus) for q in queued))
        self.nodes = sum(gpus > 0 for gpus in node_gpus) if node_gpus is not None else 0
        self.broken = Steps(_broken_changes(held, node_gpus)) if node_gpus is not None and self.nodes else None

    def series(self, start: int, end: int, num_bins: int = NUM_BINS) -> Series:
        """Return [start, end), which is not empty, in at most `num_bins` bins."""
        edges = np.unique(np.linspace(start, end, min(num_bins, end - start) + 1).astype(np.int64))
        lengths = np.diff(edges)
        spent, there = self.used.bins(edges) * lengths, self.there.bins(edges) * lengths
        return Series(
            start_s=tuple(edges[:-1].tolist()),
            end_s=end,
            gar=tuple(_ratio(spent, there).tolist()),
            sor=tuple(_ratio(np.cumsum(spent), np.cumsum(there)).tolist()),
            gfr=None if self.broken is None else tuple((self.broken.bins(edges) / self.nodes).tolist()),
            running_jobs=tuple(self.running.bins(edges).tolist()),
            waiting_jobs=tuple(self.waiting_jobs.bins(edges).tolist()),
            waiting_gpus=tuple(self.waiting_gpus.bins(edges).tolist()),
        )

    def shares(self, start: int, end: int) -> Shares:
        """Return the ratios over [start, end), which is not empty."""
        broken = self.broken
        times = np.concatenate([self.used.times, self.there.times])
        edges = np.unique(np.concatenate([[start, end], times[(times > start) & (times < end)]]))
        lengths = np.diff(edges)
        gar = _ratio(self.used.bins(edges), self.there.bins(edges))
        order = np.argsort(gar, kind="stable")
        half = int(np.searchsorted(2 * np.cumsum(lengths[order]), end - start))
        return Shares(
            gar_mean=float((gar * lengths).sum()) / (end - start),
            gar_median=float(gar[order][half]),
            sor=self.used.total(start, end) / max(1, self.there.total(start, end)),
            gfr_mean=None if broken is None else broken.mean(start, end) / self.nodes,
            gfr_median=None if broken is None else broken.median(start, end) / self.nodes,
            peak_gpus=self.used.largest(start, end),
        )


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return part / whole, 0 where there is nothing."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _changes(spans: Iterable[tuple[int, int, int]]) -> Integers:
    """Return (time, change) rows of values that hold in [start, end)."""
    table = np.array(list(spans), dtype=np.int64).reshape(-1, 3)
    starts, ends = table[:, [0, 2]], table[:, [1, 2]] * np.array([1, -1])
    return np.concatenate([starts, ends])


def _broken_changes(held: Sequence[Held], node_gpus: Sequence[int]) -> Integers:
    """Return (time, change) rows of the number of nodes with 0 < used < all GPUs."""
    rows = [
        (node, time, by * milli)
        for h in held
        if h.start_s < h.end_s
        for node, milli in h.where
        for time, by in ((h.start_s, 1), (h.end_s, -1))
    ]
    if not rows:
        return np.zeros((0, 2), dtype=np.int64)
    table = np.array(rows, dtype=np.int64)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    node, time = table[:, 0], table[:, 1]
    used = np.cumsum(table[:, 2])  # of one node after another: each comes back to 0 before the next begins
    last = np.ones(len(table), dtype=bool)  # the last change of a node at one instant says how it is then
    last[:-1] = (node[1:] != node[:-1]) | (time[1:] != time[:-1])
    node, time, used = node[last], time[last], used[last]
    capacity = 1000 * np.array(node_gpus, dtype=np.int64)[node]
    broken = ((used > 0) & (used < capacity)).astype(np.int64)
    before = np.zeros_like(broken)
    before[1:] = np.where(node[1:] == node[:-1], broken[:-1], 0)
    return np.stack([time, broken - before], axis=1)
