"""Ruin and recreate: never worse than E-Binpack, repeatable, on time, and optimal where the optimum is known."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from time import perf_counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends import Deadline
from kant_opt.backends.leaves import Item, Leaves, Shares
from kant_opt.backends.search import ruin_and_recreate
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Limits, Outcome, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, podset, racks
from kant_opt.testing.strategies import requests

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def full(leaves: int, size: int, seed: int) -> Request:
    """Return a cluster of whole leaves and gangs that fill it without a cut: each leaf's nodes are dealt out."""
    draw = Random(seed)
    sizes = []
    for _ in range(leaves):
        left = size
        while left:
            sizes.append(draw.choice([n for n in range(3, 10) if n == left or left - n >= 3]))
            left -= sizes[-1]
    draw.shuffle(sizes)
    spec = "|".join([",".join("8" * size)] * leaves)
    return racks(spec, jobs=[gang(f"j{i}", n, 8) for i, n in enumerate(sizes)])


def values(outcome: Outcome) -> dict[str, int]:
    return {level.name: level.value for level in outcome.levels}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gangs_that_fill_their_leaves_need_no_cut(seed: int) -> None:
    """The optimum is 0 by construction; the greedy cuts some."""
    request = full(40, 16, seed)
    greedy, found = place(request, backend="e-binpack"), place(request, backend="search")
    assert values(greedy)["traffic"] > 0
    assert values(found)["traffic"] == 0
    assert found.status == "OPTIMAL"


@CALM
@given(requests(max_nodes=4, max_jobs=3), st.integers(0, 3))
def test_never_worse_than_e_binpack_and_never_better_than_the_best(request: Request, seed: int) -> None:
    greedy = place(request, backend="e-binpack")
    found = place(request, backend="search", limits=Limits(seed=seed))
    for one, two in zip(greedy.levels, found.levels, strict=True):
        if one.value != two.value:
            assert (two.value > one.value) == (one.sense == "max")
            break
    try:
        best = dict(brute_force(request, limit=5_000).values)
    except InputError:
        return
    for level in found.levels:
        assert level.bound is not None
        if level.value != best[level.name]:
            break
        assert (level.bound >= level.value) if level.sense == "max" else (level.bound <= level.value)


def test_equal_seeds_give_equal_answers() -> None:
    request = full(16, 9, 5)
    one, two = (place(request, limits=Limits(rounds=3, seed=7)) for _ in range(2))
    assert one.placement == two.placement


def test_the_limit_that_bit_is_named() -> None:
    request = full(40, 16, 2)
    assert place(request, backend="search", limits=Limits(rounds=1)).run.limit_hit == "rounds"
    assert place(request, backend="search").run.limit_hit == ""


def test_the_deadline_ends_the_search() -> None:
    request = full(60, 15, 3)
    started = perf_counter()
    outcome = place(request, backend="search", limits=Limits(rounds=100_000, deadline_ms=700))
    assert perf_counter() - started < 10
    assert outcome.reasons == ()


def test_small_pods_stay_where_the_greedy_put_them() -> None:
    """They fill broken nodes; only gangs of whole nodes change places."""
    request = full(12, 8, 4)
    small = [gang(f"s{i}", 1, 3) for i in range(5)]
    extra = racks("8,8,8,8,8,8,8,8", jobs=small).nodes
    nodes = (*request.nodes, *(n.model_copy(update={"name": f"x{n.name}", "path": ("rx",)}) for n in extra))
    both = request.model_copy(update={"nodes": nodes, "jobs": (*request.jobs, *small)})
    greedy, found = place(both, backend="e-binpack"), place(both, backend="search")
    assert greedy.placement is not None
    assert found.placement is not None
    for job in small:
        assert greedy.placement.of(job.name) == found.placement.of(job.name)
    assert values(found)["traffic"] <= values(greedy)["traffic"]


def test_a_required_level_is_kept() -> None:
    request = full(12, 8, 6)
    jobs = tuple(
        job.model_copy(update={"podsets": (podset("main", job.podsets[0].count, 8, required_level="rack"),)})
        for job in request.jobs
    )
    outcome = place(request.model_copy(update={"jobs": jobs}), backend="search")
    assert values(outcome)["traffic"] == 0


def test_costs_keep_up_with_gangs_that_come_and_go() -> None:
    """Two blocks of two leaves; weights 4 and 1 counted by hand."""
    leaves = Leaves([3, 3, 3, 3], [(0, 0), (0, 1), (1, 2), (1, 3)], [4, 1])
    leaves.put(0, {0: 3, 1: 1})
    leaves.put(1, {1: 2, 2: 3})
    assert leaves.cost == 1 + (4 + 1)
    assert leaves.free == [0, 0, 0, 3]
    leaves.take(1)
    assert leaves.cost == 1
    assert leaves.free == [0, 2, 3, 3]
    assert leaves.fit(Item(2), range(4), Random(0), 0.0) == {1: 2}
    assert leaves.fit(Item(6), range(4), Random(0), 0.0) == {2: 3, 3: 3}
    assert leaves.fit(Item(4, scope=2), range(4), Random(0), 0.0) is None


def test_gangs_that_stay_keep_their_nodes() -> None:
    """The gang of pool x takes the first four nodes; the two others, which may use any, are dealt out the rest."""
    request = racks("8,8,8,8,8,8,8,8", jobs=[gang("x", 4, 8, pools=("x",)), gang("a", 2, 8), gang("b", 2, 8)])
    nodes = tuple(n.model_copy(update={"pools": ("x",) if int(n.name[3:]) <= 4 else ("y",)}) for n in request.nodes)
    outcome = place(request.model_copy(update={"nodes": nodes}), backend="search")
    assert outcome.placement is not None
    used = [node for job in outcome.placement.jobs for node in job.nodes]
    assert len(set(used)) == len(used) == 8


class Watched(Leaves):
    """Notes how many leaves each gang is offered."""

    widest = 0

    def fit(self, item: Item, leaves: Iterable[int], draw: Random, blink: float) -> Shares | None:
        offered = list(leaves)
        self.widest = max(self.widest, len(offered))
        return super().fit(item, offered, draw, blink)


def test_gangs_over_dozens_of_leaves_do_not_make_rounds_dear() -> None:
    """Two gangs on sixty leaves each, small ones between them and beside: no round looks at more than some dozens."""
    leaves = Watched([4] * 140, [(0, i) for i in range(140)], [4, 1])
    items = {0: Item(180), 1: Item(180), **{k: Item(3) for k in range(2, 40)}}
    leaves.put(0, dict.fromkeys(range(60), 3))
    leaves.put(1, dict.fromkeys(range(60, 120), 3))
    for k in range(2, 40):
        spare = [i for i in range(140) if leaves.free[i]]
        pair = 120 + 2 * (k - 30)
        leaves.put(k, dict.fromkeys(spare[:3], 1) if k < 30 else {pair: 2, pair + 1: 1})
    before = leaves.cost
    best, limit = ruin_and_recreate(leaves, items, 0, 400, 1, Deadline(None))
    assert 0 < leaves.widest <= 40
    assert limit == "rounds"
    assert leaves.cost <= before + 8
    assert sum(leaves.cost_of(shares) for shares in best.values()) < before
