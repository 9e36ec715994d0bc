"""What a greedy decides: which domain takes a part, and which nodes inside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from kant_opt.view import Free, Ints, Mask, Part, Tree

Counts = list[tuple[int, int]]
"""(node index, pods), in order of the pods' ranks."""


@dataclass(frozen=True, eq=False)
class Site:
    """One part and where it could go: `room[d]` pods per domain at depth d, see view.capacities.

    `used[d]` marks the domains that the gang uses already, which cost nothing more; empty where it uses none.
    """

    free: Free
    part: Part
    room: list[Ints]
    used: list[Mask]

    @property
    def tree(self) -> Tree:
        return self.free.cluster.tree

    def unit(self, depth: int) -> int:
        """Return of what all pods given to one domain below `depth` must be a multiple: its outermost slice."""
        return next((size for level, size in self.part.slices if level > depth), 1)

    def inside(self, depth: int, domain: int, inner: int) -> slice:
        """Return the run of domains at depth `inner` inside one domain."""
        nodes = self.tree.nodes_of(depth, domain)
        of_node = self.tree.of_node[inner]
        return slice(int(of_node[nodes.start]), int(of_node[nodes.stop - 1]) + 1)


class Strategy(ABC):
    """How parts fill domains. Nothing is taken: it says where the pods would go."""

    name: str
    innermost_first = True
    """Look for the innermost domain that holds a whole gang before going outwards."""

    @abstractmethod
    def fill(self, site: Site, count: int, depth: int, domain: int) -> Counts:
        """Return where `count` pods go inside a domain that has room for them."""

    @abstractmethod
    def choose(self, site: Site, count: int, depth: int, domains: Ints) -> Ints:
        """Return `domains`, each with room for `count`, in the order in which to try them."""
