"""The replay of openb: the protocol keeps its promises, and the allocation reaches the published figures."""

from __future__ import annotations

from functools import cache
from statistics import mean

import pytest

from kant_opt.schema import Job, Node, PodSet, Request
from kant_opt.verify import verify

from .openb import Replay, draw_arrivals, folder, gpu_milli, read_trace, replay

needs_trace = pytest.mark.skipif(folder() is None, reason="the openb trace is not beside the checkout")

SMALL = Request(
    nodes=tuple(Node(name=f"n{i}", gpus=8, cpu_milli=64_000) for i in range(4)),
    jobs=(
        Job(name="cpu", podsets=(PodSet(count=1, cpu_milli=4_000),)),
        Job(name="share", podsets=(PodSet(count=1, gpu_milli=300, cpu_milli=1_000),)),
        Job(name="whole", podsets=(PodSet(count=1, gpus=2, cpu_milli=8_000),)),
    ),
)
SEEDS = (42, 43, 44)

trace = cache(read_trace)


@cache
def run(backend: str, seed: int) -> Replay:
    return replay(trace(), backend, seed)


def allocated(backend: str) -> float:
    return mean(run(backend, seed).allocated_percent() for seed in SEEDS)


@pytest.mark.parametrize("load", [0.5, 1.3])
def test_pods_arrive_until_the_load_is_asked_for_and_no_longer(load: float) -> None:
    demand = [gpu_milli(job) for job in draw_arrivals(SMALL, seed=1, load=load).jobs]
    assert sum(demand[:-1]) < load * 32_000 <= sum(demand)


def test_a_seed_is_a_sequence() -> None:
    first, again, other = (draw_arrivals(SMALL, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_nobody_leaves_and_what_fits_is_a_part_of_what_came() -> None:
    found = replay(SMALL, "best-fit", seed=1)
    series = [found.allocated_percent(load) for load in (0.0, 0.25, 0.5, 1.0, 1.3)]
    assert series[0] == 0
    assert series == sorted(series)
    assert series[-1] <= 100
    assert found.placed_until(1.3) == found.placement
    assert len(found.placement.jobs) < len(found.arrivals.jobs), "130 % do not fit"
    assert verify(found.arrivals, found.placement, found.fabric) == ()


@needs_trace
def test_the_empty_fleet_is_as_unusable_as_published() -> None:
    """No policy has a say yet: published are 13.88 to 14.08, means over inflated lists; ours is of the list itself."""
    found = replay(trace(), "first-fit", seed=42, load=0.001)
    assert found.unusable_percent(0) == pytest.approx(13.97, abs=0.15)


@needs_trace
def test_while_there_is_room_for_all_the_allocation_is_what_was_asked_for() -> None:
    found = replay(trace(), "e-binpack", seed=42, load=0.3)
    asked = sum(gpu_milli(job) for job in found.arrivals.jobs)
    assert found.allocated_percent() == pytest.approx(100 * asked / found.total_milli)


@needs_trace
@pytest.mark.slow
@pytest.mark.parametrize(("backend", "published"), [("random", 87.47), ("best-fit", 93.08)])
def test_the_baselines_reach_what_was_published_for_them(backend: str, published: float) -> None:
    """Three seeds differ by up to 0.4 in their mean from the ten seeds published, whose draws cannot be repeated."""
    assert allocated(backend) == pytest.approx(published, abs=1.0)


@needs_trace
@pytest.mark.slow
def test_e_binpack_allocates_more_than_best_fit_and_than_fgd_as_published() -> None:
    """Published means of ten seeds: BestFit 93.08, FGD 95.39; no rule is broken on the way."""
    assert allocated("e-binpack") > max(95.39, allocated("best-fit"))
    found = run("e-binpack", SEEDS[0])
    assert verify(found.arrivals, found.placement, found.fabric) == ()
