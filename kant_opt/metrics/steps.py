"""Values that change in steps over time: exact integrals, means, medians, and means over equal bins."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Steps:
    """`values[i]` holds in [times[i], times[i + 1]), the last one for ever, 0 before the first. Whole numbers.

    >>> steps = Steps([(10, 4), (20, -4)])
    >>> steps.total(0, 40), steps.mean(10, 30), steps.median(0, 40), steps.at(15)
    (40, 2.0, 0, 4)
    """

    def __init__(self, changes: Iterable[tuple[int, int]] | Integers) -> None:
        """`changes`: (time, by how much), in any order; also as an array (n, 2)."""
        table = changes if isinstance(changes, np.ndarray) else np.array(list(changes), dtype=np.int64).reshape(-1, 2)
        order = np.argsort(table[:, 0], kind="stable")
        times, first = np.unique(table[order, 0], return_index=True)
        by = np.add.reduceat(table[order, 1], first) if len(first) else np.zeros(0, dtype=np.int64)
        self.times: Integers = times
        self.values: Integers = np.cumsum(by, dtype=np.int64)
        spans = np.diff(times) * self.values[:-1] if len(times) else np.zeros(0, dtype=np.int64)
        self._before: Integers = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(spans, dtype=np.int64)])
        """Integral from the first time up to each time."""

    def at(self, time: int) -> int:
        """Return the value at `time`."""
        i = int(np.searchsorted(self.times, time, side="right")) - 1
        return int(self.values[i]) if i >= 0 else 0

    def total(self, start: int, end: int) -> int:
        """Return the integral over [start, end)."""
        upto = self._upto(np.array([start, end], dtype=np.int64))
        return int(upto[1] - upto[0])

    def mean(self, start: int, end: int) -> float:
        """Return the mean over [start, end), which is not empty."""
        return self.total(start, end) / (end - start)

    def median(self, start: int, end: int) -> int:
        """Return the least value that holds, with those below it, for half of [start, end), which is not empty."""
        inside = self.times[(self.times > start) & (self.times < end)]
        edges = np.concatenate([[start], inside, [end]])
        lengths = np.diff(edges)
        values = np.array(
            [self.at(int(start)), *self.values[(self.times > start) & (self.times < end)]], dtype=np.int64
        )
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(lengths[order])
        return int(values[order][int(np.searchsorted(2 * reached, end - start))])

    def largest(self, start: int, end: int) -> int:
        """Return the largest value in [start, end), which is not empty."""
        inside = self.values[(self.times > start) & (self.times < end)]
        return max(self.at(start), int(inside.max(initial=0)))

    def bins(self, edges: Integers) -> NDArray[np.float64]:
        """Return the mean over each bin between neighbouring edges, which rise."""
        return np.diff(self._upto(edges)) / np.diff(edges)

    def _upto(self, times: Integers) -> Integers:
        """Return the integral from the first time up to each of `times`."""
        if not len(self.times):
            return np.zeros(len(times), dtype=np.int64)
        i = np.searchsorted(self.times, times, side="right") - 1
        upto = self._before[i] + self.values[i] * (times - self.times[i])
        return np.where(i >= 0, upto, 0)
