"""Times in words: as a time of day where the request has a clock, and as the time from now."""

from __future__ import annotations

from datetime import UTC, datetime

_UNIX_S = 1_000_000_000
"""A clock beyond this (2001) counts from 1970; one below counts from a start of its own."""
_LAST_S = 253_402_300_799
"""The last second of the year 9999."""
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


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


def span(seconds: int) -> str:
    """Return a duration in its two largest units, the rest cut off.

    >>> span(45), span(2400), span(7505), span(273_600)
    ('45 s', '40 min', '2 h 5 min', '3 d 4 h')
    """
    for i, (unit, size) in enumerate(_UNITS):
        if seconds >= size:
            text = f"{seconds // size:,} {unit}"
            if i + 1 < len(_UNITS) and (rest := seconds % size // _UNITS[i + 1][1]):
                text += f" {rest} {_UNITS[i + 1][0]}"
            return text
    return "0 s"
