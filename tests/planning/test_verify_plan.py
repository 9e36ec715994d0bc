"""The judge of plans: a good plan passes, and each single damage is caught by the rule that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kant_opt.planning import plan
from kant_opt.schema import (
    Eviction,
    FabricSpec,
    Job,
    JobGroup,
    Node,
    Plan,
    PlannedJob,
    PodSet,
    Queue,
    Quota,
    Request,
    Reservation,
    UnplannedJob,
    Wait,
)
from kant_opt.testing.builders import gang, running
from kant_opt.verify import PLAN_RULES, verify_plan


def _request() -> Request:
    """Return two leaves of two nodes of four GPUs, one node in use until 50, one kept for "kept" in [200, 300)."""
    nodes = tuple(Node(name=f"n{i}", path=(f"l{i // 2}",), gpus=4) for i in range(4))
    return Request(
        now_s=10,
        fabric=FabricSpec(levels=("leaf",)),
        nodes=nodes,
        queues=(Queue(name="small", quotas=(Quota(guaranteed=4),)),),
        allocations=(
            running("old", {"n0": 1}, gpus=4, until_s=50),
            running("guest", {"n1": 1}, gpus=2, preemptible=True),
            running("brief", {"n2": 1}, gpus=1, until_s=30, preemptible=True),
        ),
        reservations=(Reservation(name="kept", nodes=("n3",), start_s=200, end_s=300, jobs=("vip",)),),
        jobs=(
            gang("a", 2, 4, walltime_s=100, required_level="leaf"),
            gang("b", 1, 4, walltime_s=60, after=("a",)),
            gang("c", 1, 2, walltime_s=30, submit_s=20, queue="small"),
            gang("d", 1, 2, walltime_s=30, submit_s=20, queue="small"),
            gang("e", 2, 1, walltime_s=40, preemptible=True),
            gang("f", 9, 4, walltime_s=40),
            gang("g1", 1, 1, walltime_s=20, preemptible=True),
            gang("g2", 1, 1, walltime_s=20, preemptible=True),
        ),
        groups=(JobGroup(name="pair", jobs=("g1", "g2")),),
    )


REQUEST = _request()
GOOD = plan(REQUEST, order="fifo")


def change(job: str, **fields: Any) -> Callable[[Plan], Plan]:
    """Return a damage: the run of one job with other fields."""

    def damage(found: Plan) -> Plan:
        assert found.of(job) is not None
        jobs = [run.model_copy(update=fields) if run.job == job else run for run in found.jobs]
        return found.model_copy(update={"jobs": tuple(jobs)})

    return damage


def shift(job: str, seconds: int) -> Callable[[Plan], Plan]:
    def damage(found: Plan) -> Plan:
        run = found.of(job)
        assert run is not None
        assert run.end_s is not None
        return change(job, start_s=run.start_s + seconds, end_s=run.end_s + seconds)(found)

    return damage


def move(job: str, node: str) -> Callable[[Plan], Plan]:
    """Return a damage: all pods of one job on one node."""

    def damage(found: Plan) -> Plan:
        run = found.of(job)
        assert run is not None
        return change(job, pods=tuple(p.model_copy(update={"node": node}) for p in run.pods))(found)

    return damage


def without(job: str) -> Callable[[Plan], Plan]:
    return lambda found: found.model_copy(update={"jobs": tuple(run for run in found.jobs if run.job != job)})


def twice(job: str) -> Callable[[Plan], Plan]:
    def damage(found: Plan) -> Plan:
        run = found.of(job)
        assert run is not None
        again = run.model_copy(update={"start_s": run.start_s + 1000, "end_s": (run.end_s or 0) + 1000})
        return found.model_copy(update={"jobs": (*found.jobs, again)})

    return damage


def also_unplanned(job: str) -> Callable[[Plan], Plan]:
    entry = UnplannedJob(job=job, wait=Wait(kind="room", sentence="no room"))
    return lambda found: found.model_copy(update={"unplanned": (*found.unplanned, entry)})


def evict(job: str, at: int, other: str) -> Callable[[Plan], Plan]:
    return lambda found: found.model_copy(update={"evictions": (Eviction(job=job, at_s=at, for_job=other),)})


DAMAGES: dict[str, tuple[str, Callable[[Plan], Plan]]] = {
    "on a node in use": ("capacity", move("b", "n1")),
    "before another ends": ("capacity", shift("c", -5)),
    "torn over two leaves": ("required_level", lambda p: _tear(p)),
    "a pod too few": ("gang", lambda p: _drop_pod(p)),
    "on a node that is not there": ("gang", move("b", "n9")),
    "half of a group": ("gang", without("g2")),
    "over its quota": ("quota", lambda p: _together(p, "c", "d")),
    "into a reservation": ("reserved", lambda p: _on(p, "b", "n3", 190)),
    "in a reservation": ("window", lambda p: _on(p, "b", "n3", 210)),
    "before now": ("start", shift("e", -1)),
    "before its submission": ("start", shift("c", -31)),
    "behind the horizon": ("start", lambda p: p.model_copy(update={"horizon_s": 60})),
    "cut short": ("length", change("a", end_s=70)),
    "without end": ("length", change("a", end_s=None)),
    "evicted at its end": ("length", change("e", evicted_for="a")),
    "before what it comes after": ("after", lambda p: _on(p, "b", "n2", 60)),
    "twice": ("once", twice("e")),
    "forgotten": ("known", without("e")),
    "planned and not": ("known", also_unplanned("e")),
    "a stranger": ("known", also_unplanned("zoe")),
    "a steady job evicted": ("evicted", evict("old", 50, "a")),
    "nobody evicted": ("evicted", evict("nobody", 50, "a")),
    "evicted for nothing": ("evicted", evict("guest", 51, "a")),
    "evicted before now": ("evicted", evict("guest", 9, "a")),
    "evicted after its end": ("evicted", evict("brief", 40, "a")),
    "torn from its group": ("evicted", lambda p: _leaves(p, "g1", "c")),
}


def _leaves(found: Plan, job: str, other: str) -> Plan:
    """Return the plan with a run cut short when another starts, and made up for long after."""
    run, coming = found.of(job), found.of(other)
    assert run is not None
    assert run.end_s is not None
    assert coming is not None
    cut = run.model_copy(update={"end_s": coming.start_s, "evicted_for": other})
    again = run.model_copy(update={"start_s": run.start_s + 1000, "end_s": run.end_s + 1000})
    return found.model_copy(update={"jobs": (*(r for r in found.jobs if r is not run), cut, again)})


def _tear(found: Plan) -> Plan:
    run = found.of("a")
    assert run is not None
    pods = (run.pods[0].model_copy(update={"node": "n0"}), run.pods[1].model_copy(update={"node": "n2"}))
    return change("a", pods=pods)(found)


def _drop_pod(found: Plan) -> Plan:
    run = found.of("a")
    assert run is not None
    return change("a", pods=run.pods[:1])(found)


def _on(found: Plan, job: str, node: str, start: int) -> Plan:
    return change(job, start_s=start, end_s=start + 60)(move(job, node)(found))


def _together(found: Plan, *jobs: str) -> Plan:
    """Return the plan with a third job of the queue beside the other two: 2 + 2 + 2 exceed 4."""
    run = found.of(jobs[0])
    assert run is not None
    more = {"gpus": (), "node": "n2"}
    wide = run.pods[0].model_copy(update={**more, "count": 1})
    for job in jobs:
        found = change(job, start_s=600, end_s=630, pods=(wide,))(found)
    return found


def test_the_plan_is_good_and_uses_what_the_damages_need() -> None:
    assert verify_plan(REQUEST, GOOD) == ()
    assert {run.job for run in GOOD.jobs} == {"a", "b", "c", "d", "e", "g1", "g2"}
    assert [entry.wait.kind for entry in GOOD.unplanned] == ["impossible"]


@pytest.mark.parametrize("name", DAMAGES)
def test_each_damage_is_caught_by_its_rule(name: str) -> None:
    rule, damage = DAMAGES[name]
    request = REQUEST
    if name == "over its quota":
        request = REQUEST.model_copy(update={"queues": (Queue(name="small", quotas=(Quota(guaranteed=3),)),)})
    rules = {violation.rule for violation in verify_plan(request, damage(GOOD))}
    assert rule in rules


def test_every_rule_of_time_has_a_damage() -> None:
    assert {rule for rule, _ in DAMAGES.values()} >= set(PLAN_RULES)


def test_a_node_drained_behind_the_plan_is_caught() -> None:
    used = GOOD.jobs[0].nodes[0]
    nodes = tuple(n.model_copy(update={"schedulable": n.name != used}) for n in REQUEST.nodes)
    broken = verify_plan(REQUEST.model_copy(update={"nodes": nodes}), GOOD)
    assert {violation.rule for violation in broken} == {"eligible"}


def test_gpus_that_a_running_job_does_not_name_are_its_own_all_along() -> None:
    """ "loose" holds the lowest free GPUs now, 2 and 3. When "named" leaves 0 and 1 they do not change hands."""
    request = Request(
        nodes=(Node(name="n", gpus=4),),
        allocations=(
            running("named", {"n": 1}, gpus=2, until_s=10).model_copy(
                update={"holds": (running("x", {"n": 1}, gpus=2).holds[0].model_copy(update={"gpu_indices": (0, 1)}),)}
            ),
            running("loose", {"n": 1}, gpus=2, until_s=100),
        ),
        jobs=(Job(name="j", walltime_s=5, podsets=(PodSet(count=1, gpus=2),)),),
    )
    found = plan(request)
    assert [(run.start_s, run.pods[0].gpus) for run in found.jobs] == [(10, ((0, 1),))]
    stolen = found.jobs[0].pods[0].model_copy(update={"gpus": ((2, 3),)})
    damaged = found.model_copy(update={"jobs": (found.jobs[0].model_copy(update={"pods": (stolen,)}),)})
    assert [violation.rule for violation in verify_plan(request, damaged)] == ["capacity", "capacity"]


def test_a_job_evicted_for_one_that_starts_then_may_run_again() -> None:
    request = Request(
        nodes=(Node(name="n", gpus=1),),
        jobs=(gang("low", 1, 1, walltime_s=50, preemptible=True), gang("high", 1, 1, walltime_s=10, submit_s=20)),
    )
    pods = plan(request).jobs[0].pods
    runs = (
        PlannedJob(job="low", start_s=0, end_s=20, pods=pods, evicted_for="high"),
        PlannedJob(job="high", start_s=20, end_s=30, pods=pods),
        PlannedJob(job="low", start_s=30, end_s=80, pods=pods),
    )
    found = plan(request).model_copy(update={"jobs": runs})
    assert verify_plan(request, found) == ()
    steady = request.model_copy(update={"jobs": (gang("low", 1, 1, walltime_s=50), request.jobs[1])})
    assert [violation.rule for violation in verify_plan(steady, found)] == ["evicted"]
