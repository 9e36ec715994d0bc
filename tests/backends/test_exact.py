"""The exact backends against all placements of small requests: the same optimum on every level, and a true bound."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from kant_opt.backends import BACKENDS, Answer, Backend, Deadline, Task
from kant_opt.backends.exact import Exact
from kant_opt.engine.place import to_placement
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.schema import Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.objective import evaluate
from kant_opt.testing.strategies import requests
from kant_opt.verify import RequestIndex, verify
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

EXACT = [name for name, backend in BACKENDS.items() if backend.proves]


def calm(examples: int) -> settings:
    return settings(
        deadline=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )


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


def meets_the_optimum(request: Request, backend: str) -> None:
    try:
        best = brute_force(request, limit=20_000)
    except InputError:
        return  # too many to try them all
    registered = BACKENDS[backend]
    assert isinstance(registered, Exact)
    every_level = Exact(backend, registered.solver, counting=False)  # nothing settled before the solver is asked
    answer, values = solve(request, every_level)
    assert values == best.values, answer.notes
    assert {name: bound.value for name, bound in answer.bounds.items()} == dict(best.values), answer.notes


def test_all_three_are_there() -> None:
    assert EXACT == ["cp-sat", "milp", "milp-cbc"]
    assert all(BACKENDS[name].available() for name in EXACT)


@calm(300)
@given(requests(max_nodes=4, max_jobs=3))
def test_cp_sat_finds_and_proves_the_optimum_of_every_level(request: Request) -> None:
    meets_the_optimum(request, "cp-sat")


@calm(300)
@given(requests(max_nodes=4, max_jobs=3))
def test_milp_finds_and_proves_the_optimum_of_every_level(request: Request) -> None:
    meets_the_optimum(request, "milp")


@calm(40)
@given(requests(max_nodes=4, max_jobs=3))
def test_cbc_finds_and_proves_the_optimum_of_every_level(request: Request) -> None:
    meets_the_optimum(request, "milp-cbc")


@pytest.mark.slow
@pytest.mark.parametrize("backend", EXACT)
def test_two_thousand_requests(backend: str) -> None:
    calm(2000)(given(requests(max_nodes=5, max_jobs=3))(lambda request: meets_the_optimum(request, backend)))()
