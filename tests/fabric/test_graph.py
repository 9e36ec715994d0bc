"""The NetworkX graph: what is a vertex, what is an edge, and that it agrees with the tree of domains."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest

from kant_opt.fabric import Fabric, build_fabric, list_topologies, load_topology
from kant_opt.fabric.links import bundles
from kant_opt.schema import FabricSpec, Gpu, Link, Node, Switch


def kinds(fabric: Fabric) -> Counter[str]:
    return Counter(str(data["kind"]) for _, data in fabric.graph.nodes(data=True))


@pytest.mark.parametrize("name", list_topologies())
def test_every_topology_is_a_graph_of_its_parts(name: str) -> None:
    spec, nodes = load_topology(name)
    fabric = build_fabric(spec, nodes)
    expected = Counter({"node": len(nodes), "gpu": sum(node.gpus for node in nodes)})
    if spec.is_graph:
        expected += Counter(switch.kind for switch in spec.switches)
    else:
        expected += Counter({level: len(fabric.domains(level)) for level in spec.levels})
        meets = len(fabric.domains(fabric.levels[0])) > 1 and not fabric.separate_roots
        found = kinds(fabric)
        assert found["fabric"] - expected["fabric"] == meets  # where outermost domains meet
        expected["fabric"] += meets
    assert kinds(fabric) == expected
    assert all({"gbps", "links"} <= set(data) for _, _, data in fabric.graph.edges(data=True))
    trees = nx.number_connected_components(fabric.graph)
    assert trees == (len(fabric.domains(fabric.levels[0])) if fabric.separate_roots else 1)


@pytest.mark.parametrize("name", list_topologies())
def test_uplinks_are_the_edges_out_of_a_domain(name: str) -> None:
    """In the graph: what leaves a domain's vertices towards those of the domain around it."""
    fabric = build_fabric(*load_topology(name))
    for level in fabric.levels[1:]:
        for domain in fabric.domains(level)[:40]:
            inner, outer = vertices(fabric, domain), vertices(fabric, domain[:-1])
            cables = [fabric.graph.edges[a, b]["total_gbps"] for a in inner for b in fabric.graph[a] if b in outer]
            assert cables
            assert fabric.uplink_gbps(domain) == (None if None in cables else sum(cables))


def vertices(fabric: Fabric, domain: tuple[str, ...]) -> set[tuple[str, object]]:
    if len(domain) == len(fabric.levels) or not fabric.spec.is_graph:
        return {fabric.domain_vertex(domain)}
    return {("switch", name) for name in fabric.switches_of(domain)}


def test_gpus_hang_on_their_node_and_on_the_nic_that_is_named() -> None:
    details = (Gpu(index=0, nic="mlx5_0"), Gpu(index=1, nic="mlx5_0"), Gpu(index=2))
    node = Node(name="n", gpus=4, gpu_details=details)
    graph = build_fabric(FabricSpec(), [node]).graph
    assert set(graph["node", "n"]) == {("gpu", ("n", i)) for i in range(4)} | {("nic", ("n", "mlx5_0"))}
    assert set(graph["nic", ("n", "mlx5_0")]) == {("node", "n"), ("gpu", ("n", 0)), ("gpu", ("n", 1))}
    assert graph.nodes["nic", ("n", "mlx5_0")]["kind"] == "nic"


def test_switches_without_nodes_are_drawn_too() -> None:
    spec = FabricSpec(switches=(Switch(name="leaf", kind="leaf"), Switch(name="spare", kind="leaf")))
    graph = build_fabric(spec, [Node(name="n")]).graph
    assert ("switch", "spare") in graph


@pytest.mark.parametrize(
    ("told", "links", "total"),
    [
        ([("a", "b", 400, 2)], 2, 800),
        ([("a", "b", 400, 2), ("b", "a", 400, 2)], 2, 800),  # from both sides: once is meant
        ([("a", "b", 400, 1), ("a", "b", 400, 1)], 2, 800),  # port by port
        ([("a", "b", 400, 1), ("a", "b", 200, 1), ("b", "a", 400, 1)], 2, 600),  # one side tells more
        ([("a", "b", 400, 1), ("a", "a", 400, 9)], 1, 400),  # a loop joins nothing
    ],
)
def test_cables_between_two_ends_are_counted_once(
    told: list[tuple[str, str, int, int]], links: int, total: int
) -> None:
    for order in (told, told[::-1]):
        found = bundles(Link(a=a, b=b, gbps=gbps, links=count) for a, b, gbps, count in order)
        assert list(found) == [("a", "b")]
        assert (found["a", "b"].links, found["a", "b"].total_gbps) == (links, total)
