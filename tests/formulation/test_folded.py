"""Folded programs: every valid placement can be written, what is read from values is valid, and costs stay the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kant_opt.fabric import build_fabric
from kant_opt.formulation.alike import demands
from kant_opt.formulation.arcs import Arcs
from kant_opt.formulation.bundles import Bundle
from kant_opt.formulation.classes import FILLINGS, Fold, fold
from kant_opt.formulation.filling import Filling
from kant_opt.formulation.patterns import Patterns
from kant_opt.formulation.program import Program
from kant_opt.formulation.slots import Slots
from kant_opt.formulation.stock import Kind, Stock, stock_of
from kant_opt.formulation.written import Pods, Written
from kant_opt.metrics import measure
from kant_opt.schema import Job, PlacedJob, PlacedPods, Placement, Request
from kant_opt.testing.alike import alike_requests
from kant_opt.testing.builders import gang, podset, racks, running
from kant_opt.testing.calm import calm
from kant_opt.testing.strategies import placements
from kant_opt.verify import verify
from kant_opt.view import Cluster, Free, Gang, compile_gangs, shape_of

CALM = calm(200)
ALWAYS: list[Callable[[Cluster, Free, Sequence[Gang]], Fold]] = [
    partial(fold, fillings=FILLINGS[i:], always=True) for i in range(len(FILLINGS))
]
"""Folds that use slots, patterns or arcs where they can, whatever they cost."""


def folded(
    request: Request, choose: Callable[[Cluster, Free, Sequence[Gang]], Fold] = fold
) -> tuple[Written, Fold, Cluster]:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    free, gangs = Free(cluster), compile_gangs(cluster)
    chosen = choose(cluster, free, gangs)
    return Written(cluster, free, gangs, chosen), chosen, cluster


def costs(request: Request, placement: Placement) -> dict[str, int]:
    values = measure(request, placement)
    return {n: v for term in request.objective.order for n, v in values.items() if n.split("[")[0] == term}


def placement_of(cluster: Cluster, jobs: set[str], pods: Sequence[Pods]) -> Placement:
    entries: dict[str, list[PlacedPods]] = {name: [] for name in sorted(jobs)}
    for here in pods:
        name = cluster.nodes[here.node].name
        entries[here.part.job.name].append(
            PlacedPods(podset=here.part.podset.name, node=name, count=here.count, gpus=here.gpus)
        )
    return Placement(jobs=tuple(PlacedJob(job=job, pods=tuple(found)) for job, found in entries.items()))


def holds_and_gives_back(request: Request, placement: Placement) -> None:
    """A valid placement breaks no row and costs what it costs; what is read back is valid and costs the same."""
    for choose in ALWAYS:
        written, _, cluster = folded(request, choose)
        if any(job.job not in written.vars.placed for job in placement.jobs):
            return  # a job with nothing to place is not listed in answers
        values = written.encode(placement)
        assert list(written.program.broken(values)) == []
        assert written.program.cost(values) == costs(request, placement)
        jobs, pods = written.decode(values)
        assert len(jobs) == len(placement.jobs)
        again = placement_of(cluster, jobs, pods)
        assert verify(request, again) == ()
        assert costs(request, again) == costs(request, placement)
        back = written.values_of(jobs, pods)
        assert list(written.program.broken(back)) == []
        assert written.program.cost(back) == written.program.cost(values)


@settings(CALM, max_examples=120)
@given(alike_requests(copies=3, max_jobs=2), st.data())
def test_every_valid_placement_is_held_and_given_back(request: Request, draw: st.DataObject) -> None:
    placement = draw.draw(placements(request))
    if not verify(request, placement):
        holds_and_gives_back(request, placement)


@pytest.mark.slow
def test_many_valid_placements() -> None:
    @settings(CALM, max_examples=1500)
    @given(alike_requests(max_nodes=4), st.data())
    def check(request: Request, draw: st.DataObject) -> None:
        placement = draw.draw(placements(request))
        if not verify(request, placement):
            holds_and_gives_back(request, placement)

    check()


# -- fillings: which pods fit, against trying all ways ---------------------------------------------


def kinds(*rooms: tuple[int, int]) -> tuple[Kind, ...]:
    """Return kinds of one resource from (room, number of nodes)."""
    found, first = [], 0
    for room, number in rooms:
        found.append(Kind(tuple(range(first, first + number)), (room,), room, idle=True))
        first += number
    return tuple(found)


def fits(sizes: Sequence[int], pods: Sequence[int], bins: Sequence[int]) -> bool:
    """Return whether pods fit, by trying every bin for each of them."""
    if not any(pods):
        return True
    s = next(i for i, n in enumerate(pods) if n)
    rest = [n - (i == s) for i, n in enumerate(pods)]
    for i in {room: i for i, room in enumerate(bins) if room >= sizes[s]}.values():
        left = [room - sizes[s] * (i == n) for n, room in enumerate(bins)]
        if fits(sizes, rest, left):
            return True
    return False


@settings(CALM, max_examples=50)
@given(
    st.sampled_from(((1, 2, 4), (1, 3), (1, 2, 6), (1, 1, 2))),
    st.lists(st.integers(0, 6), min_size=1, max_size=3),
)
def test_slots_tell_which_pods_fit(sizes: tuple[int, ...], rooms: list[int]) -> None:
    most = 4
    stock = Stock(tuple((s,) for s in sizes), sizes, (most,) * len(sizes), kinds(*((r, 1) for r in rooms)), False)
    assert Slots.suits(stock)
    program, filling = Program(), Slots(stock)
    pods = [program.var(f"p{s}", 0, most) for s in range(len(sizes))]
    filling.write(program, "x", [{var: 1} for var in pods])
    for counts in product(range(most + 1), repeat=len(sizes)):
        said = not list(program.broken(list(counts)))
        assert said == fits(sizes, counts, rooms), counts
        if said:
            loads = filling.fill(list(counts), counts)
            assert [sum(load[s] for load in loads.values()) for s in range(len(sizes))] == list(counts)
            assert all(sum(n * s for n, s in zip(load, sizes, strict=True)) <= rooms[i] for i, load in loads.items())


def test_sizes_of_which_one_does_not_divide_the_next_have_no_slots() -> None:
    """A pod of 3 takes both slots of size 2 from a node of 4 and one of two from a node of 5: counts do not tell."""
    stock = Stock(((2,), (3,)), (2, 3), (3, 1), kinds((3, 2)), False)
    assert not Slots.suits(stock)
    assert Patterns.suits(stock)


@settings(CALM, max_examples=100)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
@pytest.mark.parametrize("made", [Slots, Patterns, Arcs])
def test_fillings_give_back_what_they_were_given(made: type[Filling], sizes: list[int], draw: st.DataObject) -> None:
    needs = tuple((s,) for s in sizes)
    stock = Stock(needs, tuple(sizes), (3,) * len(sizes), kinds((6, 2), (4, 2)), fragments=True)
    assume(made.suits(stock))
    program, filling = Program(), made(stock)
    pods = [program.var(f"p{s}", 0, 12) for s in range(len(sizes))]
    filling.write(program, "x", [{var: 1} for var in pods])
    loads, values = {}, [0] * len(program.names)
    for node, room in enumerate((6, 6, 4, 4)):
        load = draw.draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
        if sum(n * s for n, s in zip(load, sizes, strict=True)) <= room:
            loads[node] = load
            for var, n in zip(pods, load, strict=True):
                values[var] += n
    filling.set(values, loads)
    assert [name for _, name in program.broken(values) if not name.startswith("p")] == []
    taken = {node: sum(n * s for n, s in zip(load, sizes, strict=True)) for node, load in loads.items()}
    assert sum(c * values[i] for i, c in filling.used.items()) == sum(n > 0 for n in taken.values())
    assert sum(c * values[i] for i, c in filling.full.items()) == sum(
        n == (6, 6, 4, 4)[node] for node, n in taken.items()
    )
    found = filling.fill(values, [values[var] for var in pods])
    assert [sum(load[s] for load in found.values()) for s in range(len(sizes))] == [values[var] for var in pods]
    again = {node: sum(n * s for n, s in zip(load, sizes, strict=True)) for node, load in found.items()}
    assert all(n <= (6, 6, 4, 4)[node] for node, n in again.items())
    assert sorted(n for n in again.values() if n) == sorted(n for n in taken.values() if n)


# -- what is left out of a stock --------------------------------------------------------------------


def stock(request: Request, *, fragments: bool = False) -> Stock:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    shapes = {Bundle(shape_of(p)): p.count for job in request.jobs for p in job.podsets}
    nodes = np.arange(len(cluster.nodes))
    return stock_of(Free(cluster), tuple(shapes), tuple(shapes.values()), nodes, fragments=fragments)


def with_cpu(request: Request, milli: int) -> Request:
    nodes = tuple(node.model_copy(update={"cpu_milli": milli}) for node in request.nodes)
    return request.model_copy(update={"nodes": nodes})


def test_cpu_that_cannot_run_short_is_left_out() -> None:
    """8 GPUs take at most 8 x 4000 milli-CPU, and there are 32,000."""
    found = stock(
        with_cpu(racks("8,8", jobs=[gang("a", 4, 1, cpu_milli=4000), gang("b", 4, 4, cpu_milli=8000)]), 32_000)
    )
    assert found.needs == ((1,), (4,))
    assert [kind.room for kind in found.kinds] == [(8,)]


def test_cpu_in_step_with_gpus_is_the_same_resource() -> None:
    """4000 milli-CPU per GPU, of which 20,000 are there: as good as five GPUs."""
    found = stock(with_cpu(racks("8", jobs=[gang("a", 4, 1, cpu_milli=4000), gang("b", 4, 2, cpu_milli=8000)]), 20_000))
    assert found.needs == ((1,), (2,))
    assert [kind.room for kind in found.kinds] == [(5,)]


def test_cpu_out_of_step_stays() -> None:
    found = stock(with_cpu(racks("8", jobs=[gang("a", 8, 1, cpu_milli=9000), gang("b", 4, 2, cpu_milli=1000)]), 20_000))
    assert found.needs == ((1, 9), (2, 1))
    assert [kind.room for kind in found.kinds] == [(8, 20)]


def test_room_beyond_what_can_come_makes_no_kinds() -> None:
    """Two pods of one GPU at most: nodes with 2, 5 and 8 free GPUs take the same pods, but fill up differently."""
    request = racks("2,5,8", jobs=[gang("a", 2, 1)])
    assert len(stock(request).kinds) == 1
    assert len(stock(request, fragments=True).kinds) == 3


# -- what is folded, and what stays -------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    name: str
    request: Request
    classes: int
    says: str
    why: str


WIDE = "8,8,8,8|8,8,8,8"
CASES = [
    Case("powers-of-two", racks(WIDE, jobs=[gang("a", 4, 8), gang("b", 3, 2)]), 2, "slots", "2 divides 8"),
    Case("two-and-three", racks(WIDE, jobs=[gang("a", 3, 2), gang("b", 3, 3)]), 2, "patterns", "2 does not divide 3"),
    Case(
        "many-sizes",
        racks(",".join(["40"] * 30), jobs=[gang(f"g{i}", 2, i) for i in range(7, 24)]),
        1,
        "arc-flow",
        "seventeen sizes have more than 500 loads on a node of 40, but hardly 300 arcs",
    ),
    Case("one-node-a-leaf", racks("8|8|8", jobs=[gang("a", 2, 8)]), 0, "per node", "nothing is alike inside a leaf"),
    Case(
        "shares",
        racks("2,2,2", jobs=[gang("a", 2, 0, gpu_milli=300), gang("b", 2, 1, gpu_milli=None)]),
        0,
        "3 by themselves: shares of GPUs",
        "shares meet on single GPUs",
    ),
    Case(
        "one-node-for-all",
        racks(WIDE, jobs=[gang("a", 2, 1, required_level="node"), gang("b", 6, 1)]),
        2,
        "slots",
        "its two pods on one node are a pod of two GPUs",
    ),
    Case(
        "slices-of-nodes",
        racks(WIDE, jobs=[gang("a", 16, 1, slices=({"level": "node", "size": 4},)), gang("b", 6, 1)]),
        2,
        "slots",
        "four pods on one node are a pod of four GPUs",
    ),
    Case(
        "one-node-for-some",
        racks(WIDE, jobs=[gang("a", 4, 1, required_level="node", min_count=2)]),
        0,
        "8 by themselves: a rule of a podset on level 'node'",
        "two, three or four pods on one node, nobody knows before",
    ),
    Case(
        "spread-over-nodes",
        racks(WIDE, jobs=[gang("a", 4, 1, spread=({"level": "node", "max_per_domain": 2},))]),
        0,
        "8 by themselves: a rule of a podset on level 'node'",
        "whose pods lie on a node matters",
    ),
    Case(
        "one-pod-knows-no-levels",
        racks(WIDE, jobs=[gang("a", 1, 1, required_level="node", exclusive_level="rack")]),
        2,
        "slots",
        "a single pod lies on one node anyway",
    ),
    Case(
        "spread-that-whole-nodes-keep-anyway",
        racks(WIDE, jobs=[gang("a", 4, 8, spread=({"level": "node", "max_per_domain": 1},))]),
        2,
        "slots",
        "no node has room for two of them",
    ),
    Case(
        "a-job-that-wants-its-nodes-alone",
        racks(WIDE, jobs=[gang("a", 2, 1, exclusive_level="node"), gang("b", 2, 1)]),
        0,
        "8 by themselves: jobs together, apart or exclusive on level 'node'",
        "who else lies on its nodes matters",
    ),
    Case(
        "a-running-job-that-has-its-nodes-alone",
        racks(WIDE, jobs=[gang("b", 4, 1)], allocations=(running("old", {"r1n1": 1}, exclusive_level="node"),)),
        2,
        "1 by themselves",
        "only the node that it holds is out of reach, the others are alike",
    ),
    Case(
        "taints-and-pools-part-classes",
        racks(WIDE, jobs=[gang("a", 4, 1, not_nodes=("r1n1", "r1n2"))]),
        2,
        "6 nodes in 2 classes",
        "two nodes of the first rack take no pod at all",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_folded(case: Case) -> None:
    _, chosen, _ = folded(case.request)
    assert len(chosen.classes) == case.classes, case.why
    assert case.says in str(chosen), case.why


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_never_more_variables_than_per_node(case: Case) -> None:
    _, chosen, _ = folded(case.request)
    assert chosen.variables <= chosen.per_node


def names(request: Request) -> list[list[str]]:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    return [[part.job.name for part in parts] for parts in demands(cluster, compile_gangs(cluster))]


@pytest.mark.parametrize(
    ("jobs", "alike", "why"),
    [
        ([gang("a", 1), gang("b", 1), gang("c", 1)], True, "single pods of one shape"),
        ([gang("a", 1), gang("b", 1, required_level="rack")], True, "a single pod is in one rack anyway"),
        ([gang("a", 1), gang("b", 1, 2)], False, "shapes differ"),
        ([gang("a", 2, required_level="node"), gang("b", 2, required_level="node")], True, "two pods on one node"),
        ([gang("a", 2, required_level="node"), gang("b", 2, communication="none")], False, "one may lie apart"),
        ([gang("a", 2, finished=1, slices=({"level": "rack", "size": 2},)), gang("b", 1)], False,
         "a single pod is no slice of two, it cannot be placed"),
        ([gang("a", 1), gang("b", 1, priority=1)], False, "classes differ"),
        ([gang("a", 1), gang("b", 1, not_nodes=("r1n1",))], False, "one has fewer nodes"),
        ([gang("a", 2), gang("b", 2)], False, "which pods are whose decides what crosses racks"),
        ([gang("a", 2, communication="none"), gang("b", 2, communication="none")], True, "nothing crosses"),
        ([gang("a", 2, communication="none"), gang("b", 3, communication="none")], False, "one is larger"),
        ([gang("a", 2, communication="none", min_count=1), gang("b", 2, communication="none", min_count=1)], False,
         "how many each gets is not told by their sum"),
        ([gang("a", 1), gang("b", 1, apart=({"level": "rack", "jobs": ("a",)},))], False, "one minds the other"),
        ([gang("a", 1), gang("b", 1, exclusive_level="rack")], False, "one minds all"),
    ],
)  # fmt: skip
def test_jobs_alike(jobs: list[Job], alike: bool, why: str) -> None:
    assert names(racks("2,2|2,2", jobs=jobs)) == (
        [[job.name for job in jobs]] if alike else [[job.name] for job in jobs]
    ), why


def test_jobs_that_an_allocation_or_a_group_names_are_not_alike() -> None:
    jobs = [gang("a", 2, communication="none"), gang("b", 2, communication="none")]
    assert len(names(racks("2,2|2,2", jobs=jobs, allocations=(running("a", {"r1n1": 1}),)))) == 2
    assert len(names(racks("2,2|2,2", jobs=jobs, groups=({"name": "g", "jobs": ("a",)},)))) == 2


def test_of_jobs_alike_the_first_are_placed_each_whole() -> None:
    jobs = [gang(name, 2, communication="none") for name in "abc"]
    request = racks("3,2", jobs=jobs)
    written, _, cluster = folded(request, ALWAYS[0])
    placed = Placement(
        jobs=tuple(PlacedJob(job=j, pods=(PlacedPods(node=n, count=2),)) for j, n in (("c", "r1n1"), ("b", "r1n2")))
    )
    found, pods = written.decode(written.encode(placed))
    assert found == {"a", "b"}
    assert verify(request, placement_of(cluster, found, pods)) == ()


def test_podsets_of_one_job_are_never_counted_together() -> None:
    job = Job(name="a", podsets=(podset("lead", 1), podset("rest", 1)))
    assert names(racks("2,2", jobs=[job])) == [["a"], ["a"]]


def test_pods_of_a_bundle_may_be_listed_one_by_one() -> None:
    job = gang("a", 4, 1, slices=({"level": "node", "size": 2},))
    request = racks("4,4", jobs=[job])
    one_by_one = tuple(PlacedPods(node=node) for node in ("r1n1", "r1n1", "r1n2", "r1n2"))
    holds_and_gives_back(request, Placement(jobs=(PlacedJob(job="a", pods=one_by_one),)))
