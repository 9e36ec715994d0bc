"""GPUs in use over a plan's time, against counts of what holds them second by second and the cluster's measures."""

from __future__ import annotations

import random

import pytest

from kant_opt.metrics import Placed, cluster_measures
from kant_opt.metrics.occupancy import occupancy
from kant_opt.planning import plan
from kant_opt.schema import Allocation, Gpu, Hold, Job, Node, PlacedJob, Placement, Plan, PodSet, Request, RunRecord


def mixed(seed: int) -> Request:
    """Six nodes, one of them closed and one with an ill GPU; whole GPUs and shares; some ends unknown."""
    draw = random.Random(seed)
    nodes = [Node(name=f"n{i}", gpus=4, schedulable=i != 5) for i in range(6)]
    nodes[4] = nodes[4].model_copy(update={"gpu_details": (Gpu(index=1, healthy=False),)})
    held = (
        Allocation(job="a", holds=(Hold(node="n0", gpus=2), Hold(node="n5", gpus=4)), until_s=draw.randint(1, 30)),
        Allocation(job="b", holds=(Hold(node="n4", gpus=2, gpu_indices=(0, 1)),), until_s=draw.randint(1, 30)),
        Allocation(job="c", holds=(Hold(node="n1", pods=1, gpu_milli=300, gpu_indices=(2,)),)),
        Allocation(job="late", holds=(Hold(node="n2", gpus=1),), until_s=-5),
    )
    jobs = tuple(
        Job(
            name=f"j{i}",
            walltime_s=draw.randint(1, 20),
            podsets=(PodSet(count=draw.randint(1, 3), **draw.choice(({"gpus": 2}, {"gpus": 4}, {"gpu_milli": 400}))),),
        )
        for i in range(8)
    )
    return Request(nodes=tuple(nodes), allocations=held, jobs=jobs)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_clusters_measure_at_every_second(seed: int) -> None:
    """At each second what runs is a request of its own, and its allocated GPUs are measured from that."""
    request = mixed(seed)
    found = plan(request)
    used = occupancy(request, found)
    for now in range(60):
        running = tuple(a for a in request.allocations if a.until_s is None or now < max(a.until_s, request.now_s + 1))
        runs = [run for run in found.jobs if run.start_s <= now and (run.end_s is None or now < run.end_s)]
        placed = Placed(
            request.model_copy(update={"allocations": running}),
            Placement(jobs=tuple(PlacedJob(job=run.job, pods=run.pods) for run in runs)),
        )
        measured = cluster_measures(placed)
        assert used.at(now) == pytest.approx(1000 * measured.allocated_gpus)
        assert used.healthy_milli == 1000 * measured.gpus


@pytest.mark.parametrize("seed", range(3))
def test_the_mean_is_the_area(seed: int) -> None:
    request = mixed(seed)
    used = occupancy(request, plan(request))
    assert used.mean(3, 45) == pytest.approx(sum(used.at(t) for t in range(3, 45)) / 42 / used.healthy_milli)
    assert used.mean(3, 3) is None


def test_a_node_is_never_fuller_than_full() -> None:
    """Nine GPUs held of eight, as where GPUs vanished: eight are in use, also after one of the jobs ends."""
    held = (
        Allocation(job="a", holds=(Hold(node="n", gpus=8),), until_s=20),
        Allocation(job="b", holds=(Hold(node="n", gpus=1),), until_s=10),
    )
    empty = Plan(status="FEASIBLE", policy="", order="", now_s=0, run=RunRecord(backend=""))
    used = occupancy(Request(nodes=(Node(name="n", gpus=8),), allocations=held), empty)
    assert (used.times_s, used.used_milli) == ((0, 10, 20), (8000, 8000, 0))


def test_without_gpus_there_is_no_ratio() -> None:
    empty = Plan(status="FEASIBLE", policy="", order="", now_s=7, run=RunRecord(backend=""))
    used = occupancy(Request(nodes=(Node(name="n", cpu_milli=1000),)), empty)
    assert (used.times_s, used.used_milli, used.mean(7, 9)) == ((7,), (0,), None)
