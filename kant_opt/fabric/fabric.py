"""The fabric as a NetworkX graph and the tree of domains that follows from it.

The graph is how a fabric is described, checked and asked once; arrays for placement are made from the tree (see
`view`), never by walking the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import networkx as nx

from kant_opt.schema import NODE_LEVEL

Path = tuple[str, ...]
"""A domain's identity: its name on every level from the outermost down to its own."""


class Fabric:
    """Nodes, domains and links. Made by `build_fabric`; not changed afterwards.

    `levels` runs from outermost to "node". Every node has a full path, `paths[node]`: one name per level, the last
    being its own. The domain of a node on a level is the prefix of that path, so two racks called r1 under different
    blocks differ, and a host may be called like a rack.
    """

    def __init__(
        self,
        *,
        levels: tuple[str, ...],
        paths: Mapping[str, Path],
        separate_roots: bool,
        graph: nx.Graph[object],
    ) -> None:
        if not levels or levels[-1] != NODE_LEVEL:
            raise ValueError("levels end with 'node'")
        self.levels = levels
        self.paths = dict(sorted(paths.items(), key=lambda item: item[1]))
        self.separate_roots = separate_roots
        self.graph = graph

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Node names in order of their paths, so that every domain is a run of neighbours."""
        return tuple(self.paths)

    def depth(self, level: str) -> int:
        """Return the position of `level` in `levels`, 0 = outermost. Raises ValueError for an unknown level."""
        return self.levels.index(level)

    def domain_of(self, node: str, level: str) -> Path:
        """Return the path of the domain of `level` that holds `node`."""
        return self.paths[node][: self.depth(level) + 1]

    @cached_property
    def _nodes_of(self) -> dict[Path, tuple[str, ...]]:
        found: dict[Path, list[str]] = {}
        for node, path in self.paths.items():
            for depth in range(1, len(path) + 1):
                found.setdefault(path[:depth], []).append(node)
        return {path: tuple(nodes) for path, nodes in found.items()}

    def nodes_of(self, domain: Path) -> tuple[str, ...]:
        """Return the names of the nodes inside `domain`, in path order; the empty path is the whole fabric."""
        return self._nodes_of[domain] if domain else self.nodes

    def domains(self, level: str) -> tuple[Path, ...]:
        """Return the paths of all domains of `level`, sorted."""
        depth = self.depth(level) + 1
        return tuple(path for path in self._sorted_domains if len(path) == depth)

    @cached_property
    def _sorted_domains(self) -> tuple[Path, ...]:
        return tuple(sorted(self._nodes_of))

    def domain_vertex(self, domain: Path) -> tuple[str, Path]:
        """Return the vertex of `domain` in `graph`."""
        return ("domain", domain)
