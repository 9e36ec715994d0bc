"""The tree of domains that nodes hang in, and the NetworkX graph it came from.

The graph is how a fabric is described, drawn and asked once; placement works on the tree and on arrays made from it
(see `view`), never on the graph, so the graph is made when first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from kant_opt.errors import InputError
from kant_opt.schema import NODE_LEVEL, FabricSpec, Node

if TYPE_CHECKING:
    import networkx as nx

Path = tuple[str, ...]
"""A domain's identity: its name on every level from the outermost down to its own."""

Vertex = tuple[str, object]
"""A vertex of the graph: its sort and what tells it apart, see `build_graph`."""


class Fabric:
    """Nodes, domains and links. Made by `build_fabric`; not changed afterwards.

    `levels` runs from outermost to "node". Every node has a full path, `paths[node]`: one name per level, the last
    being its own. The domain of a node on a level is the prefix of that path, so two racks called r1 under different
    blocks differ, and a host may be called like a rack.

    `spec` and `spec_nodes` are what the fabric was built from. `switches` maps each domain of a graph fabric to the
    switches that form it (several where rails or planes run in parallel); it is empty in a fabric given by paths.
    `uplinks` maps a domain to its total bandwidth upwards, Gbit/s, where known.
    """

    def __init__(
        self,
        *,
        levels: tuple[str, ...],
        paths: Mapping[str, Path],
        separate_roots: bool = False,
        spec: FabricSpec | None = None,
        spec_nodes: Sequence[Node] = (),
        switches: Mapping[Path, tuple[str, ...]] | None = None,
        uplinks: Mapping[Path, int] | None = None,
    ) -> None:
        if not levels or levels[-1] != NODE_LEVEL:
            raise ValueError("levels end with 'node'")
        self.levels = levels
        self.paths = dict(sorted(paths.items(), key=lambda item: item[1]))
        self.separate_roots = separate_roots
        self.spec = spec or FabricSpec()
        self.spec_nodes = tuple(spec_nodes)
        self._switches = dict(switches or {})
        self._uplinks = dict(uplinks or {})

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

    def nodes_of(self, domain: Path) -> tuple[str, ...]:
        """Return the names of the nodes inside `domain`, in path order; the empty path is the whole fabric.

        Raises KeyError for a domain that is not there.
        """
        start, stop = self._runs[domain]
        return self.nodes[start:stop]

    def domains(self, level: str) -> tuple[Path, ...]:
        """Return the paths of all domains of `level`, sorted."""
        return self._domains[self.depth(level)]

    def uplink_gbps(self, domain: Path) -> int | None:
        """Return the total bandwidth from `domain` to what lies above it, Gbit/s; None where it is not known.

        Raises KeyError for a domain that is not there.
        """
        self._runs[domain]
        return self._uplinks.get(domain)

    def switches_of(self, domain: Path) -> tuple[str, ...]:
        """Return the names of the switches that form `domain`, sorted; empty in a fabric given by paths."""
        return self._switches.get(domain, ())

    @cached_property
    def graph(self) -> nx.Graph[Vertex]:
        """The fabric as a graph, see `build_graph`. Costs seconds for 100,000 nodes with GPUs; made once."""
        from kant_opt.fabric.graph import build_graph

        return build_graph(self)

    def domain_vertex(self, domain: Path) -> Vertex:
        """Return the vertex of `domain` in `graph`.

        Raises InputError where the domain of a graph fabric is not exactly one switch: see `switches_of`.
        """
        if len(domain) == len(self.levels):
            return ("node", domain[-1])
        if not self.spec.is_graph:
            return ("domain", domain)
        switches = self.switches_of(domain)
        if len(switches) != 1:
            raise InputError(
                f"domain {'/'.join(domain)!r} consists of {len(switches)} switches and has no vertex of its own",
                way_out="ask `switches_of` for them",
            )
        return ("switch", switches[0])

    @cached_property
    def _runs(self) -> dict[Path, tuple[int, int]]:
        """Where each domain's run of nodes starts and stops in `nodes`."""
        runs: dict[Path, tuple[int, int]] = {(): (0, len(self.nodes))}
        open_at = [0] * len(self.levels)
        # An end mark that shares nothing with any path closes the last runs.
        for i, (path, following) in enumerate(pairwise([*self.paths.values(), ()]), start=1):
            shared = _shared_length(path, following)
            for depth in range(shared, len(path)):
                runs[path[: depth + 1]] = (open_at[depth], i)
                open_at[depth] = i
        return runs

    @cached_property
    def _domains(self) -> tuple[tuple[Path, ...], ...]:
        """Per depth the domains, sorted: runs close in path order, so each list is sorted already."""
        found: list[list[Path]] = [[] for _ in range(len(self.levels) + 1)]
        for path in self._runs:
            found[len(path)].append(path)
        return tuple(tuple(paths) for paths in found[1:])


def _shared_length(one: Path, other: Path) -> int:
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))
