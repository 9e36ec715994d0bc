"""Gangs of whole nodes on leaves, as numbers: which leaf gives how many nodes to whom, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from kant_opt.backends.subsets import tightest_subset

Shares = dict[int, int]
"""Leaf -> nodes taken there."""


@dataclass(frozen=True)
class Item:
    """One gang: its nodes, the depth of the domain that has to hold it (0 = none), and what its traffic counts."""

    size: int
    scope: int = 0
    pods: int = 0
    """Pods on each node whose pairs are counted where they are in different domains; 0: domains are counted."""


class Leaves:
    """Free nodes per leaf, shares per gang, and the traffic of all gangs, kept up as gangs come and go.

    `domains[leaf][d - 1]` is the leaf's domain at depth d = 1 .. D, the last being itself; `weights[d - 1]` what one
    more domain there costs. Of the leaf's nodes `idle[leaf]` are unused before the gangs come, others use the rest;
    `broken` counts leaves with used and unused nodes.
    """

    def __init__(
        self,
        free: Sequence[int],
        domains: Sequence[tuple[int, ...]],
        weights: Sequence[int],
        idle: Sequence[int] = (),
        used: Sequence[int] = (),
    ) -> None:
        self.free = list(free)
        self.idle = list(idle or free)
        self.used = list(used or [0] * len(self.free))
        self.broken = sum(idle > 0 and used > 0 for idle, used in zip(self.idle, self.used, strict=True))
        self.domains = domains
        self.weights = [(d, w) for d, w in enumerate(weights) if w]
        self.depth = len(weights)
        self.gangs_on: list[set[int]] = [set() for _ in free]
        self.shares: dict[int, Shares] = {}
        self.pods: dict[int, int] = {}
        """Item.pods of the gangs that have some."""
        self.cost = 0

    def cost_of(self, shares: Shares, pods: int = 0) -> int:
        """Return the traffic of one gang; `pods` as of its item."""
        if len(shares) == 1:
            return 0
        if pods:
            return pods * pods * sum(w * self._pairs(shares, d) for d, w in self.weights)
        return sum(w * (len({self.domains[leaf][d] for leaf in shares}) - 1) for d, w in self.weights)

    def _pairs(self, shares: Shares, depth: int) -> int:
        """Return the pairs of nodes in different domains."""
        inside: dict[int, int] = {}
        for leaf, nodes in shares.items():
            domain = self.domains[leaf][depth]
            inside[domain] = inside.get(domain, 0) + nodes
        total = sum(inside.values())
        return (total * total - sum(nodes * nodes for nodes in inside.values())) // 2

    def put(self, gang: int, shares: Shares) -> None:
        """Give a gang its nodes."""
        self.shares[gang] = shares
        self.cost += self.cost_of(shares, self.pods.get(gang, 0))
        for leaf, nodes in shares.items():
            self._use(leaf, nodes)
            self.gangs_on[leaf].add(gang)

    def _use(self, leaf: int, nodes: int) -> None:
        was = self.idle[leaf] > 0 and self.used[leaf] > 0
        self.free[leaf] -= nodes
        self.idle[leaf] -= nodes
        self.used[leaf] += nodes
        self.broken += (self.idle[leaf] > 0 and self.used[leaf] > 0) - was

    def take(self, gang: int) -> Shares:
        """Take a gang off its leaves and return what it had."""
        shares = self.shares.pop(gang)
        self.cost -= self.cost_of(shares, self.pods.get(gang, 0))
        for leaf, nodes in shares.items():
            self._use(leaf, -nodes)
            self.gangs_on[leaf].discard(gang)
        return shares

    def least_broken(self) -> int:
        """Return 0 or 1: the fewest broken leaves wherever the gangs are. None is broken only where the nodes that stay
        unused make up whole leaves; a subset sum over those that nobody else uses.
        """
        taken = [0] * len(self.free)
        for shares in self.shares.values():
            for leaf, nodes in shares.items():
                taken[leaf] += nodes
        reach = 1
        for leaf, nodes in enumerate(taken):
            if self.used[leaf] == nodes:
                reach |= reach << self.idle[leaf] + nodes
        return 1 - (reach >> sum(self.idle) & 1)

    def fit(self, item: Item, leaves: Iterable[int], draw: Random, blink: float) -> Shares | None:
        """Return where the gang would go on `leaves`, None where it finds no place: one leaf, the tightest; else the
        parent in which it needs the fewest leaves, with the least left over there; else the innermost domain that
        holds it, roomiest parents first. With probability `blink` a leaf that would do is overlooked.
        """
        room = [(leaf, self.free[leaf]) for leaf in leaves if self.free[leaf]]
        holding = [(nodes, draw.random(), leaf) for leaf, nodes in room if nodes >= item.size]
        if holding and blink and draw.random() < blink:
            holding.remove(min(holding))
        if holding:
            return {min(holding)[2]: item.size}
        for depth in range(self.depth - 1, item.scope - 1, -1):
            groups: dict[int, list[tuple[int, int]]] = {}
            for leaf, nodes in room:
                groups.setdefault(self.domains[leaf][depth - 1] if depth else 0, []).append((leaf, nodes))
            able = [
                (_fewest(group, item.size), draw.random(), domain)
                for domain, group in groups.items()
                if sum(nodes for _, nodes in group) >= item.size
            ]
            if able:
                return self._split(item.size, groups[min(able)[2]], depth)
        return None

    def _split(self, size: int, group: list[tuple[int, int]], depth: int) -> Shares:
        if depth == self.depth - 1:
            return {group[i][0]: n for i, n in tightest_subset([nodes for _, nodes in group], size)}
        inner: dict[int, list[tuple[int, int]]] = {}
        for leaf, nodes in group:
            inner.setdefault(self.domains[leaf][depth], []).append((leaf, nodes))
        shares: Shares = {}
        for _, domain in sorted(((-sum(n for _, n in leaves), d) for d, leaves in inner.items())):
            here = min(size, sum(nodes for _, nodes in inner[domain]))
            shares |= self._split(here, inner[domain], depth + 1)
            size -= here
            if not size:
                break
        return shares


def _fewest(group: list[tuple[int, int]], size: int) -> int:
    total = 0
    for number, nodes in enumerate(sorted((nodes for _, nodes in group), reverse=True), 1):
        total += nodes
        if total >= size:
            return number
    return len(group)
