"""Traffic of `all_to_all` gangs is a quadratic assignment problem: judged by one that knows nothing of placements."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from kant_opt import Job, Objective, Request, place
from kant_opt.testing.builders import gang, racks

from .known import folder
from .qap import Qap, both_ways, is_gangs, is_ultrametric, least_cost, qap_of, read_qap

needs_data = pytest.mark.skipif(folder("qaplib") is None, reason="the benchmarks are not beside the checkout")

SMALL = {"nug5": 50, "nug6": 86, "nug7": 148, "nug8": 214, "esc8a": 2, "tai5a": 12902, "tai6a": 29432, "tai8a": 77502}
"""Optima as QAPLIB gives them: they judge the judge."""


def instance(name: str) -> Qap:
    found = folder("qaplib", "instance", name)
    assert found is not None
    return read_qap(found / f"{name}.txt")


def instances() -> list[Path]:
    data = folder("qaplib", "instance")
    return sorted(p for p in data.glob("*/*.txt") if p.stem == p.parent.name) if data else []


@needs_data
@pytest.mark.parametrize("name", SMALL)
def test_brute_force_agrees_with_qaplib(name: str) -> None:
    asked = instance(name)
    assert least_cost(asked.first, asked.second) == SMALL[name]


@needs_data
def test_no_instance_of_qaplib_is_traffic_in_a_tree() -> None:
    """Four have the flow of gangs (esc16f has none at all), and no distances but that zero matrix come from a tree."""
    of_gangs, of_trees = set(), set()
    for path in instances():
        asked = read_qap(path)
        for matrix in (both_ways(asked.first), both_ways(asked.second)):
            if is_gangs(matrix):
                of_gangs.add(asked.name)
            if is_ultrametric(matrix):
                of_trees.add(asked.name)
    assert (of_gangs, of_trees) == ({"esc8a", "esc16f", "tai64c", "tai256c"}, {"esc16f"})


def draw(seed: int) -> Request:
    """Return gangs on two or three levels of uneven racks, at most nine GPUs, weights at random."""
    random = Random(seed)
    while True:
        shape = random.choice(["%d,%d|%d|%d", "%d|%d|%d/%d|%d", "%d,%d|%d/%d|%d", "%d|%d/%d|%d/%d"])
        free = shape % tuple(random.randint(1, 3) for _ in range(shape.count("%d")))
        sizes = [random.randint(2, 4) for _ in range(random.randint(1, 3))]
        gpus = sum(int(digit) for digit in free if digit.isdigit())
        if sum(sizes) <= gpus <= 9:
            break
    weights = {level: random.randint(1, 5) for level in (("block", "rack") if "/" in free else ("rack",))}
    jobs = [gang(f"g{i}", size, 1, communication="all_to_all") for i, size in enumerate(sizes)]
    return racks(free, jobs=jobs, objective=Objective(order=("admitted", "traffic"), traffic_weights=weights))


def check(request: Request, backend: str) -> None:
    outcome = place(request, backend=backend)
    admitted, traffic = outcome.levels
    flows, distances = qap_of(request)
    assert is_gangs(flows)
    assert is_ultrametric(distances)
    assert admitted.value == admitted.bound == 1000 * sum(job.podsets[0].count for job in request.jobs)
    assert traffic.value == traffic.bound == least_cost(flows, distances) // 4  # pairs count once, and flow 1


@pytest.mark.parametrize("backend", ["cp-sat", "milp"])
@pytest.mark.parametrize("seed", range(4))
def test_traffic_is_the_least_cost_of_the_assignment(seed: int, backend: str) -> None:
    check(draw(seed), backend)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cp-sat", "milp", "milp-cbc"])
@pytest.mark.parametrize("seed", range(4, 64))
def test_traffic_is_the_least_cost_of_many_assignments(seed: int, backend: str) -> None:
    check(draw(seed), backend)


@pytest.mark.parametrize("pods", [9, 16, 24])
def test_one_gang_fills_the_largest_racks(pods: int) -> None:
    """On one level pairs apart are fewest where the largest racks are full: moving a pod to a fuller rack never adds
    any. So the optimum of sizes beyond brute force is known too."""
    rooms = [7, 6, 6, 4, 3]
    job: Job = gang("g", pods, 1, communication="all_to_all")
    request = racks("|".join(map(str, rooms)), jobs=[job], objective=Objective(order=("admitted", "traffic")))
    left, together = pods, 0
    for room in rooms:
        here = min(room, left)
        together, left = together + here * (here - 1) // 2, left - here
    traffic = place(request, backend="cp-sat").levels[1]
    assert traffic.value == traffic.bound == pods * (pods - 1) // 2 - together
