"""The offline bound of openb: any prices hold, the best ones meet what is known, and the trace's batch stays below."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from kant_opt.engine import place
from kant_opt.schema import Job, Node, PodSet, Request
from kant_opt.units import MIB

from .openb import draw_arrivals, folder, gpu_milli, read_trace
from .openb_offline import SCALE, Charges, batch, best_bound, best_on_one_gpu, market_of


def pod(name: str, cpu: int = 1000, memory: int = 1, **asked: int | tuple[str, ...]) -> Job:
    podset = PodSet(count=1, cpu_milli=cpu, memory_bytes=memory * MIB, **asked)
    return Job(name=name, podsets=(podset,))


def node(name: str, gpus: int, cpu: int = 64_000, memory: int = 64, pool: str = "a") -> Node:
    return Node(name=name, gpus=gpus, cpu_milli=cpu, memory_bytes=memory * MIB, pools=(pool,))


CASES = {
    "two-thirds-of-a-gpu": (
        Request(nodes=(node("n", 2),), jobs=tuple(pod(f"p{i}", gpu_milli=600) for i in range(4))),
        1200,  # a GPU holds one share of 600
    ),
    "a-pair-that-fits": (
        Request(
            nodes=(node("n", 1),), jobs=(pod("p", gpu_milli=600), pod("q", gpu_milli=400), pod("r", gpu_milli=500))
        ),
        1000,
    ),
    "cpu-is-short": (
        Request(nodes=(node("n", 4, cpu=8_000),), jobs=tuple(pod(f"p{i}", cpu=4_000, gpus=1) for i in range(4))),
        2000,
    ),
    "memory-is-short": (
        Request(nodes=(node("n", 4, memory=8),), jobs=tuple(pod(f"p{i}", memory=8, gpus=1) for i in range(4))),
        1000,
    ),
    "too-large-for-any-node": (
        Request(nodes=(node("n", 4), node("m", 4)), jobs=(pod("p", gpus=8), pod("q", gpus=4))),
        4000,
    ),
    "tied-to-a-model": (
        Request(
            nodes=(node("n", 2), node("m", 2, pool="b")),
            jobs=(pod("p", gpus=2, pools=("b",)), pod("q", gpus=2, pools=("b",))),
        ),
        2000,
    ),
    "all-fit": (Request(nodes=(node("n", 8),), jobs=(pod("p", gpus=2), pod("q", gpu_milli=10))), 2010),
}


@pytest.mark.parametrize("name", CASES)
def test_the_best_prices_prove_what_is_known(name: str) -> None:
    request, most = CASES[name]
    assert best_bound(market_of(request)) == most
    assert batch(request) == most


def test_the_knapsack_of_one_gpu_is_the_best_of_all_sets() -> None:
    draw = Random(1)
    for _ in range(30):
        worth = {10 * draw.randint(15, 100): draw.randint(0, 100) for _ in range(4)}
        pool = [size for size in worth for _ in range(1000 // size)]
        sets = (some for n in range(len(pool) + 1) for some in combinations(pool, n) if sum(some) <= 1000)
        found = best_on_one_gpu(worth)
        assert sum(size * n for size, n in found.items()) <= 1000
        assert sum(worth[size] * n for size, n in found.items()) == max(sum(worth[s] for s in some) for some in sets)


def test_any_prices_are_above_what_is_placed() -> None:
    draw = Random(2)
    for seed in range(20):
        nodes = tuple(node(f"n{i}", draw.choice((1, 2, 4)), cpu=draw.choice((4_000, 16_000))) for i in range(3))
        sizes = [{"gpus": 1}, {"gpus": 2}, {"gpu_milli": 300}, {"gpu_milli": 700}]
        jobs = tuple(pod(f"p{i}", cpu=draw.choice((1_000, 3_000)), **draw.choice(sizes)) for i in range(8))
        request = Request(nodes=nodes, jobs=jobs)
        outcome = place(request, backend="e-binpack")
        assert outcome.placement is not None
        demand = {job.name: gpu_milli(job) for job in jobs}
        used = sum(demand[job.job] for job in outcome.placement.jobs)
        market = market_of(request)
        assert used <= best_bound(market) <= 1000 * sum(n.gpus for n in nodes), seed
        for _ in range(10):
            prices = {kind: draw.randint(0, 1000 * SCALE) for kind in market.kinds}
            charges = {host: Charges(draw.randint(0, SCALE), draw.randint(0, SCALE)) for host in market.classes}
            assert used <= market.bound(prices, charges), seed


@pytest.mark.slow
@pytest.mark.skipif(folder() is None, reason="the openb trace is not beside the checkout")
def test_a_batch_of_the_trace_is_within_a_point_of_the_bound() -> None:
    arrivals = draw_arrivals(read_trace(), 42)
    gpus = 1000 * sum(node.gpus for node in arrivals.nodes)
    most = best_bound(market_of(arrivals))
    assert batch(arrivals) <= most < gpus  # not all GPUs can be used: the shares on hand fill no more
    assert batch(arrivals) >= 0.99 * most
