"""Gangs some of whose members run already: what they bind, and what they do not."""

from __future__ import annotations

from kant_opt.engine import place
from kant_opt.schema import Allocation, Hold, Job, JobGroup, Outcome, Queue, Quota, Reservation, Spread, Together
from kant_opt.testing.builders import gang, podset, racks, running


def nodes_of(outcome: Outcome) -> tuple[str, ...]:
    assert outcome.placement is not None
    return outcome.placement.jobs[0].nodes if outcome.placement.jobs else ()


def test_a_complete_podset_does_not_bind_the_scope_of_another() -> None:
    """Podset main runs on r1n1, which is reserved; tail needs one node, any node: the other three are open."""
    job = Job(name="j", podsets=(podset("main", 1, 2), podset("tail", 1, 3, required_level="node")))
    held = Allocation(job="j", holds=(Hold(node="r1n1", podset="main", gpus=2),))
    closed = Reservation(name="service", nodes=("r1n1",), start_s=0)
    request = racks("4,4,4", jobs=(job,), allocations=(held,), reservations=(closed,))
    assert nodes_of(place(request)) == ("r1n2",)


def test_members_of_one_scope_follow_those_that_run() -> None:
    """The rack is required and three of four run in rack 1, which has one GPU left: the last pod goes there."""
    job = gang("j", 4, required_level="rack")
    request = racks("4|8", jobs=(job,), allocations=(running("j", {"r1n1": 3}),))
    assert nodes_of(place(request)) == ("r1n1",)


def test_members_torn_over_two_racks_leave_no_place_for_the_rest() -> None:
    job = gang("j", 3, required_level="rack")
    request = racks("4|4", jobs=(job,), allocations=(running("j", {"r1n1": 1, "r2n1": 1}),))
    assert nodes_of(place(request)) == ()


def test_a_group_torn_over_two_racks_leaves_no_place_for_the_rest() -> None:
    """Two of the group run, each whole, in two racks where one is allowed: a third job would be placed against it."""
    jobs = (gang("a", 1), gang("b", 1), gang("c", 1))
    group = JobGroup(name="g", jobs=("a", "b", "c"), together_level="rack")
    held = (running("a", {"r1n1": 1}), running("b", {"r2n1": 1}))
    for backend in ("e-binpack", "search"):
        assert nodes_of(place(racks("4|4", jobs=jobs, groups=(group,), allocations=held), backend=backend)) == ()


def test_a_spread_that_running_pods_exceed_leaves_no_place_anywhere() -> None:
    """Two pods run where one is allowed: every placement of the third would break the rule."""
    job = gang("j", 3, spread=(Spread(level="rack", max_per_domain=1),))
    request = racks("4|4", jobs=(job,), allocations=(running("j", {"r1n1": 2}),))
    assert nodes_of(place(request)) == ()


def test_shares_in_mib_may_count_more_than_their_gpu() -> None:
    """Seven pods of 1 of 7 MiB count 143/1000 each, 1001 in all: the bound must not be the GPU's 1000."""
    request = racks("1", jobs=(gang("j", 7, 0, gpu_memory_mib=1), gang("k", 1, 0, gpu_memory_mib=7)))
    node = request.nodes[0].model_copy(update={"gpu_memory_mib": 7})
    outcome = place(request.model_copy(update={"nodes": (node,)}))
    level = outcome.levels[0]
    assert level.value in (1000, 1001)
    assert level.bound is not None
    assert level.bound >= 1001


def test_a_quota_used_up_by_others_keeps_out_only_those_who_add_to_it() -> None:
    """Three GPUs run where the cohort shares two: a pod without GPUs adds nothing to that, one with a GPU does."""
    queues = (Queue(name="q", cohort="c"), Queue(name="r", cohort="c", quotas=(Quota(guaranteed=2),)))
    jobs = (gang("cpu", 1, 0, queue="q"), gang("gpu", 1, 1, queue="q"))
    request = racks("8", jobs=jobs, queues=queues, allocations=(running("old", {"r1n1": 3}, queue="q"),))
    outcome = place(request)
    assert outcome.placement is not None
    assert [job.job for job in outcome.placement.jobs] == ["cpu"]
    assert [(r.job, r.kind) for r in outcome.reasons] == [("gpu", "quota")]


def test_on_the_level_of_nodes_the_gangs_own_nodes_come_first() -> None:
    """Ten more pods beside one that runs: 1 where it is and 9 on the first node, two nodes; 5 + 5 would make three."""
    job = gang("j", 11, preferred_level="node")
    request = racks("9,5,5,2", jobs=(job,), allocations=(running("j", {"r1n4": 1}),))
    outcome = place(request)
    assert outcome.placement is not None
    assert {p.node: p.count for p in outcome.placement.jobs[0].pods} == {"r1n1": 9, "r1n4": 1}


def test_a_gang_that_cannot_grow_is_not_placed_anew() -> None:
    """It has its minimum, torn over two nodes where one is asked for: listing it again would break its own rule."""
    podsets = (podset("main", 2, 1, min_count=1), podset("tail", 1, 1))
    job = Job(name="j", podsets=podsets, together=(Together(level="node"),))
    held = Allocation(
        job="j", holds=(Hold(node="r1n1", podset="main", gpus=1), Hold(node="r1n2", podset="tail", gpus=1))
    )
    assert nodes_of(place(racks("4,4", jobs=(job,), allocations=(held,)))) == ()


def test_a_complete_member_of_a_group_binds_nobody() -> None:
    """Job done runs in full, torn over two racks against its own rule; that is no reason to keep its group waiting."""
    done = gang("done", 2, required_level="rack")
    group = JobGroup(name="g", jobs=("done", "next"))
    request = racks(
        "4|4", jobs=(done, gang("next", 1)), groups=(group,), allocations=(running("done", {"r1n1": 1, "r2n1": 1}),)
    )
    outcome = place(request)
    assert outcome.placement is not None
    assert [job.job for job in outcome.placement.jobs] == ["next"]
