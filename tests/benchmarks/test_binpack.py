"""Bin packing as broken nodes: OR-Library's and Scholl's optima, and small ones by enumeration."""

from __future__ import annotations

from random import Random

import pytest

from kant_opt import Limits

from .binpack import binpack, read_all
from .known import Known, folder, solve

QUICK = {"u120_08"}


def params(group: str) -> list[object]:
    """Return pytest's parameters of a group of instances; one that skips without the data."""
    found = [known for known in read_all() if known.name.startswith(group)]
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason="the benchmarks are not beside the checkout"))]
    return [pytest.param(k, id=k.name, marks=[] if k.name in QUICK else [pytest.mark.slow]) for k in found]


@pytest.mark.skipif(folder("orlib_binpack") is None, reason="the benchmarks are not beside the checkout")
def test_all_problems_are_read() -> None:
    assert len({known.name for known in read_all()}) == 50


@pytest.mark.parametrize("known", params("u"))
def test_the_published_optimum_is_met_and_proven(known: Known) -> None:
    result = solve(known, "milp")
    result.check()
    assert (result.value, result.bound) == (known.optimum, known.optimum)


@pytest.mark.slow
@pytest.mark.parametrize("known", params("HARD"))
def test_the_hard_ones_are_never_beaten_nor_called_optimal_wrongly(known: Known) -> None:
    """Some 200 sizes in bins of 100,000: too many states for arcs, and too many bins for one variable each."""
    result = solve(known, "milp", Limits(deadline_ms=20_000))
    result.check()
    assert not result.proven or result.value == known.optimum


@pytest.mark.parametrize("capacity", [17, 600])
@pytest.mark.parametrize("seed", range(2))
def test_small_ones_agree_with_enumeration(seed: int, capacity: int) -> None:
    """Capacities up to 511 are GPUs, larger ones CPU."""
    draw = Random(seed)
    sizes = [draw.randint(capacity // 5, capacity // 2) for _ in range(8)]
    result = solve(binpack("small", capacity, sizes, fewest_bins(capacity, sizes)), "cp-sat")
    assert (result.value, result.proven) == (result.known.optimum, True)


def fewest_bins(capacity: int, sizes: list[int]) -> int:
    """Return the optimum, by putting each item into every bin that has room for it, or into the next one."""

    def pack(left: list[int], rooms: list[int]) -> int:
        if not left:
            return len(rooms)
        size, *rest = left
        into = [[*rooms[:b], room - size, *rooms[b + 1 :]] for b, room in enumerate(rooms) if size <= room]
        return min(pack(rest, rooms_now) for rooms_now in [*into, [*rooms, capacity - size]])

    return pack(sizes, [])
