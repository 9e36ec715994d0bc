"""Rents: every table gives a bound that holds, the best ones meet known optima, and the proof needs no solver."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.backends import best_rents
from kant_opt.bounds import Market, markets
from kant_opt.engine import place
from kant_opt.fabric import build_fabric
from kant_opt.schema import Request
from kant_opt.testing.builders import gang, racks, running
from kant_opt.view import Cluster, Free, compile_gangs

CALM = settings(deadline=None, derandomize=True, max_examples=60)


def markets_of(request: Request) -> list[Market]:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    weights = [0, *request.objective.weights_of(cluster.tree.levels[:-1]).values(), 0]
    return markets(Free(cluster), compile_gangs(cluster), weights)


def market_of(request: Request) -> Market:
    (market,) = markets_of(request)
    return market


def pieces(size: int, leaves: list[int]) -> list[tuple[int, ...]]:
    """Return every way to take `size` nodes from the leaves."""
    return [split for split in product(*(range(min(size, n) + 1) for n in leaves)) if sum(split) == size]


def least_traffic(sizes: list[int], blocks: list[list[int]]) -> int | None:
    """Return the optimum by trying everything: one per further rack, four per further block."""
    leaves = [n for block in blocks for n in block]
    of = [b for b, block in enumerate(blocks) for _ in block]
    best: int | None = None

    def go(k: int, left: list[int], cost: int) -> None:
        nonlocal best
        if best is not None and cost >= best:
            return
        if k == len(sizes):
            best = cost
            return
        for split in pieces(sizes[k], left):
            used = [i for i, n in enumerate(split) if n]
            more = len(used) - 1 + 4 * (len({of[i] for i in used}) - 1)
            go(k + 1, [n - s for n, s in zip(left, split, strict=True)], cost + more)

    go(0, leaves, 0)
    return best


@CALM
@given(
    st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=2, max_size=2),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.data(),
)
def test_any_rents_bound_the_least_traffic_and_the_best_come_near(
    blocks: list[list[int]], sizes: list[int], data: st.DataObject
) -> None:
    best = least_traffic(sorted(sizes, reverse=True), blocks)
    if best is None:
        return
    spec = "/".join("|".join(",".join("1" * n) for n in block) for block in blocks)
    market = market_of(racks(spec, jobs=[gang(f"j{i}", size) for i, size in enumerate(sizes)]))
    widths = [max(n for n in blocks[b]) for _, b in sorted(market.one_of_each(1))]
    any_rents = [np.array([0, *data.draw(st.lists(st.integers(-50, 3000), min_size=w, max_size=w))]) for w in widths]
    assert market.bound(any_rents) <= best
    rents = best_rents(market)
    assert rents is not None
    assert market.bound(rents) <= best
    assert market.bound(rents) >= max(0, market.bound(any_rents))


def test_two_gangs_of_three_on_leaves_of_two_need_a_cut_each_and_share_a_leaf() -> None:
    """Six nodes in leaves of 2, 2, 2 and two gangs of 3: each is cut at least once, and 2 is reached (2 + 1, 1 + 2)."""
    market = market_of(racks("1,1|1,1|1,1", jobs=[gang("a", 3), gang("b", 3)]))
    rents = best_rents(market)
    assert rents is not None
    assert market.bound(rents) == 2


def test_a_perfect_fit_needs_no_cut() -> None:
    market = market_of(racks("1,1,1|1,1", jobs=[gang("a", 3), gang("b", 2)]))
    rents = best_rents(market)
    assert rents is not None
    assert market.bound(rents) == 0


def test_competition_is_seen_where_each_gang_alone_would_fit() -> None:
    """Leaves of 3 and 3, gangs of 2, 2, 2: each fits a leaf alone, but one of the three has to be cut."""
    market = market_of(racks("1,1,1|1,1,1", jobs=[gang("a", 2), gang("b", 2), gang("c", 2)]))
    rents = best_rents(market)
    assert rents is not None
    assert market.bound(rents) == 1


@pytest.mark.parametrize(
    "job",
    [
        gang("a", 2, communication="none"),
        gang("a", 2, communication="all_to_all"),
        gang("a", 2, gpus=0, cpu_milli=1),
    ],
    ids=["none", "all-to-all", "no GPUs"],
)
def test_jobs_that_do_not_ring_on_whole_nodes_are_in_no_market(job: object) -> None:
    assert markets_of(racks("1,1|1,1", jobs=[job])) == []  # type: ignore[list-item]


def test_members_that_run_keep_a_gang_out() -> None:
    request = racks("1,1|1,1", jobs=[gang("a", 3)], allocations=(running("a", {"r1n1": 1}),))
    assert markets_of(request) == []


def test_two_pods_on_one_node_are_no_whole_nodes() -> None:
    assert markets_of(racks("2,2|2,2", jobs=[gang("a", 3, 1)])) == []


def test_pools_that_share_no_node_are_markets_of_their_own() -> None:
    request = racks("1,1|1,1", jobs=[gang("a", 2, pools=("x",)), gang("b", 2, pools=("y",))])
    nodes = tuple(
        node.model_copy(update={"pools": ("x",) if node.path == ("r1",) else ("y",)}) for node in request.nodes
    )
    found = markets_of(request.model_copy(update={"nodes": nodes}))
    assert sorted(job for market in found for job, _, _ in market.sizes) == ["a", "b"]
    assert len(found) == 2


def test_a_solver_that_fails_costs_its_bound_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The competition that only solvers see is then not proven; the gangs are placed all the same."""

    def fail(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("kant_opt.backends.rents.maximise", fail)
    monkeypatch.setattr("kant_opt.backends.arcflow._bound", fail)
    outcome = place(racks("1,1,1|1,1,1", jobs=[gang("a", 2), gang("b", 2), gang("c", 2)]), backend="search")
    assert outcome.reasons == ()
    assert {level.name: level.bound for level in outcome.levels}["traffic"] == 0
