"""GPUs in Slurm's many notations for generic resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kant_opt.errors import InputError

_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_GPU = re.compile(
    r"(?:gres[:/])?gpu(?P<parts>(?::[^:=(),\s]+)*)(?:=(?P<equals>\d{1,7}))?(?P<about>\((?:[A-Z]+:[^()]*)\))*\Z",
    re.ASCII,
)
_ABOUT = re.compile(r"\(([A-Z]+):([^()]*)\)")
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20}
_COUNT = re.compile(r"(\d{1,7})([KM]?)\Z", re.ASCII)
_INDEX = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?\Z", re.ASCII)
MOST_INDICES = 10_000
"""GPUs that one index list may name; its ranges are unfolded."""
_NO_GRES = frozenset(("", "(null)", "N/A", "n/a", "none"))
_SHARES = re.compile(r"(?<![^,])(?:gres[:/])?(?:shard|mps)(?![a-z])")


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of one type."""

    type: str
    """Empty where Slurm gives none."""
    count: int
    indices: tuple[int, ...] = ()
    """Empty where unknown."""


@lru_cache(maxsize=4096)
def gpus_in(text: str) -> tuple[Gpus, ...]:
    """Return the GPUs in a gres or TRES text, other resources left out. Raises InputError for unknown forms.

    >>> gpus_in("gpu:h100:4(S:0-1),nvme:2"), gpus_in("gres/gpu=2")
    ((Gpus(type='h100', count=4, indices=()),), (Gpus(type='', count=2, indices=()),))
    >>> gpus_in("gpu:2(IDX:0,3)")
    (Gpus(type='', count=2, indices=(0, 3)),)
    """
    if text in _NO_GRES:
        return ()
    found = (_gpus(part.strip()) for part in _OUTSIDE_PARENTHESES.split(text))
    return tuple(g for g in found if g is not None)


def num_gpus(text: str | None) -> int:
    """Return how many GPUs of whatever type a gres or TRES text names."""
    return sum(g.count for g in gpus_in(text or ""))


def asks_for_shares(text: str | None) -> bool:
    """Return whether a text names parts of GPUs (shard or mps)."""
    return bool(_SHARES.search(text or ""))


def _gpus(part: str) -> Gpus | None:
    if not re.match(r"(?:gres[:/])?gpu(?![A-Za-z0-9_])", part):
        return None
    match = _GPU.match(part)
    if not match:
        raise _unknown(part)
    names = [p for p in match["parts"].split(":") if p and p != "no_consume"]
    about = dict(_ABOUT.findall(part))
    count: int | None = int(match["equals"]) if match["equals"] else None
    if count is None and names and (size := _COUNT.match(names[-1])):
        names.pop()
        count = int(size[1]) * _SCALE[size[2]]
    if count is None and (told := _COUNT.match(about.get("CNT", ""))):
        count = int(told[1])
    indices = _indices(about.get("IDX", ""), part)
    if count is None:
        count = len(indices) or 1
    if len(names) > 1 or (indices and len(indices) != count):
        raise _unknown(part)
    return Gpus(names[0] if names else "", count, indices)


def _indices(text: str, part: str) -> tuple[int, ...]:
    if text in ("", "N/A"):
        return ()
    found: list[int] = []
    for piece in text.split(","):
        match = _INDEX.match(piece)
        if not match:
            raise _unknown(part)
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
        if len(found) > MOST_INDICES:
            raise _unknown(part)
    return tuple(found)


def _unknown(part: str) -> InputError:
    return InputError(
        f"unknown form of GPUs {part[:60]!r}",
        way_out="known are e.g. gpu:8, gpu:h100:4(S:0-1), gpu:4(IDX:0-3), gres/gpu=2",
    )
