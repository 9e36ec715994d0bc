"""Words for people: names shown safely, lists of names folded, numbers with units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kant_opt.words import many as many
from kant_opt.words import percent as percent
from kant_opt.words import safe as safe

_NUMBERED = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)\Z", re.DOTALL)


def fold(names: Iterable[str]) -> str:
    """Return names as a hostlist, runs of numbers folded; a reading for people, not for parsers.

    >>> fold(["n3", "n1", "n2", "m07", "m08", "login"])
    'login,m[07-08],n[1-3]'
    """
    plain: list[str] = []
    numbered: dict[tuple[str, str], list[str]] = {}
    for name in sorted(set(names)):
        match = _NUMBERED.match(name)
        if match:
            prefix, digits, suffix = match.groups()
            numbered.setdefault((prefix, suffix), []).append(digits)
        else:
            plain.append(name)
    groups: list[tuple[str, str]] = [(name, name) for name in plain]
    for (prefix, suffix), numbers in numbered.items():
        padded = any(digits[0] == "0" and len(digits) > 1 for digits in numbers)
        widths = sorted({len(digits) for digits in numbers}) if padded else [0]
        for width in widths:  # n1 and n01 are two hosts: numbers of one width fold together
            chosen = [digits for digits in numbers if not width or len(digits) == width]
            groups.append((prefix, _group(prefix, suffix, sorted(map(int, chosen)), width)))
    return ",".join(text for _, text in sorted(groups))


def _group(prefix: str, suffix: str, numbers: Sequence[int], width: int) -> str:
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}}{suffix}"
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = (f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}" for low, high in runs)
    return f"{prefix}[{','.join(told)}]{suffix}"


def some(names: Sequence[str], most: int = 5) -> str:
    """Return the first names in a row, and how many more there are."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def gpus(milli: int) -> str:
    """Return thousandths of a GPU as GPUs: 256000 -> "256", 500 -> "0.5"."""
    return f"{milli / 1000:,.3f}".rstrip("0").rstrip(".")
