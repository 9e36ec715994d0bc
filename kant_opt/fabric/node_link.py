"""The fabric as node-link data, the JSON that NetworkX and drawing libraries read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import networkx as nx

from kant_opt.fabric.graph import build_graph

if TYPE_CHECKING:
    from kant_opt.fabric.fabric import Fabric, Vertex


def node_link(fabric: Fabric) -> dict[str, Any]:
    """Return the vertices and edges of `build_graph` as plain data; `networkx.node_link_graph(data, edges="links")`
    reads it back.

    The id of a vertex is its kind and name, "node:n1"; a domain goes by its path, a GPU by node and index, with "/"
    between (one inside a name is written %2F).
    """
    graph = build_graph(fabric)
    named = nx.relabel_nodes(graph, {vertex: _id(vertex) for vertex in graph})
    data: dict[str, Any] = nx.node_link_data(named, edges="links")
    return data


def _id(vertex: Vertex) -> str:
    kind, name = vertex
    parts = name if isinstance(name, tuple) else (name,)
    return f"{kind}:{'/'.join(quote(str(part), safe=' :') for part in parts)}"
