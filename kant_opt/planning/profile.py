"""A step profile: how many interchangeable units are free over time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from kant_opt.planning.ticket import FOREVER


class Profile:
    """Free units as steps: `free[i]` from `times[i]` up to the next time, `free[-1]` for ever.

    `times[0]` is the start of what is remembered. Values may be negative where more is taken than there is. A change
    costs the steps it covers, a question the steps it passes; steps of equal value are merged at once.

    >>> profile = Profile(4)
    >>> profile.take(10, 20, 3)
    >>> profile.earliest(2, 15, after=0), profile.earliest(2, 10, after=0), profile.least(5, 15)
    (20, 0, 1)
    """

    __slots__ = ("free", "times")

    def __init__(self, units: int, start: int = -(1 << 62)) -> None:
        self.times: list[int] = [start]
        self.free: list[int] = [units]

    def take(self, start: int, end: int, units: int) -> None:
        """Take `units` in [start, end), for ever where `end` is FOREVER; give them back where `units` is negative.

        Nothing before `times[0]` changes.
        """
        start = max(start, self.times[0])
        if start >= end or not units:
            return
        first = self._cut(start)
        last = self._cut(end) if end < FOREVER else len(self.times)
        for i in range(first, last):
            self.free[i] -= units
        self._merge(last)
        self._merge(first)

    def least(self, start: int, end: int) -> int:
        """Return the least units free in [start, end), which is not empty."""
        first = bisect_right(self.times, start) - 1
        return min(self.free[max(first, 0) : bisect_left(self.times, end, lo=first + 1)])

    def until(self, start: int, units: int) -> int | None:
        """Return up to when `units` stay free from `start` on, `start` where they are not, None: for ever."""
        for i in range(max(bisect_right(self.times, start) - 1, 0), len(self.times)):
            if self.free[i] < units:
                return max(self.times[i], start)
        return None

    def earliest(self, units: int, length: int, after: int) -> int | None:
        """Return the first start at or after `after` with `units` free for `length`; None where there is none."""
        times, free = self.times, self.free
        i = max(bisect_right(times, after) - 1, 0)
        start, n = after, len(times)
        while True:
            while i < n and free[i] < units:
                i += 1
            if i == n:
                return None
            start = max(times[i], after)
            end = start + length
            while i < n and free[i] >= units:
                i += 1
                if i == n or times[i] >= end:
                    return start

    def largest(self, units: int, after: int) -> tuple[int, int | None]:
        """Return the longest window [start, end) from `after` on with `units` free, the first of equals.

        `end` None: for ever. (after, after) where there is none.
        """
        best: tuple[int, int | None] = (after, after)
        start = self.earliest(units, 1, after)
        while start is not None:
            end = self.until(start, units)
            if end is None:
                return start, None
            assert best[1] is not None, "a window for ever is returned at once"
            if end - start > best[1] - best[0]:
                best = (start, end)
            start = self.earliest(units, 1, end)
        return best

    def forget(self, before: int) -> None:
        """Drop the steps that end at or before `before`."""
        passed = bisect_right(self.times, before) - 1
        if passed > 0:
            del self.times[:passed], self.free[:passed]

    def _cut(self, time: int) -> int:
        """Return the index of the step that begins at `time`, made if need be."""
        i = bisect_left(self.times, time)
        if i == len(self.times) or self.times[i] != time:
            self.times.insert(i, time)
            self.free.insert(i, self.free[i - 1])
        return i

    def _merge(self, i: int) -> None:
        if 0 < i < len(self.times) and self.free[i] == self.free[i - 1]:
            del self.times[i], self.free[i]
