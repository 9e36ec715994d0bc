"""The objective terms: counted by hand, against naive twins, and under changes that must not matter."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.metrics import MEASURES, Placed, measure, traffic_by_job, traffic_by_level
from kant_opt.schema import (
    Allocation,
    FabricSpec,
    Gpu,
    Hold,
    Job,
    Node,
    Objective,
    PlacedJob,
    PlacedPods,
    Placement,
    PodSet,
    Request,
)
from kant_opt.testing.builders import gang, placed, placement, racks

TWO_BLOCKS = "8,8|8,8/8,8|8,8"  # racks r1, r2 in block b1, r3, r4 in b2; nodes r1n1 ...


# -- by hand -------------------------------------------------------------------------------------


def test_the_terms_are_those_of_the_page(root: Path) -> None:
    table = (root / "models" / "README.md").read_text(encoding="utf-8").split("## Terms")[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    assert list(MEASURES) == [name for name, meaning in rows if meaning != "not yet"]


def test_admitted_counts_new_pods_per_class_highest_first() -> None:
    jobs = [gang("low", 2, 3, priority=-1), gang("high", 1, 8, priority=9), gang("left-out", 1, 8, priority=4)]
    held = Allocation(job="low", holds=(Hold(node="r1n1", gpus=3),))
    request = racks("8,8", jobs=jobs, allocations=(held,))
    values = measure(request, placement(low={"r1n1": 1}, high={"r1n2": 1}))
    assert list(values.items())[:3] == [("admitted[9]", 8000), ("admitted[4]", 0), ("admitted[-1]", 3000)]


def test_admitted_shares_round_up_on_the_node_that_takes_them() -> None:
    nodes = (Node(name="a", gpus=1, gpu_memory_mib=3), Node(name="b", gpus=2, gpu_memory_mib=7))
    jobs = (
        gang("mib", 3, 0, gpu_memory_mib=1, priority=1),  # 1000/3 -> 334 on a, 1000/7 -> 143 on b
        gang("milli", 1, 0, gpu_milli=410),
    )
    where = placement(mib={"a": [(0,), (0,)], "b": [(1,)]}, milli={"b": [(0,)]})
    values = measure(Request(nodes=nodes, jobs=jobs), where)
    assert (values["admitted[1]"], values["admitted[0]"]) == (2 * 334 + 143, 410)


SPREAD_OUT = {"r1n1": 2, "r2n1": 1, "r3n1": 1}  # racks 2+1+1 pods, blocks 3+1


@pytest.mark.parametrize(
    ("communication", "weights", "cost", "why"),
    [
        ("ring", {}, 2 * 1 + 1 * 4, "two racks more, one block more; weights 1 and 4"),
        ("ring", {"block": 100, "rack": 10}, 2 * 10 + 1 * 100, "as given"),
        ("ring", {"rack": 0}, 4, "the level not given keeps its own weight"),
        ("all_to_all", {}, 5 * 1 + 3 * 4, "pairs across racks 2*1+2*1+1*1, across blocks 3*1"),
        ("none", {"block": 100}, 0, "nobody talks"),
    ],
)
def test_traffic_by_hand(communication: str, weights: dict[str, int], cost: int, why: str) -> None:
    job = gang("a", 4, 4, communication=communication)
    request = racks(TWO_BLOCKS, jobs=[job], objective=Objective(traffic_weights=weights))
    assert measure(request, placement(a=SPREAD_OUT))["traffic"] == cost, why


def test_living_pods_cross_with_the_new_ones_but_only_of_placed_jobs() -> None:
    held = tuple(Allocation(job=name, holds=(Hold(node="r1n1", gpus=1), Hold(node="r4n1", gpus=1))) for name in "ab")
    request = racks(TWO_BLOCKS, jobs=[gang("a", 3), gang("b", 3)], allocations=held)
    where = Placed(request, placement(a={"r4n2": 1}))
    assert traffic_by_job(where) == {"a": 1 + 4}


def test_a_hold_without_pods_and_a_job_without_pods_cross_nothing() -> None:
    held = Allocation(job="a", holds=(Hold(node="r1n1", pods=0, gpus=1), Hold(node="r4n1", gpus=1)))
    request = racks(TWO_BLOCKS, jobs=[gang("a", 1), gang("b", 0)], allocations=(held,))
    assert traffic_by_job(Placed(request, placement(a={}, b={}))) == {"a": 0, "b": 0}


def test_nodes_of_unknown_rack_share_it_with_nobody() -> None:
    nodes = tuple(Node(name=n, path=("b", None), gpus=1) for n in "xy")
    request = Request(fabric=FabricSpec(levels=("block", "rack")), nodes=nodes, jobs=(gang("a", 2),))
    assert traffic_by_level(Placed(request, placement(a={"x": 1, "y": 1}))) == {"block": 0, "rack": 1}


@pytest.mark.parametrize(
    ("text", "total", "broken", "why"),
    [
        ("8,8|8,8", 8, (0, 0), "all empty"),
        ("0,0|0,0", 8, (0, 0), "all full"),
        ("0,8|8,8", 8, (0, 1), "one full node breaks its rack only"),
        ("1,8|7,0", 8, (2, 1), "two nodes in part; in the second rack both are used"),
        ("7|1", 8, (2, 0), "racks of one node are never broken"),
    ],
)
def test_broken_by_hand(text: str, total: int, broken: tuple[int, int], why: str) -> None:
    values = measure(racks(text, gpus_total=total), Placement())
    assert (values["broken_nodes"], values["broken_leaves"]) == broken, why


NODE = Node(name="n", gpus=3, gpu_memory_mib=3, path=("r",))


@pytest.mark.parametrize(
    ("node", "holds", "broken", "why"),
    [
        (NODE, [Hold(node="n", gpu_indices=(0,), gpu_milli=1)], 1, "a thousandth is use"),
        (NODE, [Hold(node="n", gpus=2), *3 * [Hold(node="n", gpu_indices=(2,), gpu_memory_mib=1)]], 0, "three thirds"),
        (NODE, [Hold(node="n", gpus=2), *2 * [Hold(node="n", gpu_indices=(2,), gpu_memory_mib=1)]], 1, "two thirds"),
        (NODE, [Hold(node="n", gpus=4)], 0, "more used than there is: nothing is free"),
        (NODE, [Hold(node="n", gpus=3), Hold(node="n", gpu_indices=(0,), gpu_milli=1)], 0, "nor of a GPU used in part"),
        (NODE, [Hold(node="n", gpus=1, gpu_indices=(7,))], 0, "the GPU it holds is gone, three healthy ones are free"),
        (NODE, 3 * [Hold(node="n", gpus=1, gpu_indices=(0,))], 1, "all on one GPU leave two"),
        (NODE.model_copy(update={"schedulable": False}), [Hold(node="n", gpus=1)], 0, "closed nodes do not count"),
        (
            NODE.model_copy(update={"gpu_details": (Gpu(index=1, healthy=False),)}),
            [Hold(node="n", gpus=2)],
            0,
            "both healthy GPUs are used",
        ),
        (
            NODE.model_copy(update={"gpu_details": (Gpu(index=1, healthy=False),)}),
            [Hold(node="n", gpus=2, gpu_indices=(0, 1))],
            1,
            "one is on the ill GPU, so one healthy GPU is free",
        ),
    ],
)
def test_broken_node_by_hand(node: Node, holds: list[Hold], broken: int, why: str) -> None:
    request = Request(
        fabric=FabricSpec(levels=("rack",)), nodes=(node,), allocations=(Allocation(job="x", holds=tuple(holds)),)
    )
    assert measure(request, Placement())["broken_nodes"] == broken, why


def test_nodes_that_are_closed_or_without_gpus_do_not_make_a_leaf_broken() -> None:
    levels, full = FabricSpec(levels=("rack",)), Node(name="full", path=("r",), gpus=1)
    closed = Node(name="closed", path=("r",), gpus=1, schedulable=False)
    cpu_only = Node(name="cpu", path=("r",))
    running = (Allocation(job="x", holds=(Hold(node="full", gpus=1),)),)
    request = Request(fabric=levels, nodes=(full, closed, cpu_only), allocations=running)
    assert measure(request, Placement())["broken_leaves"] == 0
    opened = request.model_copy(update={"nodes": (full, closed.model_copy(update={"schedulable": True}), cpu_only)})
    assert measure(opened, Placement())["broken_leaves"] == 1


@pytest.mark.parametrize(
    ("where", "told"),
    [
        (placement(nobody={"r1n1": 1}), "unknown job 'nobody'"),
        (placement(a={"nowhere": 1}), "unknown node 'nowhere'"),
        (Placement(jobs=(placed("a", tail={"r1n1": 1}),)), "unknown podset of job 'a' 'tail'"),
        (placement(share={"r1n1": 1}), "job 'share': a pod of 'main' on 'r1n1' names 0 GPUs of 1"),
        (placement(a={"r1n1": [(0,)]}), "job 'a': a pod of 'main' on 'r1n1' names 1 GPUs of 2"),
    ],
)
def test_what_cannot_be_measured_is_named(where: Placement, told: str) -> None:
    request = racks("8,8", jobs=[gang("a", 1, 2), gang("share", 1, 0, gpu_milli=500)])
    with pytest.raises(InputError, match=re.escape(told)):
        measure(request, where)


def test_a_fabric_of_other_nodes_is_refused() -> None:
    other = racks("8")
    with pytest.raises(InputError, match="does not know node 'r1n2'"):
        measure(racks("8,8"), Placement(), build_fabric(other.fabric, other.nodes))


# -- naive twins ---------------------------------------------------------------------------------


def naive_traffic(request: Request, where: Placement) -> int:
    """Pods one by one, pairs one by one. Unknown domains are the node's own."""
    nodes, levels, total = {n.name: n for n in request.nodes}, request.fabric.levels, 0
    for job in request.jobs:
        if (new := where.of(job.name)) is None:
            continue
        pods = [p.node for p in new.pods for _ in range(p.count)]
        pods += [h.node for a in request.allocations if a.job == job.name for h in a.holds for _ in range(h.pods)]
        for depth, weight in enumerate(4**i for i in reversed(range(len(levels)))):
            paths = [nodes[p].path[: depth + 1] for p in pods]
            domains = [(*path, pods[i]) if None in path else path for i, path in enumerate(paths)]
            ring = max(0, len(set(domains)) - 1)
            pairs = sum(a != b for a, b in combinations(domains, 2))
            total += weight * {"ring": ring, "all_to_all": pairs, "none": 0}[job.communication]
    return total


def naive_use(request: Request, where: Placement) -> dict[str, list[Fraction]]:
    """Node -> used part of each healthy GPU: named GPUs first, then counted ones on the lowest free index.

    Where these do not suffice, more is used than there is, and nothing is free.
    """
    nodes = {n.name: n for n in request.nodes}
    use = {n.name: {i: Fraction() for i in range(n.gpus)} for n in request.nodes}
    for node in request.nodes:
        for gpu in node.gpu_details:
            if not gpu.healthy:
                del use[node.name][gpu.index]
    counted: Counter[str] = Counter()
    takes = [
        (h.node, h.gpu_milli, h.gpu_memory_mib, h.gpus, h.gpu_indices) for a in request.allocations for h in a.holds
    ]
    podsets = {j.name: j.podsets[0] for j in request.jobs}
    for job in where.jobs:
        podset = podsets[job.job]
        for p in job.pods:
            for named in p.gpus or [()] * p.count:
                takes.append((p.node, podset.gpu_milli, podset.gpu_memory_mib, podset.gpus, named))
    for node_name, milli, mib, gpus, indices in takes:
        part = Fraction(1)
        if milli is not None:
            part = Fraction(milli, 1000)
        elif mib is not None:
            memory = nodes[node_name].gpu_memory_mib
            part = Fraction(mib, memory) if memory else Fraction(1)
        for i in indices:
            if i in use[node_name]:
                use[node_name][i] += part
        counted[node_name] += 0 if indices else gpus
    for node_name, number in counted.items():
        free = [i for i, used in sorted(use[node_name].items()) if not used]
        use[node_name].update(dict.fromkeys(free[:number] if number <= len(free) else use[node_name], Fraction(1)))
    return {name: [min(Fraction(1), u) for u in used.values()] for name, used in use.items()}


def naive_broken(request: Request, where: Placement) -> tuple[int, int]:
    use = naive_use(request, where)
    real = [n for n in request.nodes if n.schedulable and use[n.name]]
    broken = sum(0 < sum(use[n.name]) < len(use[n.name]) for n in real)
    leaves: dict[tuple[str | None, ...], list[bool]] = {}
    for n in real:
        leaf = (*n.path, n.name) if None in n.path else n.path
        leaves.setdefault(leaf, []).append(any(use[n.name]))
    return broken, sum(any(used) and not all(used) for used in leaves.values()) if request.fabric.levels else 0


@st.composite
def measured(draw: st.DrawFn) -> tuple[Request, Placement]:
    """A small cluster with holds of every kind and pods anywhere, also where they do not fit."""
    levels = draw(st.sampled_from([(), ("leaf",), ("spine", "leaf")]))
    part = st.sampled_from(["a", "b", None])
    nodes = tuple(
        Node(
            name=f"n{i}",
            path=tuple(draw(part) for _ in levels),
            gpus=(gpus := draw(st.integers(0, 3))),
            gpu_memory_mib=draw(st.sampled_from([None, 3, 4])),
            gpu_details=(Gpu(index=0, healthy=False),) if gpus and draw(st.integers(0, 3)) == 0 else (),
            schedulable=draw(st.integers(0, 4)) > 0,
        )
        for i in range(draw(st.integers(1, 5)))
    )
    name, index, milli, mib = (
        st.sampled_from([n.name for n in nodes]),
        st.integers(0, 3),
        st.integers(1, 999),
        st.integers(1, 3),
    )
    hold = st.one_of(
        st.builds(Hold, node=name, gpus=st.integers(0, 3), pods=st.integers(0, 2)),
        st.builds(lambda n, i: Hold(node=n, gpus=len(i), gpu_indices=tuple(i)), name, st.sets(index, min_size=1)),
        st.builds(lambda n, i, m: Hold(node=n, gpu_indices=(i,), gpu_milli=m), name, index, milli),
        st.builds(lambda n, i, m: Hold(node=n, gpu_indices=(i,), gpu_memory_mib=m), name, index, mib),
    )
    shape = st.one_of(
        st.builds(PodSet, count=st.just(9), gpus=st.integers(0, 2)),
        st.builds(PodSet, count=st.just(9), gpu_milli=milli),
        st.builds(PodSet, count=st.just(9), gpu_memory_mib=mib),
    )
    talk = st.sampled_from(["ring", "all_to_all", "none"])
    jobs = tuple(
        Job(name=f"j{i}", podsets=(draw(shape),), priority=draw(st.integers(0, 1)), communication=draw(talk))
        for i in range(draw(st.integers(0, 3)))
    )
    holders = draw(st.lists(st.sampled_from(["j0", "j1", "other"]), unique=True))
    allocations = tuple(Allocation(job=h, holds=tuple(draw(st.lists(hold, max_size=4)))) for h in holders)
    request = Request(fabric=FabricSpec(levels=levels), nodes=nodes, allocations=allocations, jobs=jobs)

    def pods(podset: PodSet) -> PlacedPods:
        count = draw(st.integers(1, 2))
        wanted = 1 if podset.has_share else podset.gpus
        named = podset.has_share or draw(st.booleans())
        gpus = tuple(tuple(draw(st.permutations(range(3)))[:wanted]) for _ in range(count)) if named else ()
        return PlacedPods(node=draw(name), count=count, gpus=gpus)

    chosen = [job for job in jobs if draw(st.booleans())]
    return request, Placement(
        jobs=tuple(
            PlacedJob(job=job.name, pods=tuple(pods(job.podsets[0]) for _ in range(draw(st.integers(0, 4)))))
            for job in chosen
        )
    )


small = settings(deadline=None, derandomize=True, max_examples=150)


@small
@given(measured())
def test_twins_agree(case: tuple[Request, Placement]) -> None:
    request, where = case
    values = measure(request, where)
    assert values["traffic"] == naive_traffic(request, where)
    assert (values["broken_nodes"], values["broken_leaves"]) == naive_broken(request, where)
    assert sum(traffic_by_level(Placed(request, where)).values()) == values["traffic"]


@small
@given(measured())
def test_admitted_pod_by_pod(case: tuple[Request, Placement]) -> None:
    request, where = case
    jobs, nodes = {j.name: j for j in request.jobs}, {n.name: n for n in request.nodes}
    total: Counter[int] = Counter()
    for job in where.jobs:
        podset = jobs[job.job].podsets[0]
        for p in job.pods:
            memory = nodes[p.node].gpu_memory_mib
            mib = ceil(Fraction(1000 * (podset.gpu_memory_mib or 0), memory)) if memory else 1000
            total[jobs[job.job].priority] += p.count * (
                mib if podset.gpu_memory_mib else podset.gpu_milli or 1000 * podset.gpus or 1  # none at all counts one
            )
    values = measure(request, where)
    assert {f"admitted[{j.priority}]" for j in request.jobs} == {k for k in values if k.startswith("admitted")}
    assert all(values[f"admitted[{p}]"] == milli for p, milli in total.items())
    assert sum(v for k, v in values.items() if k.startswith("admitted")) == sum(total.values())


# -- what must not matter ------------------------------------------------------------------------


def renamed(case: tuple[Request, Placement]) -> tuple[Request, Placement]:
    """The same with node names that sort the other way round."""
    request, where = case
    name = {n.name: f"z{len(request.nodes) - i:02}" for i, n in enumerate(request.nodes)}
    moved = tuple(
        a.model_copy(update={"holds": tuple(h.model_copy(update={"node": name[h.node]}) for h in a.holds)})
        for a in request.allocations
    )
    nodes = tuple(n.model_copy(update={"name": name[n.name]}) for n in reversed(request.nodes))
    jobs = tuple(
        j.model_copy(update={"pods": tuple(p.model_copy(update={"node": name[p.node]}) for p in j.pods)})
        for j in where.jobs
    )
    return request.model_copy(update={"nodes": nodes, "allocations": moved}), Placement(jobs=jobs)


@small
@given(measured())
def test_names_do_not_matter(case: tuple[Request, Placement]) -> None:
    assert measure(*renamed(case)) == measure(*case)


@small
@given(measured())
def test_an_empty_leaf_more_changes_nothing(case: tuple[Request, Placement]) -> None:
    request, where = case
    levels = request.fabric.levels
    new = tuple(Node(name=f"new{i}", path=tuple(f"new-{level}" for level in levels), gpus=8) for i in range(3))
    assert measure(request.model_copy(update={"nodes": (*request.nodes, *new)}), where) == measure(request, where)


@small
@given(measured(), st.integers(2, 5))
def test_traffic_scales_with_its_weights(case: tuple[Request, Placement], factor: int) -> None:
    request, where = case
    levels = request.fabric.levels
    weights = {level: factor * 4**i for i, level in enumerate(reversed(levels))}
    scaled = request.model_copy(update={"objective": Objective(traffic_weights=weights)})
    assert measure(scaled, where)["traffic"] == factor * measure(request, where)["traffic"]
