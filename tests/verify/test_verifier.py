"""The verifier as a whole: its names, its manners with nonsense, its cost, and spoiled placements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric
from kant_opt.schema import (
    Allocation,
    FabricSpec,
    Hold,
    Job,
    JobGroup,
    Link,
    Node,
    PlacedJob,
    PlacedPods,
    Placement,
    PodSet,
    Queue,
    Quota,
    Request,
    Reservation,
    Slice,
    Spread,
    Switch,
    Together,
)
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, placed, placement, racks, running
from kant_opt.testing.strategies import requests
from kant_opt.verify import RULES, RequestIndex, check, verify


def test_rules_are_those_of_the_written_formulation(root: Path) -> None:
    text = (root / "models" / "README.md").read_text()
    table = text.split("## Rules")[1].split("## Terms")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(RULES)


def test_nonsense_gives_violations() -> None:
    request = racks("2|2", jobs=[gang("a", 2)], queues=(Queue(name="q"),))
    nonsense = Placement(
        jobs=(
            placed("a", {"r1n1": [(7,)], "nowhere": [(0, 1, 2)]}, ghost={"r2n1": 3}),
            placed("nobody", {"nowhere": 1}, ghost={"r2n1": 1}),
        )
    )
    assert [str(v) for v in verify(request, nonsense)] == [
        "capacity: r1n1: a/main names GPU 7, which is not there",
        "gang: a: it has no podset 'ghost'",
        "gang: a: there is no node 'nowhere'",
        "gang: nobody: no job of the request has this name",
    ]


def test_every_violation_is_listed() -> None:
    request = racks("1|1", jobs=[gang("a", 2, 2, required_level="rack"), gang("b", 3)])
    found = verify(request, placement(a={"r1n1": 1, "r2n1": 1}, b={"r1n1": 1}))
    assert [(v.rule, v.subject) for v in found] == [
        ("capacity", "r1n1"),
        ("capacity", "r2n1"),
        ("gang", "b/main"),
        ("required_level", "a/main"),
    ]


def test_many_names_are_counted_not_listed() -> None:
    request = racks("|".join("1" * 12), jobs=[gang("a", 12, required_level="rack")])
    (found,) = verify(request, placement(a={f"r{i}n1": 1 for i in range(1, 13)}))
    assert found.text.startswith("12 domains")
    assert found.text.endswith("and 4 more")


def test_running_jobs_may_break_rules_where_nothing_is_placed() -> None:
    """What runs stays: old spans racks, exceeds nodes, quotas and reservations; none of it is the placement's doing."""
    job = gang(
        "a", 4, 2, queue="q", required_level="rack", slices=(Slice(level="node", size=4),),
        spread=(Spread(level="node", max_per_domain=1),), exclusive_level="rack", together=(Together(level="rack"),),
    )  # fmt: skip
    request = racks(
        "1,1|1",
        jobs=[job],
        queues=(Queue(name="q", quotas=(Quota(guaranteed=1),)),),
        reservations=(Reservation(name="res", nodes=("r1n1",), start_s=0),),
        allocations=(
            running("a", {"r1n1": 2, "r2n1": 1}, gpus=2, queue="q", exclusive_level="rack"),
            running("b", {"r1n1": 9}, queue="q"),
        ),
    )
    assert verify(request, Placement()) == ()


def test_indices_count_for_entries_of_one_node_apart() -> None:
    request = racks("2", jobs=[gang("a", 2)])
    twice = Placement(jobs=(PlacedJob(job="a", pods=(PlacedPods(node="r1n1", gpus=((0,),)), PlacedPods(node="r1n1"))),))
    assert verify(request, twice) == ()


def test_mib_on_gpus_of_unknown_memory_leave_nothing_free() -> None:
    nodes = (Node(name="n", gpus=2),)
    holds = (Hold(node="n", gpu_memory_mib=1, gpu_indices=(0,)),)
    request = Request(nodes=nodes, jobs=(gang("a", 2),), allocations=(Allocation(job="o", holds=holds),))
    assert [v.text for v in verify(request, placement(a={"n": 2}))] == ["2 whole GPUs needed, 1 of 2 healthy ones free"]


GRAPH = Request(
    fabric=FabricSpec(switches=(Switch(name="s"), Switch(name="t")), links=(Link(a="n", b="s"), Link(a="m", b="t"))),
    nodes=(Node(name="n", gpus=1), Node(name="m", gpus=1)),
    jobs=(gang("a", 1, required_level="galaxy"),),
)


def test_a_level_that_the_fabric_lacks_is_an_error_of_the_request() -> None:
    with pytest.raises(UnknownName, match="unknown level 'galaxy'"):
        verify(GRAPH, Placement())


def test_a_fabric_of_other_nodes_is_refused() -> None:
    other = racks("1")
    with pytest.raises(InputError, match="'r1n2' is not in the fabric"):
        verify(racks("1,1"), Placement(), build_fabric(other.fabric, other.nodes))


def test_thousands_of_nodes_take_a_fraction_of_a_second() -> None:
    """2,048 nodes and 682 gangs: the bar is 0.3 s, the test leaves room for a busy machine."""
    nodes = tuple(Node(name=f"n{i:04}", path=(f"s{i // 512}", f"l{i // 32}"), gpus=8) for i in range(2048))
    jobs = tuple(gang(f"j{k}", 3, 8, exclusive_level="node", queue="q") for k in range(682))
    request = Request(
        fabric=FabricSpec(levels=("spine", "leaf")),
        nodes=nodes,
        jobs=jobs,
        queues=(Queue(name="q", quotas=(Quota(guaranteed=682 * 3 * 8),)),),
    )
    full = Placement(jobs=tuple(placed(f"j{k}", {f"n{3 * k + i:04}": 1 for i in range(3)}) for k in range(682)))
    fabric = build_fabric(request.fabric, nodes)
    start = time.perf_counter()
    assert verify(request, full, fabric) == ()
    assert time.perf_counter() - start < 1.5


# Spoiling: a valid placement (or the cluster under it) is changed in one way whose rule is known.

Spoiled = tuple[str, Request, Placement]
Spoil = Callable[[Request, Placement, Job, PodSet, PlacedPods], Iterator[Spoiled]]


def entries(request: Request, given: Placement) -> Iterator[tuple[Job, PodSet, PlacedPods]]:
    jobs = {job.name: job for job in request.jobs}
    for one in given.jobs:
        job = jobs[one.job]
        for pods in one.pods:
            yield job, next(p for p in job.podsets if p.name == pods.podset), pods


def with_entry(given: Placement, job: Job, old: PlacedPods, *new: PlacedPods) -> Placement:
    """Return the placement with one entry replaced."""
    return Placement(
        jobs=tuple(
            PlacedJob(job=j.job, pods=tuple(p for e in j.pods for p in (new if e is old else (e,))))
            if j.job == job.name
            else j
            for j in given.jobs
        )
    )


def with_node(request: Request, name: str, **update: object) -> Request:
    nodes = tuple(n.model_copy(update=update) if n.name == name else n for n in request.nodes)
    return request.model_copy(update={"nodes": nodes})


def with_podset(request: Request, job: Job, podset: PodSet, **update: object) -> Request:
    podsets = tuple(p.model_copy(update=update) if p is podset else p for p in job.podsets)
    jobs = tuple(j.model_copy(update={"podsets": podsets}) if j is job else j for j in request.jobs)
    return request.model_copy(update={"jobs": jobs})


def rename(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    yield "gang", request, with_entry(given, job, pods, pods.model_copy(update={"node": "?"}))
    yield "gang", request, with_entry(given, job, pods, pods.model_copy(update={"podset": "?"}))
    others = tuple(j if j.job != job.name else j.model_copy(update={"job": "?"}) for j in given.jobs)
    yield "gang", request, Placement(jobs=others)


def miscount(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    many = pods.model_copy(update={"count": podset.count + 1, "gpus": pods.gpus[:1] * (podset.count + 1)})
    yield "gang", request, with_entry(given, job, pods, many)
    if podset.min_count is None:
        yield "gang", request, with_entry(given, job, pods)


def shrink_node(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    yield "capacity", with_node(request, pods.node, max_pods=pods.count - 1), given
    if podset.gpus or podset.has_share:
        yield "capacity", with_node(request, pods.node, gpus=0, gpu_details=()), given
    if podset.cpu_milli:
        yield "capacity", with_node(request, pods.node, cpu_milli=pods.count * podset.cpu_milli - 1), given
    if podset.memory_bytes:
        yield "capacity", with_node(request, pods.node, memory_bytes=pods.count * podset.memory_bytes - 1), given


def take_gpus(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    node = next(n for n in request.nodes if n.name == pods.node)
    thief = Allocation(job="thief", holds=(Hold(node=node.name, gpus=node.gpus),))
    if podset.gpus or podset.has_share:
        yield "capacity", request.model_copy(update={"allocations": (*request.allocations, thief)}), given
    if pods.gpus:
        yield "capacity", request, with_entry(given, job, pods, pods.model_copy(update={"gpus": ()}))


def shut_node(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    yield "eligible", with_node(request, pods.node, schedulable=False), given
    yield "eligible", with_podset(request, job, podset, not_nodes=(pods.node,)), given
    yield "eligible", with_podset(request, job, podset, pools=("?",)), given
    yield "eligible", with_podset(request, job, podset, selector={"?": ("?",)}), given
    if job.walltime_s != 0:
        closed = Reservation(name="maintenance", nodes=(pods.node,), start_s=request.now_s)
        yield "window", request.model_copy(update={"reservations": (closed,)}), given


def tighten(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    nodes = {e.node for j, p, e in entries(request, given) if p is podset}
    if len(nodes) > 1:
        yield "required_level", with_podset(request, job, podset, required_level="node"), given
        ties = {"together": (Together(level="node"),)}
        tied = tuple(j.model_copy(update=ties) if j is job else j for j in request.jobs)
        yield "together", request.model_copy(update={"jobs": tied}), given
    if pods.count > 1:
        yield "spread", with_podset(request, job, podset, spread=(Spread(level="node", max_per_domain=1),)), given
    # no node holds more than all pods of the podset, and so never twice as many
    yield "slice", with_podset(request, job, podset, slices=(Slice(level="node", size=2 * podset.count),)), given


def crowd(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    guest = Allocation(job="guest", holds=(Hold(node=pods.node),))
    alone = tuple(j.model_copy(update={"exclusive_level": "node"}) if j is job else j for j in request.jobs)
    yield "apart", request.model_copy(update={"allocations": (*request.allocations, guest), "jobs": alone}), given
    host = guest.model_copy(update={"exclusive_level": "node"})
    yield "apart", request.model_copy(update={"allocations": (*request.allocations, host)}), given


def cut_quota(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    if podset.gpus or podset.has_share:
        queue = Queue(name="poor", quotas=(Quota(guaranteed=0),))
        jobs = tuple(j.model_copy(update={"queue": "poor"}) if j is job else j for j in request.jobs)
        yield "quota", request.model_copy(update={"jobs": jobs, "queues": (queue,)}), given


def bind(request: Request, given: Placement, job: Job, podset: PodSet, pods: PlacedPods) -> Iterator[Spoiled]:
    missing = gang("missing", 1)
    group = JobGroup(name="whole", jobs=(job.name, "missing"))
    yield "gang", request.model_copy(update={"jobs": (*request.jobs, missing), "groups": (group,)}), given


SPOILS: list[Spoil] = [rename, miscount, shrink_node, take_gpus, shut_node, tighten, crowd, cut_quota, bind]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda s: s.__name__)
@settings(deadline=None, derandomize=True, max_examples=40)
@given(request=requests(max_nodes=3, max_jobs=2))
def test_spoiling_a_valid_placement_is_found(spoil: Spoil, request: Request) -> None:
    best = brute_force(request).placement
    assert verify(request, best) == ()
    for job, podset, pods in entries(request, best):
        for rule, spoiled, given_now in spoil(request, best, job, podset, pods):
            assert rule in {v.rule for v in verify(spoiled, given_now)}


@settings(deadline=None, derandomize=True, max_examples=60)
@given(requests(max_nodes=3, max_jobs=3, without={"groups"}))
def test_parts_of_a_valid_placement_are_valid(request: Request) -> None:
    """Leaving jobs out frees room and adds nothing: only all-or-none groups could object. Brute force rests on it."""
    best = brute_force(request).placement
    assume(best.jobs)
    index = RequestIndex(request)
    for i in range(len(best.jobs)):
        assert check(index, Placement(jobs=best.jobs[:i] + best.jobs[i + 1 :])) == ()


@settings(deadline=None, derandomize=True, max_examples=60)
@given(requests(max_nodes=3, max_jobs=2))
def test_the_order_of_nodes_and_jobs_does_not_matter(request: Request) -> None:
    best = brute_force(request).placement
    turned = request.model_copy(update={"nodes": request.nodes[::-1], "jobs": request.jobs[::-1]})
    assert verify(turned, Placement(jobs=best.jobs[::-1])) == ()
