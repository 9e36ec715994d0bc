"""The exact backends against all placements of small requests: the same optimum on every level, and a true bound."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given

from kant_opt.backends import BACKENDS, Answer, Backend, Deadline, Task
from kant_opt.backends.exact import Exact
from kant_opt.engine.place import to_placement
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.schema import Objective, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, racks
from kant_opt.testing.calm import calm
from kant_opt.testing.objective import evaluate
from kant_opt.testing.strategies import requests
from kant_opt.verify import RequestIndex, verify
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

EXACT = [name for name, backend in BACKENDS.items() if backend.proves]


def solve(request: Request, backend: Backend) -> tuple[Answer, tuple[tuple[str, int], ...]]:
    """Return the backend's answer and the value of its levels, after the verifier had nothing against it."""
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    free, quotas = Free(cluster), Quotas(cluster)
    task = Task(cluster, free, quotas, compile_gangs(cluster), "batch", request.limits, Deadline(None))
    answer = backend.solve(task)
    placement = to_placement(cluster, answer)
    assert verify(request, placement) == ()
    assert {id(g) for g, _ in answer.taken} | {id(g) for g, _ in answer.failed} == {id(g) for g in task.gangs}
    return answer, evaluate(RequestIndex(request), placement)


def meet_the_optimum(request: Request, *backends: str) -> None:
    try:
        best = brute_force(request, limit=6_000)
    except InputError:
        return  # too many to try them all
    for name in backends:
        registered = BACKENDS[name]
        assert isinstance(registered, Exact)
        every_level = Exact(name, registered.solver, counting=False)  # nothing settled before the solver is asked
        answer, values = solve(request, every_level)
        assert values == best.values, answer.notes
        assert {level: bound.value for level, bound in answer.bounds.items()} == dict(best.values), answer.notes


def test_all_three_are_there() -> None:
    assert EXACT == ["cp-sat", "milp", "milp-cbc"]
    assert all(BACKENDS[name].available() for name in EXACT)


@calm(300)
@given(requests(max_nodes=4, max_jobs=3))
def test_the_optimum_of_every_level_is_found_and_proven(request: Request) -> None:
    meet_the_optimum(request, "cp-sat", "milp")


@calm(40)
@given(requests(max_nodes=4, max_jobs=3))
def test_so_it_is_by_cbc(request: Request) -> None:
    meet_the_optimum(request, "milp-cbc")


@dataclass(frozen=True)
class Case:
    name: str
    request: Request
    optimum: dict[str, int]
    why: str


CASES = [
    Case(
        "two-sevens",
        racks("1,1,1,1,1,1,1|1,1,1,1,1,1,1", jobs=[gang(f"g{i}", n) for i, n in enumerate((3, 3, 2, 2, 2, 2))]),
        {"admitted[0]": 14_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "3 + 2 + 2 fills either rack; both threes in one rack leave single nodes and cut a gang",
    ),
    Case(
        "two-twos-beat-a-three",
        racks("1,1,1,1", jobs=[gang("three", 3), gang("two", 2), gang("deux", 2)]),
        {"admitted[0]": 4_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "taking the largest first admits 3 of 4 GPUs, the other two fill all",
    ),
    Case(
        "a-class-is-never-traded",
        racks("1,1,1,1", jobs=[gang("three", 3, priority=1), gang("two", 2), gang("deux", 2)]),
        {"admitted[1]": 3_000, "admitted[0]": 0, "traffic": 0, "broken_nodes": 0, "broken_leaves": 1},
        "the three is of the higher class, and beside it no two fits",
    ),
    Case(
        "pairs-across",
        racks("1,1|1,1", jobs=[gang("a", 4, communication="all_to_all")]),
        {"admitted[0]": 4_000, "traffic": 4, "broken_nodes": 0, "broken_leaves": 0},
        "two pods here and two there: of 6 pairs 2 are inside a rack",
    ),
    Case(
        "three-and-one-beats-two-and-two",
        racks("1,1,1|1,1", jobs=[gang("a", 4, communication="all_to_all")]),
        {"admitted[0]": 4_000, "traffic": 3, "broken_nodes": 0, "broken_leaves": 1},
        "3 x 1 pairs cross where 2 x 2 would; four pods do not fit in one rack",
    ),
    Case(
        "shares-in-pairs",
        racks("2", jobs=[gang(f"s{i}", 1, 0, gpu_milli=m) for i, m in enumerate((600, 600, 400, 400))]),
        {"admitted[0]": 2_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "a large and a small share on each GPU use both to the last thousandth",
    ),
    Case(
        "share-beside-a-whole-gpu",
        racks("2", jobs=[gang("whole", 1, 1), gang("share", 1, 0, gpu_milli=1), gang("late", 1, 1)]),
        {"admitted[0]": 2_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "two whole GPUs are worth 2000 thousandths, one and the share 1001; all three do not fit",
    ),
    Case(
        "weights-trade-a-gang-for-its-traffic",
        racks("1|1|1", jobs=[gang("a", 3)], objective=Objective(weights={"admitted": 1, "traffic": 1501})),
        {"weighted": 0},
        "its 3000 thousandths are less than 1501 for each of the two racks more",
    ),
    Case(
        "weights-keep-it",
        racks("1|1|1", jobs=[gang("a", 3)], objective=Objective(weights={"admitted": 1, "traffic": 1499})),
        {"weighted": -2},
        "2 x 1499 is 2 less than what it is worth",
    ),
]


@pytest.mark.parametrize("backend", EXACT)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_argued_cases(case: Case, backend: str) -> None:
    answer, values = solve(case.request, BACKENDS[backend])
    assert dict(values) == case.optimum, case.why
    assert {name: bound.value for name, bound in answer.bounds.items()} == case.optimum
    assert answer.limit_hit == ""


def test_work_limits_repeat_themselves() -> None:
    first, second = (solve(CASES[0].request, BACKENDS["cp-sat"])[0] for _ in range(2))
    assert [[t[1:] for t in taken] for _, taken in first.taken] == [[t[1:] for t in taken] for _, taken in second.taken]


def test_what_is_too_large_stays_with_the_greedy() -> None:
    registered = BACKENDS["cp-sat"]
    assert isinstance(registered, Exact)
    answer, values = solve(CASES[1].request, Exact("cp-sat", registered.solver, most=3))
    assert dict(values)["admitted[0]"] == 3_000
    assert answer.bounds == {}
    assert answer.limit_hit == "size"
    assert answer.notes == ["cp-sat: 4 variables are more than the 3 it builds; the answer is the one before it"]


@pytest.mark.slow
@pytest.mark.parametrize("backend", EXACT)
def test_two_thousand_requests(backend: str) -> None:
    calm(2000)(given(requests(max_nodes=5, max_jobs=3))(lambda request: meet_the_optimum(request, backend)))()
