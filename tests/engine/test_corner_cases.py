"""Corners where a bound lied, a rule was forgotten or a fit was denied once, each by the smallest input for it."""

from __future__ import annotations

from time import process_time

import pytest

from kant_opt.engine import Session, place
from kant_opt.schema import (
    Apart,
    FabricSpec,
    Job,
    Limits,
    Node,
    Objective,
    PlacedJob,
    PodSet,
    Queue,
    Quota,
    Request,
    Slice,
)
from kant_opt.testing.builders import gang, placement, podset, racks, running
from kant_opt.verify import verify


def two_racks(gpus: int, cpu_milli: int) -> tuple[Node, ...]:
    return tuple(
        Node(name=f"n{k}{i}", path=("b", f"k{k}"), gpus=gpus, cpu_milli=cpu_milli) for k in range(2) for i in range(3)
    )


def test_pods_that_share_nodes_are_sold_no_whole_nodes() -> None:
    """5 of 8 GPUs leave room for a pod of 1 GPU and 60 of 64 CPUs: six gangs of two fit on six nodes, two a node."""
    large = [gang(f"a{i}", 2, 5) for i in range(3)]
    hungry = [gang(f"z{i}", 2, 1, cpu_milli=60_000) for i in range(3)]
    request = Request(fabric=FabricSpec(levels=("block", "rack")), nodes=two_racks(8, 64_000), jobs=(*large, *hungry))
    for level in place(request).levels:
        assert level.bound is not None
        assert level.bound >= level.value if level.sense == "max" else level.bound <= level.value


def test_moved_gangs_agree_on_their_nodes() -> None:
    """Nodes of 4 and 8, pods of 3, 4 and 5: beside a pod of 5 there is room for one of 3, not for one of 4."""
    sizes = {"k0n0": 4, "k1n0": 8, "k1n1": 4, "k1n2": 4, "k1n3": 8, "k2n0": 8, "k2n1": 4, "k2n2": 8, "k3n0": 4}
    nodes = tuple(Node(name=n, path=(f"b{int(n[1]) // 2}", n[:2]), gpus=g) for n, g in sizes.items())
    jobs = (gang("j0", 1, 5), gang("j1", 1, 3, priority=1), gang("j2", 3, 5), gang("j3", 4, 4), gang("j4", 4, 5))
    request = Request(fabric=FabricSpec(levels=("block", "rack")), nodes=nodes, jobs=jobs)
    assert place(request, backend="search").placement is not None  # a broken rule would have raised


def test_a_growing_job_keeps_the_mark_of_its_allocation() -> None:
    """It is alone in its rack by its allocation, and rack 2 has somebody: nine more pods do not fit rack 1."""
    held = (running("a", {"r1n1": 1}, exclusive_level="rack"), running("o", {"r2n1": 1}))
    outcome = place(racks("4,4|4,4", jobs=[gang("a", 9, 1)], allocations=held))
    assert outcome.placement is not None
    assert outcome.placement.jobs == ()


def test_a_split_over_pools_is_not_called_impossible() -> None:
    """Four GPUs of quota in each of two pools: eight pods can be split, which only a solver tries."""
    nodes = tuple(Node(name=f"n{i}", path=("r",), gpus=4, pools=("AB"[i],)) for i in range(2))
    quotas = tuple(Quota(pool=pool, guaranteed=4) for pool in "AB")
    request = Request(
        fabric=FabricSpec(levels=("rack",)),
        nodes=nodes,
        jobs=(gang("a", 8, 1, queue="q"),),
        queues=(Queue(name="q", quotas=quotas),),
    )
    assert verify(request, placement(a={"n0": 4, "n1": 4})) == ()
    outcome = place(request, backend="search")
    assert outcome.status == "UNKNOWN"
    assert outcome.levels[0].bound == 8000
    assert outcome.reasons[0].kind == "not_found"
    assert place(request).status == "OPTIMAL"


def test_sizes_between_are_not_ruled_out_where_living_pods_fill_slices_in_part() -> None:
    """One of four runs in each rack: three more in each would do, though neither the full size nor the least does."""
    podset_ = PodSet(name="main", count=12, min_count=4, gpus=1, slices=(Slice(level="rack", size=4),))
    request = racks(
        "4|4", jobs=[Job(name="a", podsets=(podset_,))], allocations=(running("a", {"r1n1": 1, "r2n1": 1}),)
    )
    assert verify(request, placement(a={"r1n1": 3, "r2n1": 3})) == ()
    outcome = place(request)
    assert outcome.levels[0].bound is not None
    assert outcome.levels[0].bound >= 6000
    assert all(reason.kind == "not_found" for reason in outcome.reasons)


@pytest.mark.parametrize("seed", range(4))
def test_an_elastic_gang_that_does_not_grow_keeps_what_it_has(seed: int) -> None:
    parts = (podset("x", 6, 1, min_count=2), podset("y", 5, 2, min_count=1))
    job = Job(name="a", podsets=parts, apart=(Apart(level="node", podsets=("x", "y")),))
    limits = Limits(seed=seed, search_states=60)
    assert place(racks("4,2,3|3,1,4", jobs=[job]), backend="random", limits=limits).placement is not None


@pytest.mark.parametrize("order", [("traffic", "admitted"), ("traffic",), ("broken_nodes", "traffic")])
def test_without_admission_first_no_traffic_is_needed(order: tuple[str, ...]) -> None:
    """Placing nothing has no traffic, and no earlier level forbids it."""
    request = racks("4,4|4,4/4", jobs=[gang("a", 3, 4), gang("b", 2, 4)])
    outcome = place(request.model_copy(update={"objective": Objective(order=order)}))
    assert {level.bound for level in outcome.levels if level.name == "traffic"} == {0}


def test_a_session_knows_the_queue_and_the_mark_of_what_runs() -> None:
    full = Queue(name="q", quotas=(Quota(guaranteed=4),))
    held = (running("o", {"r1n1": 4}),)
    session = Session(racks("8", jobs=[gang("o", 4, 1, queue="q")], allocations=held, queues=(full,)))
    assert session.place(gang("b", 4, 1, queue="q")) is None
    alone = [gang("o", 1, 1, exclusive_level="rack")]
    assert Session(racks("8", jobs=alone, allocations=(running("o", {"r1n1": 1}),))).place(gang("b", 4, 1)) is None


def test_a_session_forgets_the_rules_of_what_was_released() -> None:
    session = Session(racks("4,4"))
    session.place(gang("a", 1, 1, exclusive_level="rack"))
    session.release("a")
    session.place(gang("a", 1, 1))
    assert isinstance(session.place(gang("b", 1, 1)), PlacedJob)
    assert session.verify() == ()


def test_what_only_a_used_up_quota_holds_back_is_not_impossible() -> None:
    """The quota is its own size: once the other job ends, it fits."""
    queues = (Queue(name="q", quotas=(Quota(guaranteed=4),)),)
    held = (running("o", {"r1n1": 4}, queue="q"),)
    outcome = place(racks("4", jobs=[gang("a", 4, 1, queue="q")], allocations=held, queues=queues))
    assert outcome.reasons[0].kind == "not_now"


def test_a_deadline_long_past_ends_all_work() -> None:
    """Two thousand gangs of two shapes and a deadline of a millisecond: nothing is tried again to explain it."""
    jobs = [Job(name=f"j{i}", podsets=(podset("x", 2, 1), podset("y", 2, 2))) for i in range(2000)]
    request = racks("|".join(["8,8,8,8"] * 100), jobs=jobs)
    started = process_time()
    outcome = place(request, limits=Limits(deadline_ms=1), prove=False)
    assert process_time() - started < 1.5
    assert all("no time to find out why" in reason.sentence for reason in outcome.reasons)
    assert outcome.run.limit_hit == "deadline"
