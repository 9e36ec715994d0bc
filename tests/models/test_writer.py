"""What the writer for the twins refuses, folds and keeps in its place."""

from __future__ import annotations

import pytest

from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.formulation.minizinc import Form, goals, to_dzn
from kant_opt.schema import Apart, FabricSpec, JobGroup, Node, Objective, Request, Slice, Spread, Together
from kant_opt.testing.builders import gang, racks, running


def data(request: Request, form: Form = "per_node") -> dict[str, str]:
    """Return the assignments by name; comments are left out."""
    lines = to_dzn(request, build_fabric(request.fabric, request.nodes), form=form).splitlines()
    return dict(line.removesuffix(";").split(" = ", 1) for line in lines if not line.startswith("%"))


ONE = racks("4,4", jobs=[gang("a", 2)])
NEEDS_NODES = {
    "sizes 2 and 3": (racks("6", jobs=[gang("a", 1, 2), gang("b", 1, 3)]), "2 does not divide 3"),
    "shares": (racks("1", jobs=[gang("a", 1, 0, gpu_milli=500)]), "take shares of a GPU"),
    "CPU": (Request(nodes=(Node(name="n", cpu_milli=1),), jobs=(gang("a", 1, 0, cpu_milli=1),)), "ask for CPU"),
    "memory": (Request(nodes=(Node(name="n", memory_bytes=1),), jobs=(gang("a", 1, 0, memory_bytes=1),)), "memory"),
    "number of pods": (Request(nodes=(Node(name="n", max_pods=1),), jobs=(gang("a", 1, 0),)), "limit the number of"),
    "required": (racks("4", jobs=[gang("a", 2, required_level="node")]), "level 'node' (jobs.0.podsets.0)"),
    "slice": (racks("4", jobs=[gang("a", 2, slices=(Slice(level="node", size=2),))]), "level 'node'"),
    "spread": (racks("4", jobs=[gang("a", 2, spread=(Spread(level="node", max_per_domain=1),))]), "level 'node'"),
    "together": (racks("4", jobs=[gang("a", 2, together=(Together(level="node"),))]), "level 'node' (jobs.0)"),
    "group": (
        racks("4", jobs=[gang("a", 2)], groups=(JobGroup(name="g", jobs=("a",), together_level="node"),)),
        "node",
    ),
    "apart": (racks("4", jobs=[gang("a", 1), gang("b", 1, apart=(Apart(level="node", jobs=("a",)),))]), "level 'node'"),
    "exclusive": (racks("4", jobs=[gang("a", 2, exclusive_level="node")]), "level 'node' (jobs.0)"),
    "running": (racks("4", allocations=(running("o", {"r1n1": 1}, exclusive_level="node"),)), "(allocations.0)"),
    "roots": (Request(fabric=FabricSpec(separate_roots=True), nodes=(Node(name="n"),), jobs=(gang("a", 1),)), "root"),
}


@pytest.mark.parametrize("name", NEEDS_NODES)
def test_classes_refuse_what_needs_single_nodes(name: str) -> None:
    request, told = NEEDS_NODES[name]
    with pytest.raises(InputError, match="per-node form") as error:
        to_dzn(request, build_fabric(request.fabric, request.nodes), form="classes")
    assert told in str(error.value)
    assert data(request)["num_cells"] == str(len(request.nodes))


def test_classes_keep_apart_what_rules_tell_apart() -> None:
    """Of six nodes two are alike: the others differ in rack, free GPUs, being open, and in who may come."""
    request = racks("4,4,4,4,4|4", jobs=[gang("a", 2, not_nodes=("r1n5",))], allocations=(running("o", {"r1n3": 1}),))
    closed = request.nodes[3].model_copy(update={"schedulable": False})
    request = request.model_copy(update={"nodes": (*request.nodes[:3], closed, *request.nodes[4:])})
    assert data(request, "classes")["num_nodes"] == "[2, 1, 1, 1, 1]"


def test_moves_and_nothing_are_refused() -> None:
    moves = ONE.model_copy(update={"objective": Objective(order=("admitted", "moves"))})
    with pytest.raises(InputError, match="know no moves"):
        goals(moves)
    with pytest.raises(InputError, match="nothing to optimise"):
        data(Request(nodes=(Node(name="n"),), objective=Objective(order=("admitted",))))


def test_large_numbers_are_divided_or_refused() -> None:
    """Pods of 64 GiB on a node of 512 are pods of 1 on a node of 2, all they ask; a byte more and nothing divides."""
    gib = 1 << 30
    nodes = (Node(name="n", gpus=8, memory_bytes=512 * gib),)
    even = Request(nodes=nodes, jobs=(gang("a", 2, memory_bytes=64 * gib),))
    assert data(even)["need"] == "array2d(1..3, 1..1, [0, 1, 1])"
    assert data(even)["free"] == "array2d(1..3, 1..1, [0, 2, 2])"
    odd = even.model_copy(update={"jobs": (*even.jobs, gang("b", 1, memory_bytes=64 * gib + 1))})
    with pytest.raises(InputError, match="more than MiniZinc's engines can"):
        data(odd)


def test_odd_names_stay_in_their_comment() -> None:
    request = Request(nodes=(Node(name="n\nconstraint false;"),), jobs=(gang('"\r', 1, 0),))
    lines = to_dzn(request, build_fabric(request.fabric, request.nodes)).splitlines()
    assert all(line.startswith("%") or " = " in line for line in lines)
    assert not any(line.startswith("constraint") for line in lines)
