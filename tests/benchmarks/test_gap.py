"""Generalised assignment as placement: 90 published optima, and small ones by enumeration."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from .gap import gap, read_all
from .known import Known, folder, solve

QUICK = {"gap1-0", "gap1-4"}
PROVEN = ("gap", "a05", "a10", "b05", "c05")
"""What HiGHS proves in seconds; docs/benchmarks/known-optima.md tells of the others."""


def params(quick: bool) -> list[object]:
    """Return pytest's parameters of the instances to prove; one that skips without the data."""
    found = read_all(lambda name: name.startswith(PROVEN))
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason="the benchmarks are not beside the checkout"))]
    return [pytest.param(k, id=k.name) for k in found if (k.name in QUICK) == quick]


@pytest.mark.skipif(folder("gap") is None, reason="the benchmarks are not beside the checkout")
def test_all_instances_are_read() -> None:
    assert len(read_all(lambda name: True)) == 60 + 24 + 6


@pytest.mark.parametrize("backend", ["milp", "cp-sat"])
@pytest.mark.parametrize("known", params(quick=True))
def test_the_published_optimum_is_met_and_proven(known: Known, backend: str) -> None:
    check(known, backend)


@pytest.mark.slow
@pytest.mark.parametrize("known", params(quick=False))
def test_more_published_optima_are_met_and_proven(known: Known) -> None:
    check(known, "milp")


def check(known: Known, backend: str) -> None:
    result = solve(known, backend)
    result.check()
    assert (result.value, result.bound) == (known.optimum, known.optimum)


@pytest.mark.parametrize("seed", range(3))
def test_small_ones_agree_with_enumeration(seed: int) -> None:
    draw = Random(seed)
    costs = [[draw.randint(1, 30) for _ in range(6)] for _ in range(3)]
    weights = [[draw.randint(3, 9) for _ in range(6)] for _ in range(3)]
    capacities = [16, 14, 18]
    best = min(
        sum(costs[agent][item] for item, agent in enumerate(agents))
        for agents in product(range(3), repeat=6)
        if all(
            sum(weights[a][item] for item, agent in enumerate(agents) if agent == a) <= room
            for a, room in enumerate(capacities)
        )
    )
    result = solve(gap("small", costs, weights, capacities, best), "milp")
    assert (result.value, result.proven) == (best, True)
