"""Slurm hostlists to names, in the order of the text: counted before they are unfolded.

ClusterShell, the judge of this in the tests, would sort the names, take 20 times as long, and give meaning to "@", "!"
and "&", for which text from elsewhere may not ask.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from math import prod

from kant_opt.errors import InputError

MOST_HOSTS = 1_000_000
"""Names that one hostlist may stand for."""

_KEPT = 10_000
"""Names of the longest list that is remembered."""
_NOTHING = frozenset(("", "(null)", "None", "N/A", "n/a"))
_PIECE = re.compile(r"(?P<text>[^\[\],\s]+)|\[(?P<ranges>[^\[\]]*)\]|(?P<comma>,)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?\Z", re.ASCII)

_Group = list[str]  # parts of one name: plain text, or "[" and the ranges behind it


def expand(text: str, place: str = "") -> tuple[str, ...]:
    """Return the names in a hostlist, in its order, each once; leading zeros stay.

    Empty for what Slurm writes where there is nothing: "", "(null)", "None". Raises InputError for brackets that do
    not close, ranges that are none, and more than MOST_HOSTS names, which costs nothing whatever the range says.

    >>> expand("gpu[01-03,7],login1")
    ('gpu01', 'gpu02', 'gpu03', 'gpu7', 'login1')
    """
    if text in _NOTHING:
        return ()
    try:
        found = _expand_short(text)
        return _unfold(_groups(text)) if found is None else found
    except InputError as error:
        raise (error.within(place) if place else error) from None


class Allowance:
    """Names that all hostlists of one kind in a source may stand for together."""

    def __init__(self, names: int = MOST_HOSTS) -> None:
        self.names = self.left = names

    def expand(self, text: str, place: str = "") -> tuple[str, ...]:
        """Return the names as `expand` does. Raises InputError once they are too many in all."""
        found = expand(text, place)
        self.left -= len(found)
        if self.left < 0:
            raise InputError(
                f"the hostlists up to here stand for more than {self.names:,} hosts in all",
                place=place,
                way_out="correct the ranges",
            )
        return found


@lru_cache(maxsize=4096)  # jobs of one cluster name the same nodes again and again
def _expand_short(text: str) -> tuple[str, ...] | None:
    """Return the names of a list that is worth keeping; None where it is too long for that."""
    groups = _groups(text)
    count = sum(_count(group) for group in groups)
    if count > MOST_HOSTS:
        raise InputError(
            f"hostlist {_short(text)} stands for more than {MOST_HOSTS:,} hosts",
            way_out="correct the range",
        )
    return _unfold(groups) if count <= _KEPT else None


def _unfold(groups: list[_Group]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for group in groups:
        names.update(dict.fromkeys(map("".join, product(*map(_alternatives, group)))))
    return tuple(names)


def _groups(text: str) -> list[_Group]:
    """Split at the commas outside of brackets."""
    groups: list[_Group] = [[]]
    end = 0
    while end < len(text):
        match = _PIECE.match(text, end)
        if match is None:
            raise InputError(
                f"hostlist {_short(text)} breaks off or is not one at {_short(text[end:])}",
                way_out="close each '[' with ']'; `scontrol -ll` and SLURM_TOPO_LEN keep lists from being cut",
            )
        end = match.end()
        if match["comma"]:
            groups.append([])
        else:
            groups[-1].append(match["text"] or "[" + match["ranges"])
    return [group for group in groups if group]  # a trailing comma is harmless


def _count(group: _Group) -> int:
    return prod(sum(map(_length, part[1:].split(","))) for part in group if part[0] == "[")


def _length(piece: str) -> int:
    match = _RANGE.match(piece)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if high < low:
        raise InputError(f"{_short(f'[{piece}]')} is no range of a hostlist", way_out="write e.g. [001-018,020]")
    return high - low + 1


def _alternatives(part: str) -> list[str]:
    if part[0] != "[":
        return [part]
    found = []
    for piece in part[1:].split(","):
        low, _, high = piece.partition("-")
        found += [f"{n:0{len(low)}}" for n in range(int(low), int(high or low) + 1)]
    return found


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
