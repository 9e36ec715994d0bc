"""Brute force against answers counted by hand, and against itself without its pruning."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.schema import (
    Allocation,
    Apart,
    FabricSpec,
    Gpu,
    Hold,
    Job,
    JobGroup,
    Node,
    Objective,
    PlacedJob,
    PlacedPods,
    Placement,
    Request,
)
from kant_opt.testing.brute_force import brute_force, feasible
from kant_opt.testing.builders import gang, placement, podset, racks, running
from kant_opt.testing.objective import Values, better, evaluate
from kant_opt.testing.strategies import placements, requests
from kant_opt.verify import RequestIndex, check, verify


@dataclass(frozen=True)
class Case:
    """`values` maps levels to their best value; `why` argues it."""

    name: str
    request: Request
    values: dict[str, int]
    why: str


def order(*terms: str) -> Objective:
    return Objective.model_validate({"order": terms})


CASES = [
    Case(
        "two-racks-one-gang",
        racks("1,1|1,1|1", jobs=[gang("a", 3)]),
        {"admitted[0]": 3000, "traffic": 1, "broken_nodes": 0, "broken_leaves": 0},
        "3 pods exceed every rack, two racks are the least; 2 + the rack of one node leaves no rack half used",
    ),
    Case(
        "block-weighs-four-racks",
        racks("1|1|1/3", jobs=[gang("a", 3)], objective=order("traffic", "admitted")),
        {"traffic": 0, "admitted[0]": 3000},
        "the node of 3 holds all",
    ),
    Case(
        "across-blocks",
        racks("1|1/1|1", jobs=[gang("a", 3)]),
        {"admitted[0]": 3000, "traffic": 2 * 1 + 1 * 4, "broken_nodes": 0, "broken_leaves": 0},
        "one node a rack and two racks a block: 3 racks (2 more, weight 1), 2 blocks (1 more, weight 4)",
    ),
    Case(
        "all-to-all-counts-pairs",
        racks("2|2", jobs=[gang("a", 3, communication="all_to_all")]),
        {"admitted[0]": 3000, "traffic": 2, "broken_nodes": 1, "broken_leaves": 0},
        "2 + 1 pods: 3 pairs, one of them inside a rack",
    ),
    Case(
        "silent-jobs-cost-nothing",
        racks("1|1", jobs=[gang("a", 2, communication="none")]),
        {"admitted[0]": 2000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "communication is none",
    ),
    Case(
        "high-priority-beats-many-gpus",
        racks("4", jobs=[gang("big", 1, 4), gang("small", 1, 1, priority=1)]),
        {"admitted[1]": 1000, "admitted[0]": 0, "traffic": 0, "broken_nodes": 1, "broken_leaves": 0},
        "both need the one node: one GPU of class 1 is worth more than four of class 0",
    ),
    Case(
        "elastic-takes-what-there-is",
        racks("3", jobs=[gang("a", 5, min_count=2)]),
        {"admitted[0]": 3000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "2 to 5 pods on 3 GPUs",
    ),
    Case(
        "elastic-in-whole-slices",
        racks("3", jobs=[gang("a", 4, min_count=2, slices=({"level": "node", "size": 2},))]),
        {"admitted[0]": 2000, "traffic": 0, "broken_nodes": 1, "broken_leaves": 0},
        "3 GPUs hold one slice of two",
    ),
    Case(
        "shares-share",
        racks("1|1", jobs=[gang("a", 2, 0, gpu_milli=500), gang("b", 1, 0, gpu_milli=501)]),
        {"admitted[0]": 1501, "traffic": 0, "broken_nodes": 1, "broken_leaves": 0},
        "501 does not fit beside 500, so a fills one GPU and b breaks the other node",
    ),
    Case(
        "mib-round-up",
        Request(nodes=(Node(name="n", gpus=1, gpu_memory_mib=3),), jobs=(gang("a", 3, 0, gpu_memory_mib=1),)),
        {"admitted[0]": 3 * 334, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "1 of 3 MiB is 334 thousandths rounded up, and three of them fill the GPU exactly",
    ),
    Case(
        "broken-node-is-filled",
        racks("1,4", gpus_total=4, jobs=[gang("a", 1)]),
        {"admitted[0]": 1000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 1},
        "the pod completes the node with 3 of 4 used; one of two nodes stays empty",
    ),
    Case(
        "group-that-does-not-fit",
        racks("3", jobs=[gang("a", 2), gang("b", 2)], groups=(JobGroup(name="g", jobs=("a", "b")),)),
        {"admitted[0]": 0, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "4 GPUs wanted, 3 there: all or none",
    ),
    Case(
        "living-members-draw-near",
        racks("1,1|2,2", jobs=[gang("a", 3)], allocations=(running("a", {"r1n1": 1}),)),
        {"admitted[0]": 2000, "traffic": 1, "broken_nodes": 0, "broken_leaves": 2},
        "r1 has one free GPU for two pods, so r2 is used too; both on one node of r2 break no node, "
        "one each in r1 and r2 would; then r1 and r2 are half used",
    ),
    Case(
        "weighted-sum",
        racks("1|1|1", jobs=[gang("a", 3)], objective=Objective(weights={"admitted": 1, "traffic": 1501})),
        {"weighted": 0},
        "3000 gained less 2 x 1501 is a loss: nothing is placed",
    ),
    Case(
        "sick-gpus-are-no-capacity",
        Request(
            nodes=(Node(name="n", gpus=3, gpu_details=(Gpu(index=1, healthy=False),)),),
            jobs=(gang("a", 1, 0, gpu_milli=1), gang("b", 1, 1)),
        ),
        {"admitted[0]": 1001, "traffic": 0, "broken_nodes": 1, "broken_leaves": 0},
        "of two healthy GPUs one is full and one used in part",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_best_value(case: Case) -> None:
    answer = brute_force(case.request)
    assert dict(answer.values) == case.values, case.why
    assert verify(case.request, answer.placement) == ()


def test_number_of_candidates() -> None:
    """3 alike pods over 3 roomy nodes: C(5, 2) = 10 splits, and nothing placed."""
    assert brute_force(racks("3,3,3", jobs=[gang("a", 3)])).candidates == 10 + 1


def test_number_of_candidates_with_shares() -> None:
    """2 alike small shares over 3 GPUs: 6 multisets; two jobs of one each: (3 + 1)^2 as all fit everywhere."""
    assert brute_force(racks("3", jobs=[gang("a", 2, 0, gpu_milli=1)])).candidates == 6 + 1
    two = [gang(name, 1, 0, gpu_milli=1) for name in "ab"]
    assert brute_force(racks("3", jobs=two)).candidates == 16


def test_number_of_candidates_of_two_podsets() -> None:
    """1 pod on 2 nodes beside 1 other pod on 2 nodes, apart: 2 ways, and nothing placed."""
    ban = Apart(level="node", podsets=("x", "y"))
    job = Job(name="a", podsets=(podset("x", 1), podset("y", 1)), apart=(ban,))
    assert brute_force(racks("2,2", jobs=[job])).candidates == 2 + 1


def test_too_large_a_request_is_refused() -> None:
    with pytest.raises(InputError, match="more than 50 placements"):
        brute_force(racks("9,9,9", jobs=[gang("a", 9)]), limit=50)


def test_feasible_looks_at_the_job_alone() -> None:
    request = racks(
        "2|1", jobs=[gang("a", 2, required_level="rack"), gang("b", 3, required_level="rack"), gang("c", 3)],
        groups=(JobGroup(name="g", jobs=("a", "b")),),
    )  # fmt: skip
    assert [feasible(request, name) for name in "abc"] == [True, False, True]


def test_a_job_with_nothing_to_place_is_feasible() -> None:
    request = racks("1|1", jobs=[gang("a", 1, required_level="rack")], allocations=(running("a", {"r1n1": 1}),))
    assert feasible(request, "a")
    assert brute_force(request).placement == Placement()


def values_of(request: Request, given: Placement) -> dict[str, int]:
    return dict(evaluate(RequestIndex(request), given))


class TestObjectiveByHand:
    """`evaluate` on single placements, counted on paper."""

    def test_levels_without_a_weight_keep_the_usual_one(self) -> None:
        """One more block at 7, two more racks at 1."""
        request = racks("1|1/1", jobs=[gang("a", 3)], objective=Objective(traffic_weights={"block": 7}))
        assert values_of(request, placement(a={"r1n1": 1, "r2n1": 1, "r3n1": 1}))["traffic"] == 9

    def test_all_pairs_on_two_levels(self) -> None:
        """Racks 2, 1 | 1: 6 pairs, 1 inside a rack: 5 x 1; 3 inside a block: 3 x 4."""
        request = racks("2|1/1", jobs=[gang("a", 4, communication="all_to_all")])
        assert values_of(request, placement(a={"r1n1": 2, "r2n1": 1, "r3n1": 1}))["traffic"] == 5 + 12

    def test_living_members_of_placed_jobs_only(self) -> None:
        """a is placed (living in r1, new in r2: 1), b only runs, in two racks: 0."""
        request = racks(
            "2|2", jobs=[gang("a", 2), gang("b", 2)],
            allocations=(running("a", {"r1n1": 1}), running("b", {"r1n1": 1, "r2n1": 1})),
        )  # fmt: skip
        assert values_of(request, placement(a={"r2n1": 1}))["traffic"] == 1

    def test_closed_and_sick_nodes_are_not_broken(self) -> None:
        """n: closed. m: its sick GPU apart full. k: half of its only healthy GPU. e: no GPUs. One broken node: k."""
        sick = (Gpu(index=0, healthy=False),)
        nodes = (
            Node(name="n", path=("r",), gpus=2, schedulable=False),
            Node(name="m", path=("r",), gpus=2, gpu_details=sick),
            Node(name="k", path=("r",), gpus=2, gpu_details=sick),
            Node(name="e", path=("r",)),
            Node(name="z", path=("s",), gpus=1),
            Node(name="u", path=(None,), gpus=1),
        )
        holds = (Hold(node="n", gpus=1), Hold(node="m", gpus=1), Hold(node="k", gpu_milli=500, gpu_indices=(1,)))
        request = Request(
            fabric=FabricSpec(levels=("rack",)), nodes=nodes, allocations=(Allocation(job="o", holds=holds),)
        )
        got = values_of(request, Placement())
        assert got == {"traffic": 0, "broken_nodes": 1, "broken_leaves": 0}  # rack r: m and k, both used

    def test_over_committed_is_full_not_broken(self) -> None:
        request = Request(nodes=(Node(name="n", gpus=2),), allocations=(running("o", {"n": 3}),))
        assert values_of(request, Placement())["broken_nodes"] == 0

    def test_holds_on_sick_gpus_use_nothing(self) -> None:
        node = Node(name="n", gpus=2, gpu_details=(Gpu(index=0, healthy=False),))
        holds = (Hold(node="n", gpus=1, gpu_indices=(0,)),)
        request = Request(nodes=(node,), allocations=(Allocation(job="o", holds=holds),))
        assert values_of(request, Placement())["broken_nodes"] == 0

    def test_whole_pods_of_two_gpus_fill_a_node_of_two(self) -> None:
        request = racks("2|2", jobs=[gang("a", 1, 2), gang("b", 1, 1)])
        got = values_of(request, placement(a={"r1n1": 1}, b={"r2n1": 1}))
        assert (got["admitted[0]"], got["broken_nodes"]) == (3000, 1)

    def test_a_thousandth_breaks_a_node_and_its_rack(self) -> None:
        request = racks("1,1", jobs=[gang("a", 1, 0, gpu_milli=1)])
        got = values_of(request, placement(a={"r1n1": [(0,)]}))
        assert got == {"admitted[0]": 1, "traffic": 0, "broken_nodes": 1, "broken_leaves": 1}

    def test_mib_that_divide_are_not_rounded(self) -> None:
        nodes = (Node(name="n", gpus=1, gpu_memory_mib=1000),)
        request = Request(
            nodes=nodes, jobs=(gang("a", 1, 0, gpu_memory_mib=500),), objective=order("admitted", "moves")
        )
        assert values_of(request, placement(a={"n": [(0,)]})) == {"admitted[0]": 500, "moves": 0}

    def test_no_leaves_without_levels(self) -> None:
        request = Request(nodes=(Node(name="n", gpus=1), Node(name="m", gpus=1)), jobs=(gang("a", 1),))
        assert values_of(request, placement(a={"n": 1})) == {
            "admitted[0]": 1000,
            "traffic": 0,
            "broken_nodes": 0,
            "broken_leaves": 0,
        }

    @pytest.mark.parametrize(
        ("values", "than", "answer"),
        [
            ((("admitted[1]", 2), ("traffic", 9)), (("admitted[1]", 1), ("traffic", 0)), True),
            ((("admitted[1]", 2), ("traffic", 1)), (("admitted[1]", 2), ("traffic", 2)), True),
            ((("admitted[1]", 2), ("traffic", 2)), (("admitted[1]", 2), ("traffic", 2)), False),
            ((("traffic", 1), ("admitted[1]", 9)), (("traffic", 0), ("admitted[1]", 1)), False),
        ],
    )
    def test_better_is_lexicographic(self, values: Values, than: Values, answer: bool) -> None:
        assert better(values, than) is answer


@settings(deadline=None, derandomize=True, max_examples=100)
@given(request=requests(max_nodes=4, max_jobs=3), data=st.data())
def test_best_is_valid_and_nothing_drawn_beats_it(request: Request, data: st.DataObject) -> None:
    best = brute_force(request)
    assert verify(request, best.placement) == ()
    assert evaluate(RequestIndex(request), best.placement) == best.values
    for _ in range(2):
        drawn = data.draw(placements(request, name_gpus=True))
        if not verify(request, drawn):
            assert not better(evaluate(RequestIndex(request), drawn), best.values)


def every_placement(request: Request) -> list[Placement]:
    """Return all placements of single pods on any node and GPU, pruned by nothing; also of jobs with no pod."""
    per_job: list[list[PlacedJob | None]] = []
    for job in request.jobs:
        per_podset = [
            [pods for count in range(p.count + 1) for pods in product(places(request, p), repeat=count)]
            for p in job.podsets
        ]
        pods = [tuple(pod for pods in choice for pod in pods) for choice in product(*per_podset)]
        per_job.append([None, *(PlacedJob(job=job.name, pods=chosen) for chosen in pods)])
    return [Placement(jobs=tuple(j for j in jobs if j is not None)) for jobs in product(*per_job)]


def places(request: Request, pods: Any) -> list[PlacedPods]:
    """Return every node, and every GPU of it for a share, that one pod may name."""
    if not pods.has_share:
        return [PlacedPods(podset=pods.name, node=n.name) for n in request.nodes]
    return [PlacedPods(podset=pods.name, node=n.name, gpus=((i,),)) for n in request.nodes for i in range(n.gpus)]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(requests(max_nodes=2, max_jobs=2, max_pods=2))
def test_pruning_loses_nothing(request: Request) -> None:
    """Without any pruning the best value is the same."""
    index = RequestIndex(request)
    candidates = every_placement(request)
    assume(len(candidates) <= 3000)
    best = evaluate(index, Placement())
    for candidate in candidates:
        if not check(index, candidate) and better(values := evaluate(index, candidate), best):
            best = values
    assert brute_force(request).values == best


@settings(deadline=None, derandomize=True, max_examples=60)
@given(requests(max_nodes=3, max_jobs=2, without={"elastic", "groups", "objectives", "priorities"}))
def test_a_feasible_job_is_placed_if_it_goes_first(request: Request) -> None:
    """With a priority class of its own above all others, a job that asks for GPUs is admitted exactly if feasible."""
    index = RequestIndex(request)
    for job in request.jobs:
        if not any((p.gpus or p.has_share) and index.to_place(job.name, p)[1] for p in job.podsets):
            continue
        first = tuple(j.model_copy(update={"priority": 9}) if j is job else j for j in request.jobs)
        best = brute_force(request.model_copy(update={"jobs": first}))
        assert (dict(best.values)["admitted[9]"] > 0) == feasible(request, job.name)
