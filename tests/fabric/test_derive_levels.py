"""Fabrics given as graphs: the levels that follow from switches and links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path as FilePath
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.fabric import Fabric, build_fabric, rail_optimised
from kant_opt.schema import FabricSpec, Link, Node, Switch


def graph_fabric(
    links: Iterable[tuple[str, str]],
    nodes: Iterable[str],
    *,
    levels: Sequence[str] = (),
    kinds: dict[str, str] | None = None,
    extra: Iterable[str] = (),
) -> Fabric:
    """Return the fabric of links told as pairs; every end that is no node is a switch."""
    pairs, hosts = list(links), list(nodes)
    switches = {end for pair in pairs for end in pair} - set(hosts) | set(extra)
    spec = FabricSpec(
        levels=tuple(levels),
        switches=tuple(Switch(name=s, kind=(kinds or {}).get(s, "switch")) for s in sorted(switches)),
        links=tuple(Link(a=a, b=b) for a, b in pairs),
    )
    return build_fabric(spec, [Node(name=name, gpus=8) for name in hosts])


def grouping(fabric: Fabric, level: str) -> set[frozenset[str]]:
    """The sets of nodes that share a domain of `level`, whatever the domains are called."""
    return {frozenset(fabric.nodes_of(domain)) for domain in fabric.domains(level)}


def leaf_spine_links(leaves: dict[str, list[str]], spines: str) -> list[tuple[str, str]]:
    down = [(leaf, node) for leaf, nodes in leaves.items() for node in nodes]
    return down + [(leaf, spine) for leaf in leaves for spine in spines]


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Paths of nodes, (block, rack, node), of a tree whose switches all have different names."""
    found: list[tuple[str, str, str]] = []
    for b in range(draw(st.integers(2, 3))):
        for r in range(draw(st.integers(1, 3))):
            found += [(f"b{b}", f"b{b}r{r}", f"b{b}r{r}n{n}") for n in range(draw(st.integers(1, 3)))]
    return found


@settings(deadline=None, derandomize=True)
@given(trees(), st.booleans(), st.randoms(use_true_random=False))
def test_a_tree_told_as_a_graph_comes_back(paths: list[tuple[str, str, str]], twice: bool, random: Random) -> None:
    """The oracle is the tree itself: from its edges, in any order and either or both directions, its paths return."""
    edges = sorted({pair for path in paths for pair in [("root", path[0]), *pairwise(path)]})
    told = edges + [(b, a) for a, b in edges] if twice else edges
    told.sort(key=lambda pair: random.random())
    fabric = graph_fabric(told, [path[-1] for path in paths], levels=("top", "block", "rack"))
    assert fabric.paths == {path[-1]: ("root", *path) for path in paths}
    assert not fabric.separate_roots
    assert all(fabric.uplink_gbps(domain) == 400 for domain in fabric.domains("rack") + fabric.domains("node"))


def test_two_spines_over_the_same_leaves_are_one_domain() -> None:
    fabric = graph_fabric(leaf_spine_links({"l1": ["n1", "n2"], "l2": ["n3"]}, "xy"), ["n1", "n2", "n3"])
    assert fabric.levels == ("tier-1", "tier-2", "node")
    assert fabric.paths["n3"] == ("x+1", "l2", "n3")
    assert fabric.switches_of(("x+1",)) == ("x", "y")
    assert fabric.uplink_gbps(("x+1", "l2")) == 800  # one cable of 400 to each spine


def test_nodes_on_different_leaf_sets_are_different_units() -> None:
    links = [("a", "n1"), ("b", "n1"), ("a", "n2"), ("b", "n2"), ("a", "n3"), ("a", "s"), ("b", "s")]
    fabric = graph_fabric(links, ["n1", "n2", "n3"])
    assert grouping(fabric, "tier-2") == {frozenset({"n1", "n2"}), frozenset({"n3"})}
    assert len(fabric.domains("tier-1")) == 1


def test_groups_that_share_their_first_switch_have_different_names() -> None:
    """{a, b} and {a, c} would both be called a+1."""
    links = [("a", "n1"), ("b", "n1"), ("a", "n2"), ("c", "n2"), ("a", "s"), ("b", "s"), ("c", "s")]
    fabric = graph_fabric(links, ["n1", "n2"])
    assert {fabric.paths[n][1] for n in ("n1", "n2")} == {"a+1", "a+c"}


def test_a_made_up_name_is_never_that_of_a_switch() -> None:
    """{a, b} would be a+1, which a leaf is called; the node without a switch would be under ?lone, another leaf."""
    links = [
        ("a", "n1"),
        ("b", "n1"),
        ("a+1", "n2"),
        ("?lone", "n3"),
        ("a", "s"),
        ("b", "s"),
        ("a+1", "s"),
        ("?lone", "s"),
    ]
    fabric = graph_fabric(links, ["n1", "n2", "n3", "lone"])
    assert grouping(fabric, "tier-2") == {frozenset({name}) for name in fabric.nodes}
    assert len({path[1] for path in fabric.paths.values()}) == 4


def test_unlinked_parts_are_separate_roots() -> None:
    links = leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "x") + leaf_spine_links({"l3": ["n3"], "l4": ["n4"]}, "y")
    fabric = graph_fabric(links, ["n1", "n2", "n3", "n4"], levels=("spine", "leaf"))
    assert fabric.separate_roots
    assert fabric.domains("spine") == (("x",), ("y",))


def test_roots_said_to_be_separate_stay_so() -> None:
    """Leaves may be cabled for storage only; the cables do not say so, the fabric can."""
    spec = FabricSpec(
        separate_roots=True,
        switches=(Switch(name="l1"), Switch(name="l2")),
        links=(Link(a="l1", b="n1"), Link(a="l2", b="n2"), Link(a="l1", b="l2")),
    )
    assert build_fabric(spec, [Node(name="n1"), Node(name="n2")]).separate_roots


def test_a_node_without_a_switch_is_a_root_of_its_own() -> None:
    fabric = graph_fabric(leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "x"), ["n1", "n2", "lone", "lone2"])
    assert fabric.separate_roots
    assert grouping(fabric, "tier-1") == {frozenset({"n1", "n2"}), frozenset({"lone"}), frozenset({"lone2"})}
    assert all(len(path) == len(fabric.levels) for path in fabric.paths.values())


def test_a_tree_with_several_roots_stays_one_beside_an_unlinked_one() -> None:
    """Leaves linked to each other without a spine may be spanned, the unlinked leaf may not: a level above says so."""
    links = [("l1", "n1"), ("l2", "n2"), ("l1", "l2"), ("l3", "n3")]
    fabric = graph_fabric(links, ["n1", "n2", "n3"])
    assert fabric.separate_roots
    assert grouping(fabric, fabric.levels[0]) == {frozenset({"n1", "n2"}), frozenset({"n3"})}
    assert len(fabric.domains(fabric.levels[1])) == 3


@pytest.mark.parametrize(
    "extra",
    [
        [("empty", "x"), ("empty", "y")],  # a leaf without nodes
        [("empty", "x"), ("empty", "y"), ("x", "core"), ("y", "core")],  # ... beside a real tier above
        [("u1", "u2")],  # switches linked to nothing of ours
    ],
)
def test_switches_that_lead_to_no_node_change_nothing(extra: list[tuple[str, str]]) -> None:
    leaves = {"l1": ["n1"], "l2": ["n2"]}
    links = leaf_spine_links(leaves, "xy") + extra
    fabric = graph_fabric(links, ["n1", "n2"], levels=("spine", "leaf"))
    assert fabric.paths == {"n1": ("x+1", "l1", "n1"), "n2": ("x+1", "l2", "n2")}
    assert not fabric.separate_roots


def test_an_empty_leaf_in_one_pod_does_not_part_the_pods() -> None:
    """By links alone the empty leaf under x looks like a core; it joins nothing, the core joins both pods."""
    links = leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "x") + leaf_spine_links({"l3": ["n3"], "l4": ["n4"]}, "y")
    fabric = graph_fabric([*links, ("x", "core"), ("y", "core"), ("x", "empty")], ["n1", "n2", "n3", "n4"])
    assert [len(fabric.domains(level)) for level in fabric.levels] == [1, 2, 4, 4]


@pytest.mark.parametrize("cores_meet", [False, True])
def test_what_hangs_on_an_empty_leaf_makes_no_level(cores_meet: bool) -> None:
    """Two cores over two pods each; a chain of empty switches on one pod reaches higher than the cores."""
    pods = [("w", "c1"), ("x", "c1"), ("y", "c2"), ("z", "c2")]
    links = [(f"{spine}{i}", f"n{spine}{i}") for spine, _ in pods for i in (1, 2)]
    links += [(spine, f"{spine}{i}") for spine, _ in pods for i in (1, 2)]
    hosts = [node for _, node in links if node.startswith("n")]
    links += [("c1", "c2")] if cores_meet else []
    fabric = graph_fabric([*links, *pods, ("w", "empty"), ("empty", "beyond")], hosts)
    assert [len(fabric.domains(level)) for level in fabric.levels] == [2, 4, 8, 8]
    assert fabric.separate_roots != cores_meet


def test_a_leaf_that_lost_a_cable_stays_in_its_pod() -> None:
    """l2 has lost its cable to spine z: 2 of 3 are left, more than half."""
    pods = {"l1": ["n1"], "l2": ["n2"], "l3": ["n3"]}
    links = [pair for pair in leaf_spine_links(pods, "xyz") if pair != ("l2", "z")]
    fabric = graph_fabric(links, ["n1", "n2", "n3"], levels=("spine", "leaf"))
    assert len(fabric.domains("spine")) == 1
    assert [fabric.uplink_gbps(domain) for domain in fabric.domains("leaf")] == [1200, 800, 1200]


def test_a_leaf_that_could_belong_to_two_groups_belongs_to_none() -> None:
    """l5 has x and y; so have both {x, y, z} and {w, x, y}, and nothing tells which lost a cable."""
    above = {"l1": "xyz", "l2": "xyz", "l3": "wxy", "l4": "wxy", "l5": "xy"}
    links = [(leaf, f"n{leaf}") for leaf in above] + [(leaf, s) for leaf, spines in above.items() for s in spines]
    fabric = graph_fabric(links, [f"n{leaf}" for leaf in above])
    expected = {frozenset({"nl1", "nl2"}), frozenset({"nl3", "nl4"}), frozenset({"nl5"})}
    assert grouping(fabric, "tier-1") == expected


def test_leaves_that_share_no_spine_are_never_one_domain() -> None:
    """l1 on {x}, l2 on {x, y}, l3 on {y}: half is not more than half, so l1 and l3 do not meet through l2."""
    links = [("l1", "n1"), ("l2", "n2"), ("l3", "n3"), ("l1", "x"), ("l2", "x"), ("l2", "y"), ("l3", "y")]
    fabric = graph_fabric(links, ["n1", "n2", "n3"])
    assert len(fabric.domains("tier-1")) == 3
    assert not fabric.separate_roots


def test_a_node_on_a_spine_is_placed_somewhere() -> None:
    links = leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "xy")
    fabric = graph_fabric([*links, ("x", "login")], ["n1", "n2", "login"])
    assert not fabric.separate_roots
    assert frozenset({"login"}) in grouping(fabric, fabric.levels[-2])


@pytest.mark.parametrize(
    ("kinds", "levels", "expected"),
    [
        ({"l1": "tor", "l2": "tor", "x": "agg"}, (), ("agg", "tor", "node")),
        ({"l1": "tor", "l2": "tor", "x": "tor"}, (), ("tier-1", "tier-2", "node")),  # one name for two tiers
        ({"l1": "tor", "l2": "leaf", "x": "agg"}, (), ("tier-1", "tier-2", "node")),  # two names for one tier
        ({"l1": "tor", "l2": "tor", "x": "node"}, (), ("tier-1", "tier-2", "node")),  # `node` means nodes
        ({"l1": "tor", "l2": "tor", "x": "agg"}, ("a", "b"), ("a", "b", "node")),
    ],
)
def test_levels_are_named_by_the_fabric_else_by_kinds(
    kinds: dict[str, str], levels: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    links = leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "x")
    assert graph_fabric(links, ["n1", "n2"], kinds=kinds, levels=levels).levels == expected


def test_a_core_over_one_pod_is_a_level_where_it_has_a_name() -> None:
    links = [*leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "x"), ("x", "c")]
    hosts = ["n1", "n2"]
    kinds = {"l1": "leaf", "l2": "leaf", "x": "spine", "c": "core"}
    assert graph_fabric(links, hosts, kinds=kinds).levels == ("core", "spine", "leaf", "node")
    assert graph_fabric(links, hosts, levels=("c", "s", "l")).paths["n1"] == ("c", "x", "l1", "n1")
    assert graph_fabric(links, hosts).levels == ("tier-1", "tier-2", "node")
    with pytest.raises(InputError, match=r"1 level names .only. for a graph of 2 to 3 tiers"):
        graph_fabric(links, hosts, levels=("only",))


def test_a_leaf_given_as_graph_has_a_vertex_and_a_unit_of_rails_has_not() -> None:
    fabric = graph_fabric(leaf_spine_links({"l1": ["n1"], "l2": ["n2"]}, "xy"), ["n1", "n2"])
    assert fabric.domain_vertex(("x+1", "l1")) in fabric.graph
    with pytest.raises(InputError, match="consists of 2 switches"):
        fabric.domain_vertex(("x+1",))


@pytest.mark.parametrize(
    ("spec", "nodes", "words"),
    [
        (FabricSpec(switches=(Switch(name="n"),)), [Node(name="n")], "'n' is a switch and a node"),
        (FabricSpec(switches=(Switch(name="s"),)), [Node(name="n", path=("s",))], "has a path though"),
        (
            FabricSpec(switches=(Switch(name="s"),), links=(Link(a="s", b="n2"),)),
            [Node(name="n")],
            "fabric.links.0: link end 'n2' is neither",
        ),
    ],
)
def test_graphs_that_cannot_be_meant_are_refused(spec: FabricSpec, nodes: list[Node], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_fabric(spec, nodes)


def test_a_graph_without_nodes_is_an_empty_fabric() -> None:
    assert graph_fabric([("a", "b")], [], levels=("spine",)).nodes == ()


@pytest.mark.parametrize("rails", [1, 4, 8])
def test_rails_do_not_change_the_units(rails: int) -> None:
    fabric = build_fabric(*rail_optimised(units=3, nodes_per_unit=5, spines=4, rails=rails))
    assert [len(fabric.domains(level)) for level in fabric.levels] == [1, 3, 15]
    assert fabric.uplink_gbps(fabric.domains("leaf")[0]) == rails * 4 * 400
    assert fabric.uplink_gbps(fabric.domains("node")[0]) == rails * 400


def test_the_azure_fabric_gives_the_groups_its_own_tool_found(shared: FilePath) -> None:
    """40 leaves, 8 middle switches, a core, links told from both sides; slurm_topology.txt is the tool's answer."""
    folder = shared / "formats" / "slurm-topology-azure"
    host_of_port = {
        port: host for host, port in re.findall(r"^(\S+): (\S+)$", (folder / "nodes_guids.txt").read_text(), re.M)
    }
    lines = re.findall(r"^SwitchName=(\S+) (?:Nodes|Switches)=(\S+)$", (folder / "topology.txt").read_text(), re.M)
    links = [(switch, host_of_port.get(end, end)) for switch, ends in lines for end in ends.split(",")]
    answer = re.findall(r"^SwitchName=\S+ Nodes=(\S+)$", (folder / "slurm_topology.txt").read_text(), re.M)
    expected = {frozenset(hosts.split(",")) for hosts in answer}
    assert sorted(map(len, expected)) == [2, 2, 3, 3, 6]

    for levels in ((), ("core", "middle", "unit")):
        fabric = graph_fabric(links, set(host_of_port.values()), levels=levels)
        assert grouping(fabric, fabric.levels[-2]) == expected
        assert len(fabric.domains(fabric.levels[0])) == 1
        assert not fabric.separate_roots


def test_a_real_infiniband_fabric_gives_its_units(shared: FilePath) -> None:
    """Hosts are named by rack, so the units are known by other means: 18, 18, 17, 16, 15, 14, 11 and 10 hosts.

    One leaf of the unit of 10 is missing in the recording, and twelve leaves have lost uplinks.
    """
    text = (shared / "formats" / "ibnetdiscover" / "example.switches-only.out").read_text()
    links: list[tuple[str, str]] = []
    hosts: set[str] = set()
    switch = ""
    for line in text.splitlines():
        if found := re.match(r'Switch\s+\d+ "(S-\w+)"', line):
            switch = found[1]
        elif found := re.match(r'\[\d+\]\s+"(S-\w+)"', line):
            links.append((switch, found[1]))
        elif found := re.search(r'# "(\w+-p1-dgx-\S+) ', line):
            links.append((switch, found[1]))
            hosts.add(found[1])
    fabric = graph_fabric(links, hosts)
    by_rack = Counter(host.rsplit("-", 1)[0] for host in hosts)
    units = [{host.rsplit("-", 1)[0] for host in unit} for unit in grouping(fabric, "tier-2")]
    assert sorted(by_rack.values()) == [10, 11, 14, 15, 16, 17, 18, 18]
    assert sorted(map(sorted, units)) == sorted([rack] for rack in by_rack)
    assert len(fabric.domains("tier-1")) == 1
