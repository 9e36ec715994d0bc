"""Relaxations in cases whose smallest change is known by argument."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kant_opt.engine import place, relaxations
from kant_opt.engine.after import after
from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric
from kant_opt.schema import (
    Apart,
    FabricSpec,
    Job,
    JobGroup,
    Limits,
    Node,
    Placement,
    Queue,
    Quota,
    QuotaRaise,
    Relaxation,
    Request,
    Slice,
    Spread,
    Taint,
)
from kant_opt.testing.builders import gang, podset, racks, running
from kant_opt.testing.strategies import requests
from kant_opt.view import Cluster, Free, shape_of


def relax(request: Request, job: str = "a", limits: Limits | None = None) -> dict[str, Relaxation]:
    found = relaxations(request, place(request, limits=limits), job)
    kinds: dict[str, Relaxation] = {relaxation.kind: relaxation for relaxation in found}
    assert len(kinds) == len(found)
    return kinds


# -- the rules of the job ----------------------------------------------------------------------------


def test_the_required_level_moves_out_no_further_than_needed() -> None:
    """Three whole nodes: no rack has more than two, block 1 has four."""
    found = relax(racks("4,4|4,4/4,4", jobs=[gang("a", 3, 4, required_level="rack")]))
    assert (found["level"].level, found["level"].proven) == ("block", True)
    assert found["level"].sentence == "required level 'block' in place of 'rack'"


def test_the_required_level_is_dropped_where_no_level_will_do() -> None:
    found = relax(racks("4|4/4|4", jobs=[gang("a", 3, 4, required_level="rack")]))
    assert (found["level"].level, found["level"].sentence) == ("", "drop the required level 'rack'")


def test_one_node_short_of_two_slices() -> None:
    """15 and 7 free nodes, 16 in slices of 8: one slice fits; or slices are dropped, or the one busy node is freed."""
    free = "|".join([",".join(["4"] * 15), ",".join(["4"] * 7 + ["0"])])
    found = relax(racks(free, gpus_total=4, jobs=[gang("a", 16, 4, slices=(Slice(level="rack", size=8),))]))
    assert found["slices"].level == ""
    assert (found["pods"].amount, found["pods"].sentence) == (8, "8 pods fewer: 8 fit, in slices of 8")
    assert found["jobs"].names == ("old",)
    assert found["nodes"].names == ("r2n8",)
    assert all(relaxation.proven for relaxation in found.values())


def test_a_spread_is_widened_by_the_least() -> None:
    """Seven pods on three nodes of four: two a node hold six, three hold nine."""
    found = relax(racks("4,4,4", jobs=[gang("a", 7, 1, spread=(Spread(level="node", max_per_domain=2),))]))
    assert (found["spread"].amount, found["spread"].proven) == (3, True)


def test_pods_that_keep_apart_by_rack_may_share_one_by_node() -> None:
    rule = Apart(level="rack", podsets=("x", "y"))
    job = Job(name="a", podsets=(podset("x", 1, 4), podset("y", 1, 4)), apart=(rule,))
    found = relax(racks("4,4", jobs=[job]))
    assert (found["apart"].level, found["apart"].proven) == ("node", True)


def test_fabrics_without_a_link_are_spanned_only_by_leave() -> None:
    spec = FabricSpec(levels=("root",), separate_roots=True)
    nodes = tuple(Node(name=f"n{i}", path=(f"f{i // 4}",), gpus=8) for i in range(8))
    found = relax(Request(fabric=spec, nodes=nodes, jobs=(gang("a", 6, 8),)))
    assert set(found) == {"span", "pods"}
    assert found["pods"].amount == 2


# -- fewer pods --------------------------------------------------------------------------------------


def test_an_elastic_gang_lowers_its_minimum() -> None:
    """Four of at least six fit: two fewer than the minimum, whatever the full size."""
    found = relax(racks("2,2", jobs=[gang("a", 10, 1, min_count=6)]))
    assert (found["pods"].amount, found["pods"].proven) == (2, True)


def test_each_podset_is_made_smaller_by_itself() -> None:
    """Two nodes of four: a head of 4 GPUs leaves room for two workers of 2; without it four of the five fit."""
    job = Job(name="a", podsets=(podset("head", 1, 4), podset("work", 5, 2)))
    found = relaxations(request := racks("4,4", jobs=[job]), place(request), "a")
    assert [(r.podset, r.amount, r.sentence) for r in found if r.kind == "pods"] == [
        ("work", 3, "3 pods fewer of podset 'work': 2 fit")
    ]


# -- who is in the way -------------------------------------------------------------------------------


def test_the_memory_of_one_small_pod_blocks_a_gang() -> None:
    """Four hosts, one of them 1 byte of memory short by a pod without GPUs: that pod, or that host."""
    nodes = tuple(Node(name=f"n{i}", path=("r",), gpus=4, memory_bytes=8) for i in range(4))
    squat = running("squat", {"n2": 1}, gpus=0)
    squat = squat.model_copy(update={"holds": (squat.holds[0].model_copy(update={"memory_bytes": 1}),)})
    job = gang("a", 4, 4, memory_bytes=8, required_level="rack")
    found = relax(Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, allocations=(squat,), jobs=(job,)))
    assert found["jobs"].names == ("squat",)
    assert found["nodes"].names == ("n2",)
    assert "level" not in found


def test_room_is_made_on_one_node_not_in_sum() -> None:
    """Each of four nodes has six jobs of one GPU and two preemptible ones: a pod of 8 needs all of one node to go."""
    held = [running(f"n{n}h{i}", {f"r1n{n}": 1}) for n in range(1, 5) for i in range(6)]
    held += [running(f"n{n}l{i}", {f"r1n{n}": 1}, preemptible=True) for n in range(1, 5) for i in range(2)]
    found = relax(racks("8,8,8,8", jobs=[gang("a", 1, 8)], allocations=tuple(held)))
    assert (found["jobs"].amount, found["jobs"].proven) == (8, True)
    assert len({name[:2] for name in found["jobs"].names}) == 1
    assert "preemptible" not in found
    assert found["nodes"].amount == 1


def test_preemptible_jobs_are_told_apart() -> None:
    """One job of two nodes, or two preemptible jobs of one node each."""
    held = (
        running("big", {"r1n1": 1, "r1n2": 1}, gpus=4),
        running("p", {"r2n1": 1}, gpus=4, preemptible=True),
        running("q", {"r2n2": 1}, gpus=4, preemptible=True),
    )
    found = relax(racks("4,4|4,4", jobs=[gang("a", 2, 4, required_level="rack")], allocations=held))
    assert found["jobs"].names == ("big",)
    assert found["preemptible"].names == ("p", "q")
    assert found["preemptible"].sentence == "2 preemptible jobs leave: 'p', 'q'"


def test_of_two_jobs_that_would_do_the_less_important_goes() -> None:
    held = (running("x", {"r1n1": 1}, gpus=4, priority=5), running("y", {"r1n2": 1}, gpus=4))
    assert relax(racks("4,4", jobs=[gang("a", 1, 4)], allocations=held))["jobs"].names == ("y",)


def test_jobs_placed_a_moment_ago_count_as_running() -> None:
    """`b` comes first and takes the one node; were it to leave, `a` would fit."""
    found = relax(racks("4", jobs=[gang("a", 1, 4), gang("b", 1, 4, priority=1)]))
    assert found["jobs"].names == ("b",)
    assert found["jobs"].sentence == "1 job leaves: 'b' (placed just now)"


def test_a_full_cluster_is_answered_by_counting() -> None:
    """500 full nodes in leaves of 20, each a job of its own: a gang of a leaf needs 20 of them, and 20 are enough."""
    full = "|".join([",".join(["8"] * 20)] * 25)
    request = racks(full, jobs=[gang("a", 20, 8, required_level="rack")])
    held = tuple(running(node.name, {node.name: 1}, gpus=8) for node in request.nodes)
    found = relax(request.model_copy(update={"allocations": held}))
    assert {kind: (r.amount, r.proven) for kind, r in found.items()} == {"jobs": (20, True), "nodes": (20, True)}
    assert len({name.split("n")[0] for name in found["jobs"].names}) == 1


def test_large_jobs_go_before_many_small_ones() -> None:
    """Ten nodes short: jobs of 6, 4 and ten of 1 node hold what there is; two of them are enough, one is not."""
    sizes = [6, 4, *[1] * 10]
    request = racks(",".join(["8"] * 20), jobs=[gang("a", 10, 8)])
    names = iter([node.name for node in request.nodes])
    held = tuple(running(f"j{i}", {next(names): 1 for _ in range(n)}, gpus=8) for i, n in enumerate(sizes))
    found = relax(request.model_copy(update={"allocations": held}))
    assert (found["jobs"].names, found["jobs"].proven) == (("j1", "j0"), True)


@pytest.mark.parametrize(("sets", "proven"), [(1000, True), (0, False)])
def test_a_number_is_proven_only_where_all_smaller_sets_were_seen(
    monkeypatch: pytest.MonkeyPatch, sets: int, proven: bool
) -> None:
    """Eight jobs of 1 to 8 GPUs fill a node of 36, more states than are told apart: all of them have to go."""
    monkeypatch.setattr("kant_opt.engine.fewest._SETS", sets)
    held = tuple(running(f"o{i}", {"r1n1": 1}, gpus=i) for i in range(1, 9))
    found = relax(racks("36", jobs=[gang("a", 1, 36)], allocations=held))
    assert (found["jobs"].amount, found["jobs"].proven) == (8, proven)


def test_without_nodes_nothing_helps() -> None:
    assert relax(Request(nodes=(), jobs=(gang("a", 1, 1),))) == {}


@pytest.mark.slow
def test_ten_thousand_full_nodes() -> None:
    """512 jobs of 20 nodes, two thirds of them not preemptible. 300 nodes are 15 jobs; 32 nodes of a rack touch two or
    three jobs, two where they start together; 40 nodes and 10 halves are 45 nodes, three jobs."""
    racks_of_32 = "/".join(["|".join([",".join(["8"] * 32)] * 20)] * 16)
    empty = racks(racks_of_32)
    names = [node.name for node in empty.nodes]
    held = tuple(
        running(f"o{i}", dict.fromkeys(names[20 * i : 20 * i + 20], 1), gpus=8, preemptible=i % 3 == 0)
        for i in range(512)
    )
    two_shapes = Job(name="a", podsets=(podset("x", 40, 8), podset("y", 10, 4)))
    for job, jobs, nodes in (
        (gang("a", 300, 8), 15, 300),
        (gang("a", 32, 8, required_level="rack"), 2, 32),
        (two_shapes, 3, 45),
    ):
        found = relax(empty.model_copy(update={"allocations": held, "jobs": (job,)}))
        assert (found["jobs"].amount, found["jobs"].proven) == (jobs, True)
        assert (found["nodes"].amount, found["nodes"].proven) == (nodes, True)


# -- closed nodes and quotas -------------------------------------------------------------------------


def test_the_fewest_closed_nodes_are_opened() -> None:
    """Two more nodes are needed in one rack: r1 has one closed and one tainted, r2 one closed."""
    request = racks("4,4,4,4|4,4,4", jobs=[gang("a", 4, 4, required_level="rack")])
    closed: dict[str, dict[str, Any]] = {
        "r1n2": {"schedulable": False},
        "r1n4": {"taints": (Taint(key="k", effect="NoSchedule"),)},
    }
    closed["r2n1"] = {"schedulable": False}
    nodes = tuple(node.model_copy(update=closed.get(node.name, {})) for node in request.nodes)
    found = relax(request.model_copy(update={"nodes": nodes}))
    assert (found["open"].names, found["open"].proven) == (("r1n2", "r1n4"), True)
    assert found["open"].sentence == "open 2 nodes: r1n2, r1n4"


def test_nodes_that_other_rules_exclude_too_are_not_opened() -> None:
    nodes = (Node(name="n", gpus=4, pools=("x",), schedulable=False),)
    assert relax(Request(nodes=nodes, jobs=(gang("a", 1, 4, pools=("y",)),))) == {}


def test_a_queue_needs_so_much_more_quota() -> None:
    queues = (Queue(name="q", quotas=(Quota(guaranteed=4),)),)
    found = relax(racks("8", jobs=[gang("a", 7, 1, queue="q")], queues=queues))
    assert found["quota"].quotas == (QuotaRaise(queue="q", resource="gpu", more=3),)
    assert found["quota"].sentence == "more quota: 3 gpu for queue 'q'"
    assert (found["pods"].amount, found["pods"].proven, found["quota"].proven) == (3, True, True)


def test_a_queue_that_borrows_needs_what_its_cohort_lacks() -> None:
    """q may use 6 and the cohort 5 in all, of which r uses 2: for 7 the limit lacks 1, the cohort 4."""
    queues = (
        Queue(name="q", cohort="c", quotas=(Quota(guaranteed=2, limit=6),)),
        Queue(name="r", cohort="c", quotas=(Quota(guaranteed=3),)),
    )
    held = (running("o", {"r1n1": 2}, queue="r"),)
    found = relax(racks("9", jobs=[gang("a", 7, 1, queue="q")], queues=queues, allocations=held))
    assert found["quota"].quotas == (QuotaRaise(queue="q", resource="gpu", more=4),)
    assert "jobs" not in found  # without r's two the limit of 6 remains


# -- groups, limits, mistakes ------------------------------------------------------------------------


def test_a_group_is_let_in_as_a_whole_and_makes_no_room_for_itself() -> None:
    """`a` and `b` start together; `c` of their group runs and is not to leave for them."""
    held = (running("c", {"r1n1": 4}), running("o", {"r1n2": 4}))
    jobs = [gang("a", 1, 4), gang("b", 1, 4), gang("c", 4, 1)]
    groups = (JobGroup(name="g", jobs=("a", "b", "c")),)
    found = relax(racks("4,4,4", jobs=jobs, groups=groups, allocations=held))
    assert found["jobs"].names == ("o",)
    assert found["nodes"].names == ("r1n2",)


def test_what_was_only_not_tried_is_to_be_tried_again() -> None:
    request = racks("4,4", jobs=[gang("a", 1, 4)])
    outcome = place(request)
    reason = place(racks("4", jobs=[gang("a", 2, 4)])).reasons[0]
    late = outcome.model_copy(update={"placement": Placement(), "reasons": (reason,)})
    (found,) = relaxations(request, late, "a")
    assert (found.kind, found.proven) == ("retry", True)


def test_where_the_search_stops_nothing_is_claimed() -> None:
    """Two shapes need the search, which may look at one state: whether the gang fits as it is is not known."""
    job = Job(name="a", podsets=(podset("x", 2, 3), podset("y", 3, 1)))
    request = racks("4,3", jobs=[job], limits=Limits(search_states=1))
    assert all(not r.proven for r in relaxations(request, place(request), "a"))


def test_only_jobs_that_are_not_placed_can_be_asked_about() -> None:
    request = racks("4", jobs=[gang("a", 1, 4)])
    outcome = place(request)
    with pytest.raises(UnknownName, match="unknown job 'b'"):
        relaxations(request, outcome, "b")
    with pytest.raises(InputError, match="job 'a' is placed, or has nothing to place"):
        relaxations(request, outcome, "a")


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=list(HealthCheck))
@given(requests(max_nodes=4, max_jobs=3))
def test_the_room_after_a_placement_is_the_room_beside_its_pods(request: Request) -> None:
    placement = place(request, prove=False).placement
    assert placement is not None
    then = after(request, placement)
    fabric = build_fabric(request.fabric, request.nodes)
    free, beside = Free(Cluster(then, fabric)), Free(Cluster(request, fabric))
    podsets = {(job.name, podset.name): podset for job in request.jobs for podset in job.podsets}
    for job in placement.jobs:
        for pods in job.pods:
            shape = shape_of(podsets[job.job, pods.podset])
            node = beside.cluster.tree.index[pods.node]
            beside.take(node, shape, pods.count, job.job, pods.gpus or None)
    for name in ("units", "cpu", "memory", "pods", "whole", "spare"):
        assert (getattr(free, name) == getattr(beside, name)).all(), name
