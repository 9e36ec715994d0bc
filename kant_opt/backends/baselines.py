"""Plain greedies to measure against: pods go one node after another in a fixed preference, blind to the fabric.

They keep every rule: where a rule names levels (slices, spread, scopes), domains of these levels are filled in the
same preference; all other levels are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kant_opt.backends.strategy import Counts, Site, Strategy
from kant_opt.view import Free, Ints, Part

Preference = Callable[[Free, Part, Ints], Ints]
"""(free, part, node indices) -> sort key per node, small first."""


class Ordered(Strategy):
    """Fills nodes to the brim in the order of a preference."""

    innermost_first = False

    def __init__(self, name: str, preference: Preference) -> None:
        self.name, self.preference = name, preference

    def fill(self, site: Site, count: int, depth: int, domain: int) -> Counts:
        tree, room = site.tree, site.room
        if depth == tree.node_depth:
            return [(domain, count)]
        levels = {level for level, _ in (*site.part.slices, *site.part.spread)}
        inner = min((level for level in levels if level > depth), default=tree.node_depth)
        run = site.inside(depth, domain, inner)
        domains = np.arange(run.start, run.stop)
        domains = domains[room[inner][domains] > 0]
        found: Counts = []
        for child, number in self.shares(self.order(site, domains, inner), room[inner], count, site.unit(depth)):
            found += self.fill(site, number, inner, child)
        return found

    def choose(self, site: Site, count: int, depth: int, domains: Ints) -> Ints:
        return self.order(site, domains, depth)

    def order(self, site: Site, domains: Ints, depth: int) -> Ints:
        """Return domains in the preference's order: a domain is as good as its best node with room."""
        tree = site.tree
        key = self.preference(site.free, site.part, np.arange(len(tree.names)))
        if depth < tree.node_depth:
            usable = np.where(site.room[tree.node_depth] > 0, key, np.inf)
            key = np.minimum.reduceat(usable, tree.start[depth])
        return domains[np.argsort(key[domains], kind="stable")]

    def shares(self, order: Ints, room: Ints, count: int, unit: int) -> Counts:
        """Return how many of `count` pods each domain takes; all rooms and `count` are multiples of `unit`."""
        found: Counts = []
        for domain in order.tolist():
            number = min(count, int(room[domain]))
            found.append((domain, number))
            count -= number
            if not count:
                break
        return found


class Spread(Ordered):
    """Hands pods out one by one (slices whole), always to the domain that has the fewest of them so far."""

    def __init__(self) -> None:
        super().__init__("spread", lambda free, part, nodes: -free.spare[nodes] / free.cluster.unit[nodes])

    def shares(self, order: Ints, room: Ints, count: int, unit: int) -> Counts:
        given = dict.fromkeys(order.tolist(), 0)
        while count:
            for domain in given:
                if count and room[domain] - given[domain] >= unit:
                    given[domain] += unit
                    count -= unit
        return [(domain, number) for domain, number in given.items() if number]


class Random(Ordered):
    """Each pod (each slice) to a node drawn at random among those with room; same seed, same draws."""

    def __init__(self, seed: int) -> None:
        super().__init__("random", lambda free, part, nodes: nodes)
        self.draw = np.random.default_rng(seed)

    def order(self, site: Site, domains: Ints, depth: int) -> Ints:
        return self.draw.permutation(domains)

    def shares(self, order: Ints, room: Ints, count: int, unit: int) -> Counts:
        given = dict.fromkeys(order.tolist(), 0)
        domains = order.tolist()
        while count:
            i = int(self.draw.integers(len(domains)))
            given[domains[i]] += unit
            count -= unit
            if room[domains[i]] - given[domains[i]] < unit:
                domains.pop(i)
        return [(domain, number) for domain, number in given.items() if number]


def first_fit(seed: int = 0) -> Ordered:
    """Return First-Fit: nodes in the order of their paths."""
    return Ordered("first-fit", lambda free, part, nodes: nodes)


def best_fit(seed: int = 0) -> Ordered:
    """Return Best-Fit: the node with the least left over, GPUs and CPU in shares of the largest node, half each."""
    return Ordered("best-fit", _left_over)


def binpack(seed: int = 0) -> Ordered:
    """Return Binpack: the node whose GPUs (CPU for pods without GPU) are used most, as a share of its own."""
    return Ordered("binpack", _unused_share)


def spread(seed: int = 0) -> Ordered:
    """Return Spread: the emptiest nodes, pods dealt out one by one."""
    return Spread()


def random(seed: int = 0) -> Ordered:
    """Return Random with a seed."""
    return Random(seed)


def _left_over(free: Free, part: Part, nodes: Ints) -> Ints:
    cluster = free.cluster
    gpus = free.spare[nodes] / cluster.unit[nodes] / max(1, int(cluster.gpus.max(initial=1)))
    counted = cluster.cpu < (1 << 59)
    widest = int(cluster.cpu[counted].max(initial=1)) if counted.any() else 1
    cpu = np.where(counted[nodes], free.cpu[nodes], 0) / max(1, widest)
    return np.asarray(0.5 * gpus + 0.5 * cpu)


def _unused_share(free: Free, part: Part, nodes: Ints) -> Ints:
    cluster = free.cluster
    if part.shape.uses_gpu:
        return np.asarray(free.spare[nodes] / np.maximum(1, free.capacity[nodes]))
    return np.asarray(free.cpu[nodes] / np.maximum(1, cluster.cpu[nodes]))
