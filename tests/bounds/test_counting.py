"""Counting bounds: each argument on a case where it alone proves the optimum; none lies on small random clusters."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest

from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import FabricSpec, Job, Node, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, racks, running


class Case(NamedTuple):
    name: str
    request: Request
    level: str
    optimum: int
    why: str


def _pools(nodes: dict[str, tuple[str, str]], jobs: list[Job]) -> Request:
    """Return nodes of 4 GPUs, name -> (rack, pool)."""
    made = tuple(Node(name=name, path=(rack,), gpus=4, pools=(pool,)) for name, (rack, pool) in nodes.items())
    return Request(fabric=FabricSpec(levels=("rack",)), nodes=made, jobs=tuple(jobs))


CASES = [
    Case(
        "odd-gaps",
        racks("3,3,3", gpus_total=4, jobs=[gang("one", 1, 1), *(gang(f"two{i}", 1, 2) for i in range(3))]),
        "broken_nodes",
        2,
        "three gaps of 3 GPUs, and only one pod that brings an odd number: one gap at most is filled",
    ),
    Case(
        "nodes-no-pod-may-use",
        racks(
            "2,2",
            gpus_total=4,
            jobs=[gang("there", 1, 2, nodes=("r1n1",)), gang("too", 1, 1, nodes=("r1n1",))],
        ),
        "broken_nodes",
        1,
        "the other node is out of reach",
    ),
    Case(
        "three-nodes-in-racks-of-two",
        racks("4,4|4,4", jobs=[gang("a", 3, 4)]),
        "broken_leaves",
        1,
        "three nodes are no sum of whole racks of two",
    ),
    Case(
        "four-nodes-in-racks-of-two-and-three",
        racks("4,4|4,4,4", jobs=[gang("a", 2, 4), gang("b", 2, 4)]),
        "broken_leaves",
        1,
        "sums of racks are 2, 3 and 5",
    ),
    Case(
        "small-pods-fill-nodes",
        racks("4,4|4,4", jobs=[gang("p", 6, 2, communication="none")]),
        "broken_leaves",
        1,
        "six pods of 2 GPUs, no node broken: three nodes, whatever pod goes where",
    ),
    Case(
        "a-rack-that-cannot-be-filled",
        _pools(
            {"n1": ("r1", "a"), "n2": ("r1", "b"), "n3": ("r2", "a"), "n4": ("r2", "b")},
            [gang("a", 2, 4, pools=("a",), communication="none")],
        ),
        "broken_leaves",
        2,
        "both racks have a node that no gang may use",
    ),
    Case(
        "one-pool-is-short",
        _pools(
            {"n1": ("r1", "a"), "n2": ("r1", "b"), "n3": ("r1", "b")},
            [gang("a", 1, 4, pools=("a",)), gang("c", 2, 3, pools=("a",)), gang("b", 1, 2, pools=("b",))],
        ),
        "admitted[0]",
        6000,
        "4 GPUs in pool a and 2 of those asked for in pool b, though the GPUs of all pools hold all",
    ),
    Case(
        "higher-class-takes-the-pool",
        _pools(
            {"n1": ("r1", "a"), "n2": ("r1", "b")},
            [gang("high", 1, 3, pools=("a",), priority=1), gang("low", 1, 2, pools=("a",))],
        ),
        "admitted[0]",
        0,
        "of pool a the higher class leaves 1 GPU",
    ),
    Case(
        "gaps-too-small-for-gangs",
        racks("4,2,2", gpus_total=4, jobs=[gang("a", 1, 4), gang("b", 1, 4), gang("p", 1, 1)]),
        "admitted[0]",
        5000,
        "pods of 4 GPUs have one node, whatever the gaps hold in all",
    ),
    Case(
        "many-alike",
        racks("4|4", jobs=[gang(f"g{i}", 1, 3) for i in range(3)]),
        "admitted[0]",
        6000,
        "of three pods of 3 GPUs two add up to no more than 8",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_bound_is_the_optimum(case: Case) -> None:
    assert dict(brute_force(case.request).values)[case.level] == case.optimum, case.why
    (level,) = [level for level in place(case.request).levels if level.name == case.level]
    assert (level.value, level.bound, level.bound_source) == (case.optimum, case.optimum, "counting"), case.why


def _requests(seed: int, count: int) -> Iterator[Request]:
    """Yield small clusters with GPUs only: gaps, closed nodes, two pools, two classes, elastic gangs, shares."""
    draw = Random(seed)
    for _ in range(count):
        nodes, held = [], {}
        for i in range(draw.randint(2, 5)):
            gpus = draw.choice((4, 4, 4, 2))
            closed = draw.random() < 0.07
            pools = (draw.choice("ab"),)
            nodes.append(Node(name=f"n{i}", path=(f"r{i // 2}",), gpus=gpus, pools=pools, schedulable=not closed))
            if draw.random() < 0.5:
                held[f"n{i}"] = draw.randint(1, gpus)
        yield Request(
            fabric=FabricSpec(levels=("rack",)),
            nodes=tuple(nodes),
            allocations=(running("old", held),) if held else (),
            jobs=tuple(_job(f"j{i}", draw) for i in range(draw.randint(1, 4))),
        )


def _job(name: str, draw: Random) -> Job:
    rules: dict[str, object] = {"priority": draw.choice((0, 0, 1)), "gpus": draw.choice((0, 1, 1, 2, 2, 3, 4))}
    if draw.random() < 0.15:
        rules |= {"gpus": 0, "gpu_milli": draw.choice((500, 250))}
    if draw.random() < 0.4:
        rules["pools"] = (draw.choice("ab"),)
    if draw.random() < 0.1:
        rules["min_count"] = 1
    return gang(name, draw.randint(1, 2), **rules)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seed", "count"),
    [(1, 30), pytest.param(2, 600, marks=pytest.mark.slow), pytest.param(3, 600, marks=pytest.mark.slow)],
)
def test_no_bound_lies(seed: int, count: int) -> None:
    for request in _requests(seed, count):
        try:
            best = dict(brute_force(request, limit=3_000).values)
        except InputError:
            continue  # too many placements to try
        for level in place(request, backend="random").levels:
            optimum = best[level.name]
            assert level.bound is not None
            if level.sense == "max":
                assert level.value <= optimum <= level.bound, (level, request)
            else:
                assert level.bound <= optimum <= level.value, (level, request)
            if level.value != optimum:
                break  # later levels compare only where this one is equal
