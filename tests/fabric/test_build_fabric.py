"""Fabrics given by paths: domains, unknown entries, uplinks, what is refused."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric
from kant_opt.schema import FabricSpec, Link, Node

TWO = FabricSpec(levels=("block", "rack"))

names = st.text(alphabet="ab?/", min_size=1, max_size=3)


@st.composite
def path_nodes(draw: st.DrawFn) -> list[Node]:
    """Nodes of two levels whose domains may share names with each other, with nodes, and may be unknown."""
    found = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    entry = st.none() | names
    return [Node(name=name, path=(draw(entry), draw(entry))) for name in found]


@settings(deadline=None, derandomize=True)
@given(path_nodes())
def test_domains_hold_exactly_the_nodes_with_their_prefix(nodes: list[Node]) -> None:
    """Each question of the class is answered again from `paths` alone."""
    fabric = build_fabric(TWO, nodes)
    assert sorted(fabric.nodes) == sorted(node.name for node in nodes)
    for depth, level in enumerate(fabric.levels, start=1):
        prefixes = {path[:depth] for path in fabric.paths.values()}
        assert list(fabric.domains(level)) == sorted(prefixes)
        for prefix in prefixes:
            inside = [name for name in fabric.nodes if fabric.paths[name][:depth] == prefix]
            assert list(fabric.nodes_of(prefix)) == inside
            assert all(fabric.domain_of(name, level) == prefix for name in inside)
    assert fabric.nodes_of(()) == fabric.nodes


@settings(deadline=None, derandomize=True)
@given(path_nodes())
def test_an_unknown_entry_is_shared_with_nobody(nodes: list[Node]) -> None:
    fabric = build_fabric(TWO, nodes)
    for node in nodes:
        for depth, level in enumerate(TWO.levels):
            beside = [
                other.name
                for other in nodes
                if fabric.domain_of(other.name, level) == fabric.domain_of(node.name, level)
            ]
            if None in node.path[: depth + 1]:
                assert beside == [node.name]
            else:
                assert set(beside) == {n.name for n in nodes if n.path[: depth + 1] == node.path[: depth + 1]}


@settings(deadline=None, derandomize=True)
@given(path_nodes(), st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(nodes: list[Node], random: Random) -> None:
    shuffled = sorted(nodes, key=lambda node: random.random())
    assert list(build_fabric(TWO, shuffled).paths.items()) == list(build_fabric(TWO, nodes).paths.items())


def test_racks_of_one_name_in_two_blocks_are_two_domains() -> None:
    nodes = [Node(name="r1", path=("x", "r1")), Node(name="n2", path=("y", "r1"))]
    assert build_fabric(TWO, nodes).domains("rack") == (("x", "r1"), ("y", "r1"))


def test_a_fabric_without_levels_or_nodes_is_a_fabric() -> None:
    assert build_fabric(FabricSpec(), [Node(name="n")]).paths == {"n": ("n",)}
    empty = build_fabric(TWO, [])
    assert (empty.nodes, empty.domains("rack"), empty.nodes_of(())) == ((), (), ())


def test_uplinks_of_one_domain_add_up_and_the_others_are_unknown() -> None:
    nodes = [Node(name="n1", path=("x", "r1")), Node(name="n2", path=("x", "r2"))]
    links = (Link(a="x/r1", gbps=400, links=3), Link(a="x/r1", gbps=100), Link(a="x/r2/n2", gbps=200, links=2))
    fabric = build_fabric(FabricSpec(levels=TWO.levels, links=links), nodes)
    assert fabric.uplink_gbps(("x", "r1")) == 3 * 400 + 100
    assert fabric.uplink_gbps(("x", "r2", "n2")) == 400
    assert fabric.uplink_gbps(("x", "r2")) is None
    with pytest.raises(KeyError):
        fabric.uplink_gbps(("x", "r3"))


def test_uplinks_of_an_unknown_domain_name_the_near_one() -> None:
    spec = FabricSpec(levels=("rack",), links=(Link(a="rack-1"), Link(a="rack-l")))
    with pytest.raises(UnknownName, match=r"fabric\.links\.1\.a.*'rack-l'.*did you mean 'rack-1'"):
        build_fabric(spec, [Node(name="n", path=("rack-1",))])


def test_uplinks_whose_path_reads_two_ways_are_refused() -> None:
    spec = FabricSpec(levels=TWO.levels, links=(Link(a="a/b/c"),))
    nodes = [Node(name="n1", path=("a/b", "c")), Node(name="n2", path=("a", "b/c"))]
    with pytest.raises(InputError, match="may mean 2 domains"):
        build_fabric(spec, nodes)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([Node(name="n", path=("x", "r")), Node(name="n", path=("x", "r"))], "two nodes are called 'n'"),
        ([Node(name="n", path=("x",))], "'n' has 1 path entries for 2 levels"),
    ],
)
def test_nodes_that_cannot_be_meant_are_refused(nodes: list[Node], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_fabric(TWO, nodes)
