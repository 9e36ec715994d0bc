"""The tree of domains as arrays: every domain is a run of neighbouring nodes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kant_opt.fabric import Fabric, Path

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Tree:
    """Arrays of a fabric, built once, read-only.

    Depth 0 is the whole fabric (one domain), depth 1 the outermost level, the last depth the nodes. With N nodes and
    D[d] domains at depth d:

    - `start[d]` (D[d],): first node of each domain; its nodes run up to the next start.
    - `of_node[d]` (N,): the domain of each node.
    - `parent[d]` (D[d],): domain at depth d - 1; all zero at depth 1, empty at depth 0.
    - `first_child[d]` (D[d] + 1,): its children at depth d + 1 are first_child[i] .. first_child[i + 1] - 1.

    Costs O(levels x nodes).
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.names = fabric.nodes
        self.index = {name: i for i, name in enumerate(self.names)}
        self.levels = fabric.levels
        self.depths = len(self.levels) + 1
        self.leaf_depth = self.depths - 2
        """Depth of the innermost level above the node (0 in a flat fabric)."""
        self.node_depth = self.depths - 1
        n = len(self.names)
        paths = list(fabric.paths.values())
        self.start: list[Ints] = [np.zeros(min(n, 1), dtype=np.int64)]
        self.of_node: list[Ints] = [np.zeros(n, dtype=np.int64)]
        self.paths: list[tuple[Path, ...]] = [((),)]
        for depth in range(1, self.depths):
            new = np.ones(n, dtype=bool)
            if n and depth < self.node_depth:
                new[1:] = [a[:depth] != b[:depth] for a, b in pairwise(paths)]
            start = np.flatnonzero(new).astype(np.int64)
            self.start.append(start)
            self.of_node.append(np.cumsum(new, dtype=np.int64) - 1)
            self.paths.append(tuple(paths[i][:depth] for i in start))
        self.parent: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self.first_child: list[Ints] = []
        for depth in range(1, self.depths):
            parent = self.of_node[depth - 1][self.start[depth]]
            self.parent.append(parent)
            self.first_child.append(np.searchsorted(parent, np.arange(len(self.start[depth - 1]) + 1)))
        for arrays in (self.start, self.of_node, self.parent, self.first_child):
            for array in arrays:
                array.setflags(write=False)

    def depth(self, level: str) -> int:
        """Return the depth of a level by name; raises ValueError where unknown."""
        return self.levels.index(level) + 1

    def level(self, depth: int) -> str:
        """Return the level's name at a depth of 1 or more."""
        return self.levels[depth - 1]

    def num_domains(self, depth: int) -> int:
        """Return the number of domains at `depth`."""
        return len(self.start[depth])

    def nodes_of(self, depth: int, domain: int) -> slice:
        """Return the run of node indices inside one domain."""
        start = self.start[depth]
        end = int(start[domain + 1]) if domain + 1 < len(start) else len(self.names)
        return slice(int(start[domain]), end)

    def children(self, depth: int, domain: int) -> slice:
        """Return the run of domain indices at depth + 1 inside one domain."""
        first = self.first_child[depth]
        return slice(int(first[domain]), int(first[domain + 1]))

    def sums(self, values: NDArray[Any], depth: int) -> Ints:
        """Return per-domain sums at `depth` of one value per node."""
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(values, self.start[depth], dtype=np.int64)

    def fold(self, values: Ints, depth: int) -> Ints:
        """Return sums at depth - 1 of one value per domain at `depth`."""
        if not len(values):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(values, self.first_child[depth - 1][:-1], dtype=np.int64)
