"""Bounds of the objective levels: argued for weighted sums, and rents found once for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends import BACKENDS, Deadline, Task
from kant_opt.backends.exact import Exact
from kant_opt.backends.lp import maximise
from kant_opt.bounds import Bound
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.schema import Objective, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, racks
from kant_opt.testing.strategies import requests
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@dataclass(frozen=True)
class Case:
    name: str
    request: Request
    value: int
    bound: int
    source: str
    why: str


# 4 + 3 and 4: 11 of 12 GPUs, so that one node is broken whatever else is placed; counting sees none.
UNEVEN = racks("7|5", jobs=[gang(name, 1, gpus) for name, gpus in zip("abcd", (4, 4, 3, 3), strict=True)])


def weighted(nodes: str, sizes: dict[str, int], **weights: int) -> Request:
    return racks(nodes, jobs=[gang(name, n) for name, n in sizes.items()], objective=Objective(weights=weights))


CASES = [
    Case(
        "all-fit-inside-racks",
        weighted("1,1|1,1", {"a": 2, "b": 2}, admitted=1, traffic=500),
        -4000,
        -4000,
        "counting",
        "every gang is worth its 2000 thousandths and has no traffic",
    ),
    Case(
        "no-more-than-there-is",
        weighted("1,1|1,1", {"a": 2, "b": 2, "c": 2}, admitted=2),
        -8000,
        -8000,
        "counting",
        "three gangs are worth 12000, but only 4 GPUs are there, of 2 x 1000 each",
    ),
    Case(
        "the-last-one-is-cut",
        weighted("1,1,1|1,1", {"a": 2, "b": 2, "c": 2}, admitted=1),
        -4000,
        -5000,
        "counting",
        "five GPUs hold two and a half of the twos; only whole ones count",
    ),
    Case(
        "traffic-costs-a-gang-its-gain",
        weighted("1|1|1", {"a": 3}, admitted=1, traffic=1400),
        -200,
        -200,
        "counting",
        "3000 for its GPUs less 1400 for each of two racks more",
    ),
    Case(
        "rents-see-what-no-gang-sees-alone",
        weighted("1,1,1,1|1,1,1,1", {"a": 3, "b": 3, "c": 2}, admitted=1000, traffic=1),
        -7_999_999,
        -7_999_999,
        "rents",
        "alone each fits into a rack of four; together the threes leave two single nodes for the two",
    ),
    Case(
        "terms-that-nothing-pushes-down",
        weighted("8", {"a": 1}, admitted=1, broken_nodes=7, broken_leaves=5),
        -993,
        -1000,
        "counting",
        "a pod of 1 GPU breaks its node of 8; counting would leave it out to mend that",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_weighted_sum_has_a_bound(case: Case) -> None:
    (level,) = place(case.request, backend="e-binpack").levels
    assert (level.value, level.bound, level.bound_source) == (case.value, case.bound, case.source), case.why


WEIGHTS = st.fixed_dictionaries(
    {}, optional={term: st.integers(0, 2000) for term in ("admitted", "traffic", "broken_nodes", "broken_leaves")}
).filter(bool)


@CALM
@given(requests(max_nodes=4, max_jobs=3), WEIGHTS)
def test_no_placement_is_below_the_bound_of_a_weighted_sum(request: Request, weights: dict[str, int]) -> None:
    request = request.model_copy(update={"objective": Objective.model_validate({"weights": weights})})
    try:
        ((_, least),) = brute_force(request, limit=6_000).values
    except InputError:
        return  # too many to try them all
    (level,) = place(request, backend="e-binpack").levels
    assert level.bound is not None
    assert level.bound <= least <= level.value


def test_rents_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster of "rents-see-...": asked for by the search, to know when to stop, and by the engine."""
    asked = []

    def counted(*args: Any) -> Any:
        asked.append(args)
        return maximise(*args)

    monkeypatch.setattr("kant_opt.backends.rents.maximise", counted)
    request = racks("1,1,1,1|1,1,1,1", jobs=[gang("a", 3), gang("b", 3), gang("c", 2)])
    outcome = place(request, backend="search")
    assert outcome.certificate is not None
    assert outcome.certificate.bound == 1
    assert len(asked) == 1


def test_auto_asks_a_solver_only_where_the_search_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a process was started")

    proven = racks("1,1|1,1", jobs=[gang("a", 2), gang("b", 2)])
    evenly = racks("1,1,1|1,1,1", jobs=[gang("a", 4, preferred_level="rack", balance=True)])
    with monkeypatch.context() as patched:
        patched.setattr("kant_opt.backends.worker.Popen", refuse)
        for name, request in (("proven", proven), ("a wish that no level counts", evenly)):
            assert place(request).run.backend == "search", name
        assert place(UNEVEN, prove=False).run.backend == "search"
        assert place(UNEVEN, order="online").run.backend == "e-binpack"
    outcome = place(UNEVEN)
    assert (outcome.status, outcome.run.backend) == ("OPTIMAL", "search, cp-sat")
    assert outcome.levels[0].value == 11_000


def test_a_bound_that_is_known_counts_while_the_values_before_it_stay() -> None:
    """The greedy admits the three, the solver both twos. What was known of traffic beside the three is void then."""
    request = racks("1,1,1,1", jobs=[gang("three", 3), gang("two", 2), gang("deux", 2)])
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    task = Task(
        cluster, Free(cluster), Quotas(cluster), compile_gangs(cluster), "batch", request.limits, Deadline(None)
    )
    answer = BACKENDS["e-binpack"].solve(task)
    answer.bounds = {"admitted[0]": Bound(5_000, "told"), "traffic": Bound(99, "told")}
    exact = BACKENDS["cp-sat"]
    assert isinstance(exact, Exact)
    exact.improve(task, answer)
    assert answer.bounds["admitted[0]"].value == 4_000
    assert answer.bounds["traffic"].source != "told"
