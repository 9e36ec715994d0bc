"""What the rows of `broken_nodes` say of nodes whose CPU is short: an LP should see it too."""

from __future__ import annotations

from kant_opt.formulation.per_node import PerNode
from kant_opt.schema import Node, Request
from kant_opt.testing.builders import gang

from .test_per_node import program_of


def short_of_cpu(cpu: int) -> PerNode:
    """Return the program of two nodes of 4 GPUs and so much CPU; three pods of a GPU and two CPUs each."""
    nodes = tuple(Node(name=name, gpus=4, cpu_milli=cpu) for name in "ab")
    return program_of(Request(nodes=nodes, jobs=(gang("g", 3, 1, cpu_milli=2000),)))


def test_a_node_whose_cpu_does_not_do_for_all_its_gpus_is_never_full() -> None:
    """Four pods would take 8,000: with less the node cannot be filled, and no variable says that it is."""
    assert not [name for name in short_of_cpu(7999).program.names if name.startswith("full_")]
    assert [name for name in short_of_cpu(8000).program.names if name.startswith("full_")] == ["full_0", "full_1"]


def test_cpu_tells_how_many_nodes_are_used() -> None:
    """A node of 6,000 has CPU for three of the pods: pods <= 3 x used, from which an LP adds up the nodes used."""
    program = short_of_cpu(6000).program
    row = program.row_names.index("used_0_cpu")
    terms = {program.names[i]: c for i, c in program.terms_of(row)}
    assert (terms, program.rhs[row]) == ({"pods_0_0": 1, "used_0": -3}, 0)
