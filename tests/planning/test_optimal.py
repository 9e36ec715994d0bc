"""The policy `optimal`: argued cases, trying every order, and what holds for any queue."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kant_opt.planning.optimal_relaxed as optimal_relaxed
import kant_opt.planning.optimal_search as optimal_search
from kant_opt.planning import plan
from kant_opt.schema import Job, Limits, Plan, Request, Reservation
from kant_opt.testing.builders import gang, racks, running
from kant_opt.testing.strategies import requests

LIMITS = Limits(search_states=300_000)
POLICIES = ("optimal", "optimal-makespan", "optimal-slowdown", "optimal-batch")


def planned(request: Request, policy: str = "optimal", limits: Limits = LIMITS) -> Plan:
    """Return a plan of the queue in the order given; `plan` verifies it."""
    return plan(request, policy=policy, order="fifo", limits=limits)


def values(found: Plan) -> dict[str, int]:
    return {level.name: level.value for level in found.levels}


def bounds(found: Plan) -> dict[str, int | None]:
    return {level.name: level.bound for level in found.levels}


def starts(found: Plan) -> dict[str, int]:
    return {run.job: run.start_s for run in found.jobs}


def flat(sizes: list[int], lengths: list[int], nodes: int = 4, **fields: Any) -> Request:
    """Return gangs of whole one-GPU nodes in one rack: jobs j0, j1, ... in the order of the queue."""
    pairs = enumerate(zip(sizes, lengths, strict=True))
    return racks(",".join("1" * nodes), jobs=[gang(f"j{i}", n, walltime_s=s) for i, (n, s) in pairs], **fields)


# -- argued cases ----------------------------------------------------------------------------------


def test_seventeen_jobs_in_seven_waves() -> None:
    """28 nodes' worth of jobs of one length on 4 nodes take at least 28 / 4 = 7 waves.

    In the order of the queue they take 8: behind 1+1+2, 4 x 1, 4 x 1 and 4 come 3, then 2+2, then 2, then 3.
    """
    sizes = [1, 1, 2, *[1] * 8, 4, 3, 2, 2, 2, 3]
    request = flat(sizes, [60] * 17)
    for policy in ("fifo", "easy", "conservative"):
        assert values(planned(request, policy))["makespan"] == 8 * 60
    for policy in ("optimal", "optimal-makespan", "optimal-batch"):
        found = planned(request, policy, Limits())
        assert values(found)["makespan"] == bounds(found)["makespan"] == 7 * 60
        assert found.status == "OPTIMAL"


def test_the_short_go_first_but_for_the_head() -> None:
    """Each takes all nodes. The head starts at 0 as under EASY; then shortest first: 0 + 50 + 51 + 53 = 154."""
    found = planned(flat([4, 4, 4, 4], [50, 9, 2, 1]))
    assert starts(found) == {"j0": 0, "j3": 50, "j2": 51, "j1": 53}
    assert (values(found)["total_wait"], bounds(found)["total_wait"]) == (154, 154)


def test_a_batch_knows_no_head() -> None:
    """The second node comes free at 2. The head of 3 s at 0 leaves the one of 4 s to it: 2 + 4 = 6; the other way
    round it is max(4, 2 + 3) = 5.
    """
    held = running("old", {"r1n2": 1}, until_s=2)
    request = flat([1, 1], [3, 4], nodes=2, allocations=(held,))
    for policy, start, end in (("optimal-makespan", 0, 6), ("optimal-batch", 2, 5)):
        found = planned(request, policy)
        assert starts(found)["j0"] == start
        assert values(found)["makespan"] == bounds(found)["makespan"] == end


def test_priority_classes_are_never_traded() -> None:
    """The later job of the higher class goes before two short ones, though waits would sum up to less."""
    jobs = [
        gang("head", 1, walltime_s=10, priority=1),
        gang("low1", 1, walltime_s=1),
        gang("low2", 1, walltime_s=1),
        gang("high", 1, walltime_s=50, priority=1),
    ]
    found = plan(racks("1", jobs=jobs), policy="optimal", limits=LIMITS)
    assert starts(found) == {"head": 0, "high": 10, "low1": 60, "low2": 61}
    assert values(found)["total_wait[1]"] == bounds(found)["total_wait[1]"] == 10
    assert values(found)["total_wait[0]"] == bounds(found)["total_wait[0]"] == 121


def test_slowdown_counts_waits_by_length() -> None:
    """Both behind the head for 40 s: the one of 20 s before the one of 80 s, 40 / 20 + 60 / 80 = 2.75."""
    found = planned(flat([1, 1, 1], [40, 80, 20], nodes=1), "optimal-slowdown")
    assert starts(found) == {"j0": 0, "j2": 40, "j1": 60}
    assert values(found)["bounded_slowdown"] == bounds(found)["bounded_slowdown"] == 2_750_000_000


def test_a_gap_before_maintenance_is_used() -> None:
    """All nodes close in [10, 20). The job of 8 s and the one of 2 s fill the time before it, 9 s would not."""
    closed = Reservation(name="maintenance", nodes=("r1n1", "r1n2"), start_s=10, end_s=20)
    found = planned(flat([2, 2, 2], [8, 9, 2], nodes=2, reservations=(closed,)), "optimal-makespan")
    assert starts(found) == {"j0": 0, "j2": 8, "j1": 20}
    assert values(found)["makespan"] == bounds(found)["makespan"] == 29


def test_jobs_that_follow_others() -> None:
    """b follows a: the chain of 30 + 30 is the makespan, and c has to fill the holes."""
    jobs = [
        gang("c", 1, walltime_s=25),
        gang("a", 1, walltime_s=30),
        gang("b", 2, walltime_s=30, after=("a",)),
    ]
    found = planned(racks("1,1", jobs=jobs), "optimal-makespan")
    assert values(found)["makespan"] == bounds(found)["makespan"] == 60
    assert starts(found)["b"] == 30


def test_room_comes_free_when_running_jobs_end() -> None:
    """Two of three nodes are held until 100: the wide job cannot start before, the narrow ones fill the third."""
    held = running("old", {"r1n1": 1, "r1n2": 1}, until_s=100)
    found = planned(flat([1, 3, 1, 1], [50, 10, 45, 5], nodes=3, allocations=(held,)), "optimal-makespan")
    assert values(found)["makespan"] == bounds(found)["makespan"] == 110
    assert starts(found)["j1"] == 100


def test_gangs_that_stay_in_a_rack() -> None:
    """Racks of 2 and 2: two gangs of 2 in one rack each and two of 1 need two waves; three gangs of 2 as well.

    A gang of 3 over both racks at the same time as one of 2 in one rack cannot be: 5 nodes of 4.
    """
    jobs = [gang(f"j{i}", 2, required_level="rack", walltime_s=10) for i in range(3)]
    found = planned(racks("1,1|1,1", jobs=[gang("one", 1, walltime_s=10), *jobs]), "optimal-makespan")
    assert values(found)["makespan"] == bounds(found)["makespan"] == 20  # 7 nodes' worth on 4
    # a rack with one node held is of no use to a gang of 2 in a rack, though 3 nodes are free: one at a time
    held = running("old", {"r2n1": 1})
    found = planned(racks("1,1|1,1", jobs=jobs, allocations=(held,)), "optimal-makespan")
    assert values(found)["makespan"] == bounds(found)["makespan"] == 30


def test_an_unknown_end_takes_what_is_left() -> None:
    """Nobody knows when the second job ends: it comes last. As head of the queue it starts at once."""
    later = [gang("a", 1, walltime_s=10), gang("x", 1), gang("b", 1, walltime_s=20)]
    found = planned(racks("1", jobs=later))
    assert starts(found) == {"a": 0, "b": 10, "x": 30}
    first = [gang("x", 1), gang("a", 1, walltime_s=10)]
    found = planned(racks("1", jobs=first))
    assert starts(found) == {"x": 0}
    assert [job.job for job in found.unplanned] == ["a"]


def test_jobs_that_come_later_are_planned_when_they_come() -> None:
    """Until 5 nobody knows of c. Then b, the head of the queue by now, keeps the start that EASY gives it, 20."""
    jobs = [gang("a", 1, walltime_s=20), gang("b", 1, walltime_s=90), gang("c", 1, walltime_s=3, submit_s=5)]
    jobs += [gang("d", 1, walltime_s=40), gang("e", 1, walltime_s=50, submit_s=6)]
    found = planned(racks("1", jobs=jobs))
    assert starts(found) == {"a": 0, "b": 20, "c": 110, "d": 113, "e": 153}


# -- every order -----------------------------------------------------------------------------------


def least_total_wait(sizes: list[int], lengths: list[int], nodes: int) -> int:
    """Try every order behind the head on an array of seconds, each job at its earliest."""
    best = None
    for order in permutations(range(1, len(sizes))):
        free = [nodes] * (sum(lengths) + 1)
        total = 0
        for i in (0, *order):
            start = 0
            while min(free[start : start + lengths[i]]) < sizes[i]:
                start += 1
            for second in range(start, start + lengths[i]):
                free[second] -= sizes[i]
            total += start
        best = total if best is None else min(best, total)
    assert best is not None
    return best


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=5))
def test_trying_every_order_finds_nothing_better(queue: list[tuple[int, int]]) -> None:
    """Whole nodes of one kind: numbers say it all, so value and bound are the optimum. The head is at 0 in any case."""
    sizes, lengths = [size for size, _ in queue], [length for _, length in queue]
    found = planned(flat(sizes, lengths, nodes=3), limits=Limits())
    best = least_total_wait(sizes, lengths, 3)
    assert (values(found)["total_wait"], bounds(found)["total_wait"]) == (best, best)


# -- any queue -------------------------------------------------------------------------------------


@st.composite
def queues(draw: st.DrawFn) -> Request:
    """Requests with every rule, and with lengths, submissions and predecessors."""
    request = draw(requests(max_nodes=4, max_jobs=4))
    jobs: list[Job] = []
    for job in request.jobs:
        length = draw(st.none() | st.integers(1, 30) | st.integers(1, 30))
        after = tuple(other.name for other in jobs if draw(st.integers(0, 5)) == 0)
        changed = {"walltime_s": length, "submit_s": request.now_s + draw(st.integers(-20, 10)), "after": after}
        jobs.append(job.model_copy(update=changed))
    return request.model_copy(update={"jobs": tuple(jobs)})


def rank(found: Plan, names: list[str]) -> tuple[int, ...]:
    of = values(found)
    return (len(found.unplanned), *(of[name] for name in names))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(queues(), st.sampled_from(POLICIES))
def test_any_queue_gets_a_plan_that_keeps_every_rule(request: Request, policy: str) -> None:
    """`plan` raises where its verifier finds a fault; a bound that the plan beats would not be there."""
    found = planned(request, policy)
    assert {run.job for run in found.jobs} | {u.job for u in found.unplanned} <= {job.name for job in request.jobs}
    for level in found.levels:
        assert level.bound is not None
        assert level.bound <= level.value


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(queues())
def test_looking_at_few_times_only_lowers_bounds(request: Request) -> None:
    """A program that knows of one change only is a relaxation still: no plan beats it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimal_relaxed, "MOST_TIMES", 1)
        patch.setattr(optimal_relaxed, "MOST_MODES", 1)
        found = planned(request)
    assert all(level.bound is not None and level.bound <= level.value for level in found.levels)


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(queues())
def test_never_worse_than_easy_or_conservative(request: Request) -> None:
    """Where all are there from the start and have known ends: on waits and on the makespan; and the head no later."""
    jobs = tuple(
        job.model_copy(
            update={"walltime_s": job.walltime_s or 7, "submit_s": request.now_s, "after": (), "priority": 0}
        )
        for job in request.jobs
    )
    request = request.model_copy(update={"jobs": jobs})
    others = [planned(request, policy) for policy in ("easy", "conservative")]
    for policy, first in (("optimal", "total_wait"), ("optimal-makespan", "makespan")):
        found = planned(request, policy)
        for other in others:
            assert rank(found, [first]) <= rank(other, [first])
        easy = starts(others[0])
        head = next((job.name for job in jobs if job.name in easy), None)
        if head == jobs[0].name:
            assert starts(found)[head] <= easy[head]


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    requests(max_nodes=4, max_jobs=3, without={"groups", "elastic"}),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
)
def test_no_order_beats_the_bound(request: Request, lengths: list[int]) -> None:
    """Under every rule: the queue laid in any order, by conservative backfilling, ends no sooner than the bound."""
    jobs = tuple(
        job.model_copy(update={"walltime_s": length, "submit_s": request.now_s})
        for job, length in zip(request.jobs, lengths, strict=False)
    )
    request = request.model_copy(update={"jobs": jobs})
    found = planned(request, "optimal-batch")
    for order in permutations(jobs):
        other = planned(request.model_copy(update={"jobs": order}), "conservative")
        if starts(other).keys() == starts(found).keys():
            assert (bounds(found)["makespan"] or 0) <= values(other)["makespan"]


def test_windows_give_a_plan_no_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue longer than a window is planned window by window, and never worse than EASY and conservative."""
    monkeypatch.setattr(optimal_search, "WINDOW", 6)
    request = flat([1 + (7 * i) % 4 for i in range(20)], [1 + (5 * i) % 9 for i in range(20)])
    found = planned(request, limits=Limits(search_states=2_000_000))
    least = min(values(planned(request, policy))["total_wait"] for policy in ("easy", "conservative"))
    assert values(found)["total_wait"] <= least
    assert (bounds(found)["total_wait"] or 0) <= values(found)["total_wait"]
    assert len(found.jobs) == 20


def test_the_same_again() -> None:
    request = flat([1 + (7 * i) % 4 for i in range(12)], [1 + (5 * i) % 9 for i in range(12)])
    first, second = (planned(request, limits=Limits(search_states=50_000)) for _ in range(2))
    assert (first.jobs, first.levels) == (second.jobs, second.levels)
