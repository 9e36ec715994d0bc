"""A request must speak of levels that its fabric has, also where these are derived from a graph."""

from __future__ import annotations

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric, check_levels, fat_tree, rail_optimised
from kant_opt.schema import Allocation, FabricSpec, Job, Link, Objective, PodSet, Request, Slice, Switch

SPEC, NODES = rail_optimised(units=2, nodes_per_unit=2, spines=1)
FABRIC = build_fabric(SPEC, NODES)


def job(podset: PodSet) -> Job:
    return Job(name="train", podsets=(podset,))


def test_levels_that_the_graph_gives_are_accepted() -> None:
    podset = PodSet(count=4, required_level="spine", preferred_level="leaf", slices=(Slice(level="leaf", size=2),))
    objective = Objective(traffic_weights={"leaf": 1, "spine": 4})
    check_levels(Request(fabric=SPEC, nodes=NODES, jobs=(job(podset),), objective=objective), FABRIC)


@pytest.mark.parametrize(
    ("podset", "place"),
    [
        (PodSet(count=1, required_level="rack"), "jobs.0.podsets.0"),
        (PodSet(count=1, preferred_level="rack"), "jobs.0.podsets.0"),
        (PodSet(count=1, slices=(Slice(level="rack", size=1),)), "jobs.0.podsets.0"),
    ],
)
def test_a_level_the_graph_has_not_is_named(podset: PodSet, place: str) -> None:
    request = Request(fabric=SPEC, nodes=NODES, jobs=(job(podset),))
    with pytest.raises(UnknownName, match=f"{place}: unknown level 'rack': known: leaf, node, spine"):
        check_levels(request, FABRIC)


def test_weights_and_allocations_are_looked_at_too() -> None:
    with pytest.raises(UnknownName, match="objective"):
        check_levels(Request(fabric=SPEC, nodes=NODES, objective=Objective(traffic_weights={"rack": 1})), FABRIC)
    held = Allocation(job="old", holds=(), exclusive_level="rack")
    with pytest.raises(UnknownName, match="allocations"):
        check_levels(Request(fabric=SPEC, nodes=NODES, allocations=(held,)), FABRIC)


@pytest.mark.parametrize(
    ("podset", "words"),
    [
        (PodSet(count=4, slices=(Slice(level="leaf", size=2), Slice(level="spine", size=2))), "outer to inner"),
        (PodSet(count=4, slices=(Slice(level="leaf", size=2), Slice(level="leaf", size=1))), "each level once"),
        (
            PodSet(count=4, required_level="leaf", slices=(Slice(level="spine", size=4),)),
            "lies outside the required level 'leaf'",
        ),
    ],
)
def test_slices_go_inwards(podset: PodSet, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_levels(Request(fabric=SPEC, nodes=NODES, jobs=(job(podset),)), FABRIC)


def test_a_request_with_given_levels_passes_as_it_did_before() -> None:
    spec, nodes = fat_tree(cores=1, spines=1, leaves=1, nodes_per_leaf=1)
    podset = PodSet(count=1, required_level="core")
    check_levels(Request(fabric=spec, nodes=nodes, jobs=(job(podset),)), build_fabric(spec, nodes))


def test_levels_are_those_derived_not_those_of_the_spec() -> None:
    spec = FabricSpec(switches=(Switch(name="s"),), links=tuple(Link(a="s", b=node.name) for node in NODES))
    podset = PodSet(count=1, required_level="tier-1")
    check_levels(Request(fabric=spec, nodes=NODES, jobs=(job(podset),)), build_fabric(spec, NODES))
