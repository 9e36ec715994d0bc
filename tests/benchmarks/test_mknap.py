"""Multi-constraint knapsacks as gangs to admit: OR-Library's 55 optima, and small ones by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from .known import Known, folder, solve
from .mknap import mknap, read_all

QUICK = {"mknap1-1", "mknap1-2", "WEING1"}


def params() -> list[object]:
    """Return pytest's parameters of the instances; one that skips without the data."""
    found = read_all()
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason="the benchmarks are not beside the checkout"))]
    return [pytest.param(k, id=k.name, marks=[] if k.name in QUICK else [pytest.mark.slow]) for k in found]


@pytest.mark.skipif(folder("orlib_mknap") is None, reason="the benchmarks are not beside the checkout")
def test_all_problems_are_read() -> None:
    names = [known.name for known in read_all()]
    assert (len(names), len(set(names))) == (7 + 48, 55)


@pytest.mark.parametrize("backend", ["milp", "cp-sat"])
@pytest.mark.parametrize("known", params())
def test_the_published_optimum_is_met_and_proven(known: Known, backend: str) -> None:
    result = solve(known, backend)
    result.check()
    assert (result.value, result.bound) == (known.optimum, known.optimum)


@pytest.mark.parametrize("seed", range(3))
def test_small_ones_agree_with_enumeration(seed: int) -> None:
    """Profits below the number of constraints and in tenths as well: both are scaled on the way in, and back."""
    draw = Random(seed)
    profits = [Fraction(draw.randint(5, 90), 10) for _ in range(7)]
    weights = [[Fraction(draw.randint(0, 9)) for _ in profits] for _ in range(3)]
    capacities = [sum(row, Fraction()) / 2 for row in weights]
    best = max(
        sum((p for p, x in zip(profits, chosen, strict=True) if x), Fraction())
        for chosen in product((0, 1), repeat=7)
        if all(
            sum(w for w, x in zip(row, chosen, strict=True) if x) <= room
            for row, room in zip(weights, capacities, strict=True)
        )
    )
    result = solve(mknap("small", profits, weights, capacities, best), "cp-sat")
    assert (result.value, result.proven) == (int(best * 10), True)
