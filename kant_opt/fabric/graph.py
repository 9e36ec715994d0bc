"""The fabric as a NetworkX graph: for drawing, checking and questions about cables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import networkx as nx

from kant_opt.fabric.links import bundles
from kant_opt.schema import NODE_LEVEL, Node

if TYPE_CHECKING:
    from kant_opt.fabric.fabric import Fabric, Vertex


def build_graph(fabric: Fabric) -> nx.Graph[Vertex]:
    """Return every domain or switch, node, GPU and NIC as a vertex, every link as an edge.

    Vertices and their `kind`:
    - ("domain", path): the name of its level (fabrics given by paths); where the outermost domains are linked to each
      other, they meet in ("domain", ()), kind fabric
    - ("switch", name): what the switch says it is, e.g. leaf (fabrics given by switches and links)
    - ("node", name): node
    - ("gpu", (node, index)): gpu, hangs on its node and on its nearest NIC where known
    - ("nic", (node, name)): nic, hangs on its node

    Edges: `gbps` of one cable (the slowest where they differ), `links`, the number of cables, and `total_gbps`; all
    None where nothing is known of the cables. Switches that lead to no node are here too. Costs about 8 s for 100,000
    nodes of 8 GPUs.
    """
    graph: nx.Graph[Vertex] = nx.Graph()
    graph.add_nodes_from((("node", name), {"kind": NODE_LEVEL}) for name in fabric.nodes)
    if fabric.spec.is_graph:
        _add_switches(graph, fabric)
    else:
        _add_domains(graph, fabric)
    for node in sorted(fabric.spec_nodes, key=lambda n: n.name):
        for vertex, kind, neighbour in _devices(node):
            graph.add_node(vertex, kind=kind)
            graph.add_edge(vertex, neighbour, **_UNKNOWN)
    return graph


_UNKNOWN: dict[str, int | None] = {"gbps": None, "links": None, "total_gbps": None}


def _add_switches(graph: nx.Graph[Vertex], fabric: Fabric) -> None:
    kinds = {switch.name: switch.kind for switch in fabric.spec.switches}
    graph.add_nodes_from((("switch", name), {"kind": kind}) for name, kind in sorted(kinds.items()))
    for (a, b), bundle in bundles(fabric.spec.links).items():
        ends = [("switch" if name in kinds else NODE_LEVEL, name) for name in (a, b)]
        graph.add_edge(*ends, **vars(bundle))


def _add_domains(graph: nx.Graph[Vertex], fabric: Fabric) -> None:
    cables = bundles(fabric.spec.links)
    roots_meet = not fabric.separate_roots and len(fabric.domains(fabric.levels[0])) > 1
    if roots_meet:
        graph.add_node(("domain", ()), kind="fabric")
    for level in fabric.levels:
        for path in fabric.domains(level):
            vertex = fabric.domain_vertex(path)
            if level != NODE_LEVEL:
                graph.add_node(vertex, kind=level)
            if len(path) > 1 or roots_meet:
                bundle = cables.get(("", "/".join(path)))
                edge = vars(bundle) if bundle else _UNKNOWN
                graph.add_edge(("domain", path[:-1]), vertex, **edge)


def _devices(node: Node) -> Iterator[tuple[Vertex, str, Vertex]]:
    """Yield GPUs and NICs of a node: vertex, kind, what it hangs on; a GPU on a known NIC is told twice."""
    host: Vertex = ("node", node.name)
    nics = {detail.index: ("nic", (node.name, detail.nic)) for detail in node.gpu_details if detail.nic}
    for nic in sorted(set(nics.values())):
        yield nic, "nic", host
    for index in range(node.gpus):
        gpu: Vertex = ("gpu", (node.name, index))
        yield gpu, "gpu", host
        if index in nics:
            yield gpu, "gpu", nics[index]
