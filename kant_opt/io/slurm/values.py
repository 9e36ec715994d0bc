"""Slurm's ways to write numbers, times and key=value text, and to say that there is nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kant_opt.errors import InputError

Json = Mapping[str, Any]

MIB = 1 << 20
_UNSET = {16: 0xFFFE, 32: 0xFFFF_FFFE, 64: 0xFFFF_FFFF_FFFF_FFFE}  # NO_VAL of that width; INFINITE is one more
_NOTHING = frozenset(("", "(null)", "N/A", "n/a", "None", "NONE", "Unknown"))


def number(value: object, *, bits: int = 32) -> int | None:
    """Return a number that means one; None where it is not set, infinite, negative or Slurm's NO_VAL.

    >>> number({"set": True, "infinite": False, "number": 7}), number(4294967294), number("12"), number(-2)
    (7, None, 12, None)
    """
    if isinstance(value, Mapping):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _UNSET[bits] and value <= 1 << 53 else None


def is_infinite(value: object) -> bool:
    """Return whether a number says "without limit"."""
    if isinstance(value, Mapping):
        return bool(value.get("infinite"))
    return value in (0xFFFF, 0xFFFF_FFFF, "UNLIMITED", "INFINITE")


def text(value: object) -> str | None:
    """Return a text that says something; None for Slurm's words for nothing. Lists are joined by commas.

    >>> text("(null)"), text(["a", "b"]), text("gpu")
    (None, 'a,b', 'gpu')
    """
    if isinstance(value, list):
        value = ",".join(v for v in value if isinstance(v, str))
    return value if isinstance(value, str) and value not in _NOTHING else None


def words(value: object) -> tuple[str, ...]:
    """Return a list, or a text with commas, as a tuple of words."""
    if isinstance(value, list):
        return tuple(v for v in value if isinstance(v, str) and v)
    return tuple(filter(None, (text(value) or "").split(",")))


_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?\Z", re.ASCII)


def duration_s(value: str | None) -> int | None:
    """Return the seconds of "days-hours:minutes:seconds" with parts left out as Slurm leaves them out.

    >>> duration_s("10:00:00"), duration_s("1-00:30:00"), duration_s("90"), duration_s("UNLIMITED")
    (36000, 88200, 5400, None)
    """
    match = _DURATION.match(value or "")
    if not match:
        return None
    days, *rest = match.groups()
    parts = [int(p) for p in rest if p is not None]
    if days is not None or len(parts) == 3:  # begins with hours
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    else:  # begins with minutes
        hours, (minutes, seconds) = 0, (*parts, 0)[:2]
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def time_s(value: str | None) -> int | None:
    """Return the epoch seconds of a time as scontrol prints it. It names no zone: UTC is assumed."""
    try:
        return int(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()) if value else None
    except ValueError:
        return None


_SIZE = re.compile(r"(\d{1,15})(?:\.(\d{1,6}))?([KMGTP]?)B?\Z", re.ASCII)


def memory_mib(value: str | None) -> int | None:
    """Return MiB of Slurm's memory text, rounded up; a number without unit is in MiB.

    >>> memory_mib("62.50G"), memory_mib("8000M"), memory_mib("512")
    (64000, 8000, 512)
    """
    match = _SIZE.match(value or "")
    if not match:
        return None
    fraction = match[2] or ""
    kib = (
        int(match[1] + fraction)
        * {"K": 1, "": 1 << 10, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30, "P": 1 << 40}[match[3]]
    )
    return -(-kib // (1024 * int("1" + "0" * len(fraction))))


def tres(value: str | None) -> dict[str, str]:
    """Return a TRES text as a map: "cpu=8,mem=1000M" -> {"cpu": "8", "mem": "1000M"}."""
    return dict(part.split("=", 1) for part in (value or "").split(",") if "=" in part)


_PAIR = re.compile(r"(?<!\S)([A-Za-z][\w/:.]*)=(\S*)")


def pairs(line: str) -> dict[str, str]:
    """Return the key=value words of a record; of a key that occurs twice the first counts.

    Values end at a blank, so that of a reason or a command of several words only the first is here.
    """
    found: dict[str, str] = {}
    for key, value in _PAIR.findall(line):
        found.setdefault(key, value)
    return found


@contextmanager
def within(place: str) -> Iterator[None]:
    """Put `place` in front of the place of an InputError that passes."""
    try:
        yield
    except InputError as error:
        raise error.within(place) from None


def records_of(document: Json, key: str, place: str) -> list[Json]:
    """Return the objects in the list `document[key]`. Raises InputError where it is no list of objects."""
    found = document.get(key)
    if not isinstance(found, list):
        raise InputError(f"{key!r} is not a list", place=place, way_out="write the file again with Slurm's --json")
    for i, item in enumerate(found):
        if not isinstance(item, Mapping):
            raise InputError(
                f"{str(item)[:40]!r} is not an object", place=f"{place}: {key}.{i}", way_out="correct or remove it"
            )
    return found
