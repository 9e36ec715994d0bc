"""What holds for every plan, and argued plans: unknown lengths, predecessors, quotas, groups, evictions, patience."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError, UnknownName
from kant_opt.planning import ORDERS, POLICIES, Patience, plan, plan_diff, replan
from kant_opt.planning.queue import read_queue
from kant_opt.planning.window import PatientSpace, offers
from kant_opt.schema import (
    Allocation,
    FabricSpec,
    Job,
    JobGroup,
    Limits,
    Node,
    Plan,
    PodSet,
    Queue,
    Quota,
    Request,
    Reservation,
    Wait,
    to_json,
)
from kant_opt.testing.builders import gang, racks, running
from kant_opt.testing.strategies import requests
from kant_opt.verify import verify_plan

FAST = ("fifo", "best-effort", "easy", "easy-sjbf", "conservative", "depth-2", "slack", "delay-5")
LIMITS = Limits(search_states=100_000)


def starts(found: Plan) -> dict[str, int]:
    """Return the start of each job's last run."""
    return {run.job: run.start_s for run in found.jobs}


def why(found: Plan, job: str) -> Wait:
    run = found.of(job)
    wait = run.wait if run else next(entry.wait for entry in found.unplanned if entry.job == job)
    assert wait is not None
    return wait


# -- every plan ------------------------------------------------------------------------------------


@st.composite
def queues_in_time(draw: st.DrawFn) -> Request:
    """Return a small request of any rules whose jobs come, last and wait in all ways."""
    request = draw(requests(max_nodes=4, max_jobs=4))
    moments = st.integers(0, 12)
    now = draw(moments)
    jobs = []
    for i, job in enumerate(request.jobs):
        earlier = [other.name for other in request.jobs[:i]]
        fields: dict[str, Any] = {
            "submit_s": draw(moments),
            "walltime_s": draw(st.sampled_from([None, 0, 1, 5, 9])),
            "priority": draw(st.integers(0, 1)),
            "preemptible": draw(st.booleans()),
            "after": tuple(draw(st.lists(st.sampled_from(earlier), max_size=1, unique=True))) if earlier else (),
        }
        jobs.append(job.model_copy(update=fields))
    held = [
        alloc.model_copy(update={"until_s": draw(st.none() | st.integers(0, 30)), "preemptible": draw(st.booleans())})
        for alloc in request.allocations
    ]
    return request.model_copy(update={"now_s": now, "jobs": tuple(jobs), "allocations": tuple(held), "limits": LIMITS})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(queues_in_time(), st.sampled_from(FAST), st.sampled_from(sorted(ORDERS)), st.sampled_from([None, 0, 4]))
def test_every_plan_is_verified_and_complete(request: Request, policy: str, order: str, timeout: int | None) -> None:
    """`plan` has its plan verified, which holds every job to have a start or a reason."""
    found = plan(request, policy=policy, order=order, head_timeout_s=timeout)
    assert verify_plan(request, found) == ()
    for level in found.levels:
        assert level.bound is None or level.value >= level.bound
    again = plan(request, policy=policy, order=order, head_timeout_s=timeout)
    assert to_json(again.model_copy(update={"run": found.run})) == to_json(found)


def busy_cluster(seed: int, jobs: int = 30, *, rules: bool = True) -> Request:
    """Return 2 x 4 nodes of 4 GPUs, all in use for a while, and gangs with walltimes that wait for them."""
    draw = Random(seed)
    nodes = tuple(Node(name=f"n{i}", path=(f"l{i // 4}",), gpus=4) for i in range(8))
    held = tuple(running(f"r{i}", {f"n{i}": 1}, gpus=4, until_s=draw.randint(1, 60)) for i in range(8))
    waiting = tuple(
        gang(
            f"j{i:02}",
            pods := draw.choice([1, 1, 2, 3, 4]),
            draw.choice([1, 2, 4]) if rules else 4,
            walltime_s=draw.choice([5, 10, 30, 90]),
            required_level="leaf" if rules and pods > 1 and draw.random() < 0.5 else None,
            priority=draw.choice([0, 0, 1]) if rules else 0,
        )
        for i in range(jobs)
    )
    return Request(fabric=FabricSpec(levels=("leaf",)), nodes=nodes, allocations=held, jobs=waiting)


@pytest.mark.parametrize("seed", range(3))
def test_easy_never_delays_the_head(seed: int) -> None:
    """The head starts as early under EASY as if it were alone in the queue."""
    request = busy_cluster(seed)
    head = plan(request, policy="fifo").jobs[0].job
    alone = request.model_copy(update={"jobs": tuple(job for job in request.jobs if job.name == head)})
    assert starts(plan(request, policy="easy"))[head] == starts(plan(alone))[head]


@pytest.mark.parametrize("seed", range(3))
def test_conservative_promises_do_not_change_when_more_jobs_come(seed: int) -> None:
    """Jobs behind in the queue move nobody ahead of them."""
    request = busy_cluster(seed)
    few = request.model_copy(update={"jobs": request.jobs[:12]})
    before, after = (starts(plan(r, policy="conservative", order="fifo")) for r in (few, request))
    assert {job: after[job] for job in before} == before


@pytest.mark.parametrize("policy", ["fifo", "best-effort"])
def test_counting_and_looking_at_nodes_give_the_same_starts(policy: str) -> None:
    """Whole nodes, no rules: a number says it all. A reservation long after makes the planner look at nodes.

    Policies that promise may do better by number: a promise that names its nodes binds more than one that does not.
    """
    request = busy_cluster(5, rules=False)
    far = Reservation(name="far", nodes=("n0",), start_s=1_000_000)
    looked_at = request.model_copy(update={"reservations": (far,)})
    assert read_queue(request).space().counts
    assert not read_queue(looked_at).space().counts
    assert starts(plan(request, policy=policy)) == starts(plan(looked_at, policy=policy))


# -- unknown lengths -------------------------------------------------------------------------------


def one_node(*jobs: Job, gpus: int = 1, **fields: Any) -> Request:
    return Request(nodes=(Node(name="n", gpus=gpus),), jobs=jobs, **fields)


def test_a_job_of_unknown_length_is_not_backfilled_past_a_promise_unless_it_can_leave() -> None:
    """Two GPUs, one in use until 50; the head needs both then. A job without walltime would be in its way, a
    preemptible one leaves at 50 and runs again at 60."""
    head = gang("head", 1, 2, walltime_s=10)
    busy = (running("old", {"n": 1}, until_s=50),)
    stays = plan(one_node(head, gang("open", 1), gpus=2, allocations=busy), order="fifo")
    assert starts(stays) == {"head": 50, "open": 60}
    for policy in ("conservative", "easy"):
        leaves = plan(
            one_node(head, gang("open", 1, preemptible=True), gpus=2, allocations=busy), policy=policy, order="fifo"
        )
        runs = [(run.job, run.start_s, run.end_s, run.evicted_for) for run in leaves.jobs]
        assert runs == [("open", 0, 50, "head"), ("head", 50, 60, ""), ("open", 60, None, "")]


def test_behind_a_job_without_end_there_is_no_start_but_a_reason() -> None:
    found = plan(one_node(gang("j", 1, walltime_s=5), allocations=(running("old", {"n": 1}),)))
    wait = why(found, "j")
    assert (wait.kind, wait.jobs) == ("unknown_end", ("old",))
    assert "give them a walltime" in wait.sentence
    assert found.status == "INFEASIBLE"


def test_an_overdue_job_is_flagged_and_counted_on_to_end() -> None:
    found = plan(one_node(gang("j", 1, walltime_s=5), now_s=100, allocations=(running("old", {"n": 1}, until_s=40),)))
    assert starts(found) == {"j": 101}
    assert [(flag.subject, "60 s beyond its end" in flag.text) for flag in found.flags] == [("old", True)]


def test_a_preemptible_job_of_unknown_length_leaves_for_maintenance() -> None:
    kept = Reservation(name="upkeep", nodes=("n",), start_s=30, end_s=40)
    found = plan(one_node(gang("open", 1, preemptible=True), reservations=(kept,)))
    runs = [(run.start_s, run.end_s, run.evicted_for) for run in found.jobs]
    assert runs == [(0, 30, "upkeep"), (40, None, "")]


def test_a_job_that_can_leave_leaves_for_whatever_it_is_in_the_way_of() -> None:
    """Four nodes of a GPU, one in use until 50; the head starts then, and "open" meanwhile on another node. It has to
    go where both need the CPU of one node, the quota of one queue, or the head a rack without others.
    """
    spare: dict[str, Any] = {"nodes": ("r1n2",)}
    cases = {
        "cpu": (gang("head", 1, cpu_milli=4), gang("open", 1, preemptible=True, cpu_milli=1)),
        "quota": (gang("head", 1, nodes=("r1n1",), queue="q"), gang("open", 1, preemptible=True, queue="q", **spare)),
        "rack": (
            gang("head", 1, nodes=("r1n1",), exclusive_level="rack"),
            gang("open", 1, preemptible=True, **spare),
        ),
        "nothing": (gang("head", 1, nodes=("r1n1",)), gang("open", 1, preemptible=True, **spare)),
    }
    for what, (head, other) in cases.items():
        jobs = (head.model_copy(update={"walltime_s": 10}), other)
        old = running("old", {"r1n1": 1}, until_s=50)
        request = racks(
            "1,1|1,1", jobs=jobs, allocations=(old,), queues=(Queue(name="q", quotas=(Quota(guaranteed=1),)),)
        )
        if what == "cpu":
            hold = old.holds[0].model_copy(update={"cpu_milli": 1, "gpu_indices": (0,)})
            nodes = (Node(name="r1n1", gpus=2, cpu_milli=4),)
            changed = {
                "fabric": FabricSpec(),
                "nodes": nodes,
                "allocations": (old.model_copy(update={"holds": (hold,)}),),
            }
            request = request.model_copy(update=changed)
        runs = [(run.job, run.start_s, run.end_s, run.evicted_for) for run in plan(request, order="fifo").jobs]
        leaves = [("open", 0, 50, "head"), ("head", 50, 60, ""), ("open", 60, None, "")]
        assert runs == ([("open", 0, None, ""), ("head", 50, 60, "")] if what == "nothing" else leaves), what


def test_a_job_that_can_leave_stays_where_nobody_comes_after_all() -> None:
    """ "next" was to take the node of "open" at 100, the end of "old". "old" is evicted at 30: "next" never starts."""
    jobs = (
        gang("next", 1, walltime_s=5, after=("old",), nodes=("r1n2",)),
        gang("open", 1, preemptible=True, nodes=("r1n2",)),
        gang("head", 1, walltime_s=5, priority=1, submit_s=10, nodes=("r1n1",)),
    )
    old = running("old", {"r1n1": 1}, until_s=100, preemptible=True)
    found = plan(racks("1,1", jobs=jobs, allocations=(old,)), head_timeout_s=20)
    assert [(run.job, run.start_s, run.end_s) for run in found.jobs] == [("open", 0, None), ("head", 30, 35)]
    assert why(found, "next").kind == "after"


def test_who_leaves_for_maintenance_is_not_said_to_leave_for_a_job_that_was_due_then() -> None:
    """At 30 the first node closes and "next" is due on the second. "open" leaves the first, and as it is ahead in the
    queue it takes the second: "next" never starts, and nobody can have left for it."""
    jobs = (
        gang("open", 1, preemptible=True, nodes=("r1n1", "r1n2")),
        gang("next", 1, walltime_s=5, nodes=("r1n2",)),
    )
    kept = Reservation(name="upkeep", nodes=("r1n1",), start_s=30)
    old = running("old", {"r1n2": 1}, until_s=30)
    request = racks("1,1", jobs=jobs, allocations=(old,), reservations=(kept,))
    found = plan(request, policy="easy", order="fifo")
    runs = [(run.job, run.start_s, run.end_s, run.evicted_for) for run in found.jobs]
    assert runs == [("open", 0, 30, "upkeep"), ("open", 30, None, "")]


def test_jobs_that_can_leave_go_on_together_until_the_same_second() -> None:
    """Both would leave at 20 for "next", which is submitted then no more: "old", which it comes after, was evicted.
    Both then stay until the upkeep at 60."""
    jobs = (
        gang("next", 2, walltime_s=5, after=("old",), nodes=("r1n2", "r1n3")),
        gang("open1", 1, preemptible=True, nodes=("r1n2",)),
        gang("open2", 1, preemptible=True, nodes=("r1n3",)),
        gang("head", 1, walltime_s=5, priority=1, submit_s=5, nodes=("r1n1",)),
    )
    old = running("old", {"r1n1": 1}, until_s=20, preemptible=True)
    kept = Reservation(name="upkeep", nodes=("r1n2", "r1n3"), start_s=60)
    found = plan(racks("1,1,1", jobs=jobs, allocations=(old,), reservations=(kept,)), head_timeout_s=5)
    ends = {run.job: (run.end_s, run.evicted_for) for run in found.jobs}
    assert ends == {"open1": (60, "upkeep"), "open2": (60, "upkeep"), "head": (15, "")}


def test_a_job_that_is_cut_and_goes_on_at_once_has_one_run() -> None:
    """The head "open" has "old" evicted at 20, and is expected to leave at 30, when "next" was due before. But then it
    is ahead in the queue, so it stays, and nobody can have left for "next"."""
    jobs = (
        gang("open", 2, preemptible=True, nodes=("r1n1", "r1n2")),
        gang("next", 2, walltime_s=5, nodes=("r1n2", "r1n3")),
    )
    held = [("old", "r1n1", 100, True), ("one", "r1n2", 20, False), ("two", "r1n3", 30, False)]
    busy = tuple(running(name, {node: 1}, until_s=end, preemptible=leaves) for name, node, end, leaves in held)
    found = plan(racks("1,1,1", jobs=jobs, allocations=busy), policy="depth-2", order="fifo", head_timeout_s=15)
    assert [(run.job, run.start_s, run.end_s) for run in found.jobs] == [("open", 20, None)]
    assert (why(found, "next").kind, why(found, "next").jobs) == ("unknown_end", ("open",))


# -- rules over time -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "best-effort"])
def test_a_job_starts_after_those_it_names(policy: str) -> None:
    """The second waits for the first and holds up nobody meanwhile; one behind a job without end is told so."""
    jobs = (
        gang("first", 1, walltime_s=30),
        gang("second", 1, walltime_s=10, after=("first",)),
        gang("third", 1, walltime_s=20),
        gang("never", 1, walltime_s=1, after=("old",)),
    )
    nodes = tuple(Node(name=f"n{i}", gpus=1) for i in range(3))
    found = plan(Request(nodes=nodes, jobs=jobs, allocations=(running("old", {"n2": 1}),)), policy=policy)
    assert starts(found) == {"first": 0, "second": 30, "third": 0}
    assert why(found, "second").kind == why(found, "never").kind == "after"
    assert why(found, "never").jobs == ("old",)


def test_who_comes_after_a_job_behind_it_keeps_its_place_ahead_of_others() -> None:
    """ "second" is first in the queue, but comes after "first". It has its turn right behind that one, so "third", of
    which no end is known, does not take the node from it."""
    jobs = (gang("second", 1, walltime_s=5, after=("first",)), gang("first", 1, walltime_s=30), gang("third", 1))
    assert starts(plan(one_node(*jobs))) == {"first": 0, "second": 30, "third": 35}


def test_quotas_hold_at_every_instant() -> None:
    """Six GPUs, two for the queue: its jobs of two GPUs run one after another beside the others."""
    queue = Queue(name="q", quotas=(Quota(guaranteed=2),))
    jobs = (*(gang(f"q{i}", 1, 2, walltime_s=10, queue="q") for i in range(3)), gang("free", 1, 2, walltime_s=30))
    found = plan(one_node(*jobs, gpus=6, queues=(queue,)))
    assert starts(found) == {"q0": 0, "free": 0, "q1": 10, "q2": 20}
    assert why(found, "q1").kind == "quota"
    beyond = plan(one_node(gang("wide", 1, 3, walltime_s=10, queue="q"), gpus=4, queues=(queue,)))
    assert why(beyond, "wide").kind in ("quota", "impossible")


def test_a_group_starts_as_one_and_each_member_is_told() -> None:
    jobs = (gang("a", 1, 1, walltime_s=10), gang("b", 1, 1, walltime_s=20), gang("c", 1, 1, walltime_s=5))
    group = JobGroup(name="g", jobs=("a", "b"))
    found = plan(one_node(*jobs, gpus=2, groups=(group,), allocations=(running("old", {"n": 1}, until_s=7),)))
    assert starts(found) == {"c": 0, "a": 7, "b": 7}
    assert [(run.end_s or 0) - run.start_s for run in found.jobs] == [5, 10, 20]
    assert "'b'" in why(found, "b").sentence


def test_a_member_that_ends_before_its_group_starts_is_no_longer_missed() -> None:
    """ "runs" has all its pods and ends at 20; the two others of its group start then, in the room it leaves."""
    jobs = (gang("runs", 1, 2), gang("a", 1, walltime_s=5), gang("b", 1, walltime_s=5))
    group = JobGroup(name="g", jobs=("runs", "a", "b"))
    held = (running("runs", {"n": 1}, gpus=2, until_s=20),)
    assert starts(plan(one_node(*jobs, gpus=2, groups=(group,), allocations=held))) == {"a": 20, "b": 20}


def test_a_group_whose_member_waits_for_another_never_starts() -> None:
    jobs = (gang("a", 1, walltime_s=5), gang("b", 1, walltime_s=5, after=("a",)))
    found = plan(one_node(*jobs, gpus=2, groups=(JobGroup(name="g", jobs=("a", "b")),)))
    assert [(entry.job, entry.wait.kind) for entry in found.unplanned] == [("a", "after"), ("b", "after")]


def test_growth_by_nothing_is_no_start() -> None:
    """Two of three pods run, the least; the third fits nowhere. Those that run stay, so the other job has no start."""
    grows = gang("grows", 3, 1, min_count=2, walltime_s=10)
    held = (running("grows", {"n": 2}, until_s=5),)
    found = plan(one_node(grows, gang("next", 1, 2, walltime_s=5), gpus=2, allocations=held))
    assert found.jobs == ()
    assert why(found, "next").jobs == ("grows",)


def test_what_was_cut_short_has_not_ended() -> None:
    """ "open" leaves for maintenance at 30 and comes back: the job after it has no start."""
    kept = Reservation(name="upkeep", nodes=("n",), start_s=30, end_s=40)
    jobs = (gang("open", 1, preemptible=True), gang("then", 1, walltime_s=5, after=("open",)))
    for policy in ("conservative", "slack", "easy"):
        found = plan(one_node(*jobs, reservations=(kept,)), policy=policy)
        assert [entry.job for entry in found.unplanned] == ["then"]


def test_the_horizon_ends_the_plan() -> None:
    found = plan(one_node(*(gang(f"j{i}", 1, walltime_s=10) for i in range(4))), horizon_s=15)
    assert starts(found) == {"j0": 0, "j1": 10}
    assert {entry.job: (entry.wait.kind, entry.wait.until_s) for entry in found.unplanned} == {
        "j2": ("horizon", 20),
        "j3": ("horizon", 30),
    }


def test_maintenance_drains_no_more_than_it_must() -> None:
    """What ends before it may start on the node, what does not goes elsewhere, and the vip may stay."""
    nodes = tuple(Node(name=f"n{i}", gpus=1) for i in range(2))
    kept = Reservation(name="upkeep", nodes=("n0",), start_s=20, end_s=50, jobs=("vip",))
    jobs = (gang("long", 2, walltime_s=30), gang("short", 1, walltime_s=20), gang("vip", 1, walltime_s=100))
    found = plan(Request(nodes=nodes, jobs=jobs, reservations=(kept,)), policy="easy", order="fifo")
    assert starts(found)["short"] == 0
    assert starts(found)["long"] >= 50
    assert why(found, "long").kind == "reserved"
    assert why(found, "long").sentence.count("upkeep") == 1


# -- evictions -------------------------------------------------------------------------------------


def test_backfilled_jobs_leave_for_a_head_that_waited_too_long() -> None:
    """Two nodes. The head needs both; "filler" was backfilled and may leave. With a time-out of 30 the head starts then
    instead of at 100, and the filler runs again behind it, from its old place in the queue."""
    jobs = (
        gang("steady", 1, walltime_s=20),
        gang("head", 2, walltime_s=10),
        gang("filler", 1, walltime_s=100, preemptible=True),
        gang("later", 1, walltime_s=5),
    )
    nodes = tuple(Node(name=f"n{i}", gpus=1) for i in range(2))
    request = Request(nodes=nodes, jobs=jobs)
    assert starts(plan(request, policy="best-effort", order="fifo"))["head"] == 100
    found = plan(request, policy="best-effort", order="fifo", head_timeout_s=30)
    runs = [(run.job, run.start_s, run.evicted_for) for run in found.jobs]
    assert ("head", 30, "") in runs
    assert ("filler", 0, "head") in runs
    assert starts(found)["filler"] == 40


def test_the_cheapest_set_that_is_enough_is_evicted_or_nobody() -> None:
    """The head needs two nodes. Leaving costs GPU-seconds run so far: 10, 20 and 90, so the first two go; where a job
    that stays makes every set too small, nobody leaves."""
    nodes = tuple(Node(name=f"n{i}", gpus=1) for i in range(4))

    def held(**steady: bool) -> tuple[Allocation, ...]:
        since = {"old0": 90, "old1": 80, "old2": 10, "old3": 95}
        return tuple(
            running(job, {f"n{i}": 1}, since_s=at, until_s=1000, preemptible=not steady.get(job, False))
            for i, (job, at) in enumerate(since.items())
        )

    head = gang("head", 2, walltime_s=10)
    request = Request(now_s=100, nodes=nodes, jobs=(head,), allocations=held(old3=True))
    found = plan(request, head_timeout_s=50)
    assert starts(found) == {"head": 100}
    assert [(e.job, e.at_s, e.for_job, e.lost_gpu_s) for e in found.evictions] == [
        ("old0", 100, "head", 10),
        ("old1", 100, "head", 20),
    ]
    all_but_one = Request(now_s=100, nodes=nodes, jobs=(head,), allocations=held(old1=True, old2=True, old3=True))
    assert plan(all_but_one, head_timeout_s=50).evictions == ()


# -- places and times ------------------------------------------------------------------------------


def test_offers_are_the_starts_that_nothing_beats() -> None:
    """Now over two racks, or at 40 in one."""
    nodes = tuple(Node(name=f"r{r}n{n}", path=(f"r{r}",), gpus=2) for r in (1, 2) for n in (1, 2))
    held = (running("a", {"r1n2": 1}, until_s=40), running("b", {"r2n2": 1}, until_s=90))
    request = Request(
        fabric=FabricSpec(levels=("rack",)), nodes=nodes, jobs=(gang("j", 2, 2, walltime_s=100),), allocations=held
    )
    queue = read_queue(request)
    found = offers(queue.topological(), queue.tickets[0], 0, 1000)
    assert [(offer.claim.start, offer.traffic) for offer in found] == [(0, 1), (40, 0)]
    assert isinstance(queue.topological(Patience(1)), PatientSpace)
    for patience, start in ((None, 0), (Patience(40), 40), (Patience(39), 0), (Patience(40, saving=2), 0)):
        for policy in ("conservative", "easy", "fifo"):
            assert starts(plan(request, policy=policy, patience=patience)) == {"j": start}, (patience, policy)
    assert why(plan(request, patience=Patience(40)), "j").kind == "choice"
    for timer, start in ((0, 0), (39, 39), (41, 40)):
        assert starts(plan(request, policy=f"delay-{timer}")) == {"j": start}, timer


def test_orders_say_who_is_first() -> None:
    """One node, all jobs of one GPU: the order alone decides."""
    jobs = (
        gang("long", 1, walltime_s=50, tenant="x", submit_s=0),
        gang("wide", 1, 2, walltime_s=30, tenant="y", submit_s=1),
        gang("top", 1, walltime_s=40, priority=1, tenant="x", submit_s=2),
        gang("short", 1, 2, walltime_s=20, tenant="x", submit_s=3),
    )
    request = one_node(*(job.model_copy(update={"submit_s": job.submit_s}) for job in jobs), gpus=2, now_s=10)

    def sequence(order: str) -> list[str]:
        tall = [job.model_copy(update={"podsets": (PodSet(count=1, gpus=2),)}) for job in request.jobs]
        found = plan(request.model_copy(update={"jobs": tuple(tall)}), policy="fifo", order=order)
        return [run.job for run in found.jobs]

    assert sequence("fifo") == ["long", "wide", "top", "short"]
    assert sequence("priority") == ["top", "long", "wide", "short"]
    assert sequence("shortest-first") == ["short", "wide", "top", "long"]
    assert sequence("srpt") == ["short", "wide", "top", "long"]
    # the higher class first, then y has used nothing, x 80 GPU-seconds: and so on
    assert sequence("fair-share") == ["top", "wide", "long", "short"]


# -- planning again --------------------------------------------------------------------------------


def test_a_promise_stays_when_lesser_jobs_come_and_gives_way_to_greater_ones() -> None:
    busy = (running("old", {"n": 1}, until_s=10),)
    first = plan(one_node(gang("a", 1, walltime_s=20), gang("b", 1, walltime_s=20), allocations=busy))
    assert starts(first) == {"a": 10, "b": 30}
    ahead = gang("early", 1, walltime_s=20, submit_s=-5)
    same = (gang("a", 1, walltime_s=20), gang("b", 1, walltime_s=20))
    again = replan(first, one_node(ahead, *same, allocations=busy))
    assert starts(again) == {"a": 10, "b": 30, "early": 50}, "promised is promised, though it was submitted before"
    assert [(c.job, c.kind) for c in plan_diff(first, again).changes] == [("early", "new")]
    assert plan_diff(first, again).unchanged == 2
    urgent = gang("urgent", 1, walltime_s=20, priority=1)
    forced = replan(first, one_node(*same, urgent, allocations=busy))
    assert starts(forced) == {"urgent": 10, "b": 30, "a": 50}, "only the promise in its way is broken"
    changes = {c.job: (c.kind, c.before_s, c.after_s) for c in plan_diff(first, forced).changes}
    assert changes == {"urgent": ("new", None, 10), "a": ("later", 10, 50)}


def test_nobody_starts_later_when_room_comes_free_early() -> None:
    request = busy_cluster(7)
    first = plan(request)
    held = tuple(a.model_copy(update={"until_s": min(a.until_s or 0, 20)}) for a in request.allocations)
    again = replan(first, request.model_copy(update={"allocations": held}))
    assert all(starts(again)[job] <= start for job, start in starts(first).items())
    assert {c.kind for c in plan_diff(first, again).changes} <= {"earlier", "moved"}


def test_replanning_an_unchanged_queue_changes_nothing() -> None:
    request = busy_cluster(8)
    first = plan(request)
    assert plan_diff(first, replan(first, request)).changes == ()


def test_a_priority_that_the_order_does_not_mind_takes_no_promise() -> None:
    """The node closes at 20: one job of 10 s can start after the 10 s of "old", the one that is first by "fifo"."""
    closing = Reservation(name="upkeep", nodes=("n",), start_s=20)
    jobs = (gang("first", 1, walltime_s=10), gang("great", 1, walltime_s=10, priority=1))
    request = one_node(*jobs, allocations=(running("old", {"n": 1}, until_s=10),), reservations=(closing,))
    before = plan(request, order="fifo")
    assert starts(before) == starts(replan(before, request, order="fifo")) == {"first": 10}
    assert starts(replan(before, request, order="priority")) == {"great": 10}


def test_a_node_that_leaves_forces_only_those_it_held() -> None:
    nodes = tuple(Node(name=f"n{i}", gpus=1) for i in range(3))
    jobs = tuple(gang(f"j{i}", 1, walltime_s=10) for i in range(3))
    first = plan(Request(nodes=nodes, jobs=jobs))
    gone = first.jobs[0].nodes[0]
    left = tuple(n.model_copy(update={"schedulable": n.name != gone}) for n in nodes)
    again = replan(first, Request(nodes=left, jobs=jobs))
    assert [(c.job, c.kind) for c in plan_diff(first, again).changes] == [("j0", "later")]


def test_what_became_of_a_job_is_told_apart() -> None:
    first = plan(one_node(gang("a", 1, walltime_s=5), gang("b", 2, walltime_s=5)))
    second = plan(
        Request(nodes=tuple(Node(name=f"n{i}", gpus=1) for i in range(2)), jobs=(gang("b", 2, walltime_s=5),))
    )
    assert {c.job: c.kind for c in plan_diff(first, second).changes} == {"b": "won", "a": "gone"}
    assert {c.job: c.kind for c in plan_diff(second, first).changes} == {"b": "lost", "a": "new"}


# -- bad input -------------------------------------------------------------------------------------


def test_names_and_numbers_that_cannot_be_meant_are_refused() -> None:
    request = one_node(gang("j", 1, walltime_s=5))
    with pytest.raises(UnknownName, match=r"policy 'conservativ'.*did you mean 'conservative'"):
        plan(request, policy="conservativ")
    with pytest.raises(UnknownName, match="order 'lifo'"):
        plan(request, order="lifo")
    with pytest.raises(InputError, match="horizon of 0 s"):
        plan(request, horizon_s=0)
    with pytest.raises(InputError, match="time-out of -1 s"):
        plan(request, head_timeout_s=-1)
    with pytest.raises(InputError, match="patience of -1 s"):
        Patience(-1)
    with pytest.raises(InputError, match="depth of 0"):
        plan(request, policy="depth-0")


def test_every_policy_plans_a_queue() -> None:
    request = busy_cluster(3, jobs=6)
    for name in POLICIES:
        found = plan(request, policy=name.replace("-k", "-2"), limits=LIMITS)
        assert not found.unplanned, name
