"""Times in words: as a time of day where the request has a clock, and as the time from now."""

from __future__ import annotations

from datetime import UTC, datetime

from kant_opt.words import span as span

_UNIX_S = 1_000_000_000
"""A clock beyond this (2001) counts from 1970; one below counts from a start of its own."""
_LAST_S = 253_402_300_799
"""The last second of the year 9999."""


class Clock:
    """A request's clock, read at its `now_s`."""

    def __init__(self, now_s: int) -> None:
        self.now_s = now_s
        self.tells_day = _UNIX_S <= now_s <= _LAST_S

    def away(self, time_s: int) -> str:
        """Return a time as seen from now: "now", "in 40 min", "2 h 5 min ago"."""
        seconds = time_s - self.now_s
        if not seconds:
            return "now"
        return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"

    def stamp(self, time_s: int) -> str:
        """Return the minute of a time in UTC; without a clock of days, its second on the request's own."""
        if not self.tells_day or not _UNIX_S <= time_s <= _LAST_S:
            return f"{time_s:,} s"
        return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")
