"""The cheapest units to go so that the gang has room in one domain: dynamic programming over the tree.

A unit that touches m nodes of the domain costs 1 / m on each, so that every set of units costs at least as much as what
it frees: the least cost, rounded up, is a lower bound on the number of units. Each part is looked at alone, with its
slices and spreads; other rules are left aside, which keeps it a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice

import numpy as np

from kant_opt.engine.node_states import NodeStates, open_parts, states_of
from kant_opt.engine.what_if import WhatIf
from kant_opt.view import Ints, Part, domain_counts

SCALE = 1_000_000
"""The cost of a whole unit; shares are rounded down, which keeps the bound a bound."""
_NEVER = 1 << 50


@dataclass(eq=False)
class _Domain:
    """`cost[p]`: what it costs to have room for p pods and more, as the rules of its own level allow."""

    cost: Ints
    raw: Ints
    """The same before the rules of its own level."""
    children: list[_Domain] = field(default_factory=list)
    sums: list[Ints] = field(default_factory=list)
    """Costs of the first children together, from none to all."""
    node: int = -1

    @cached_property
    def steps(self) -> list[tuple[int, int]]:
        """(the most pods of a price, the price), the lowest first: fewer pods for as much never help."""
        most = [*np.flatnonzero(self.cost[1:] != self.cost[:-1]).tolist(), len(self.cost) - 1]
        return [(pods, int(self.cost[pods])) for pods in most if self.cost[pods] < _NEVER]


class Cheapest:
    """Costs of room in every domain that has to hold the whole gang."""

    def __init__(self, case: WhatIf, states: NodeStates) -> None:
        self.states, self.tree = states, case.tree
        self.parts = open_parts(case)
        self.depth = case.smallest_gang.common_depth
        self._domains: dict[tuple[int, int], _Domain] = {}
        self._nodes: dict[tuple[object, ...], _Domain] = {}

    def ranked(self) -> list[tuple[int, int]]:
        """Return (lower bound on units, domain) of the domains that could have room, the lowest bound first."""
        everything = self._folded(self.states.without(self.states.touched))
        able = np.ones(self.tree.num_domains(self.depth), dtype=bool)
        for part, room in zip(self.parts, everything, strict=True):
            able &= room >= part.target
        found = []
        for domain in np.flatnonzero(able).tolist():
            costs = [int(self._domain(k, domain).cost[-1]) for k in range(len(self.parts))]
            if max(costs) < _NEVER:
                found.append((-(-max(costs) // SCALE), domain))
        return sorted(found)

    def units(self, domain: int) -> frozenset[int] | None:
        """Return units whose going gives each part, looked at alone, room in the domain at the least cost."""
        found: set[int] = set()
        for k, part in enumerate(self.parts):
            root = self._domain(k, domain)
            if root.cost[-1] >= _NEVER:
                return None
            weights = self._weights_in(domain)
            for node, pods in self._trace(root, part.target):
                found.update(self._cheapest_state(k, node, pods, weights))
        return frozenset(found)

    def cut(self, domain: int, units: frozenset[int], bound: int, most: int) -> frozenset[int]:
        """Return `units` less those that the domain's room can spare, the last ones first; then, down to `bound`, with
        one unit in place of two as long as that works. Looks at `most` sets."""
        for unit in sorted(units, reverse=True):
            if self._has_room(units - {unit}, domain):
                units = units - {unit}
        others = sorted(self.touching(domain) & self.states.useful)
        swaps = ((pair, other) for pair in combinations(sorted(units, reverse=True), 2) for other in others)
        for (one, two), other in islice(swaps, most):
            if len(units) <= bound:
                break
            if {one, two} <= units and other not in units and self._has_room(units - {one, two} | {other}, domain):
                units = units - {one, two} | {other}
        return units

    def touching(self, domain: int) -> frozenset[int]:
        """Return the units with something in the domain."""
        run = self.tree.nodes_of(self.depth, domain)
        return frozenset(
            u for node in range(run.start, run.stop) for g in self.states.groups.get(node, ()) for u in g.units
        )

    def may_suffice(self, units: frozenset[int]) -> bool:
        """Return whether some domain may have room once the units are gone; False is proven."""
        able = np.ones(self.tree.num_domains(self.depth), dtype=bool)
        for part, room in zip(self.parts, self._folded(self.states.without(units)), strict=True):
            able &= room >= part.target
        return bool(able.any())

    def _has_room(self, units: frozenset[int], domain: int) -> bool:
        rooms = self._folded(self.states.without(units))
        return all(room[domain] >= part.target for part, room in zip(self.parts, rooms, strict=True))

    def _folded(self, slots: Iterable[Ints]) -> list[Ints]:
        """Return pods per domain of the common depth for each part, with slices and spreads."""
        found = []
        for part, room in zip(self.parts, slots, strict=True):
            for depth in range(self.tree.node_depth, self.depth - 1, -1):
                if depth < self.tree.node_depth:
                    room = self.tree.fold(room, depth + 1)
                room = self._ruled(part, depth, room)
            found.append(room)
        return found

    def _ruled(self, part: Part, depth: int, room: Ints) -> Ints:
        """Return the most pods that the rules of one level leave of `room` pods per domain."""
        for level, most in part.spread:
            if level == depth:
                room = np.clip(most - domain_counts(self.tree, part.living, depth), 0, room)
        for level, size in part.slices:
            if level == depth and not part.living:
                room = room // size * size
        return room

    # -- the program -----------------------------------------------------------------------------

    def _domain(self, k: int, domain: int) -> _Domain:
        if (k, domain) not in self._domains:
            if all(known != domain for _, known in self._domains):  # one domain's arrays at a time
                self._domains.clear()
                self._nodes.clear()
            self._domains[k, domain] = self._build(k, self.depth, domain, self._weights_in(domain))
        return self._domains[k, domain]

    def _weights_in(self, domain: int) -> dict[int, int]:
        """Return what each unit costs per node of the domain that it touches."""
        run = self.tree.nodes_of(self.depth, domain)
        times: dict[int, int] = {}
        for node in range(run.start, run.stop):
            for group in self.states.groups.get(node, ()):
                for unit in group.units:
                    times[unit] = times.get(unit, 0) + 1
        return {unit: SCALE // n for unit, n in times.items()}

    def _build(self, k: int, depth: int, domain: int, weights: dict[int, int]) -> _Domain:
        target = self.parts[k].target
        if depth == self.tree.node_depth:
            return self._node(k, domain, weights)
        total = np.full(target + 1, _NEVER, dtype=np.int64)
        total[0] = 0
        sums, children = [total], []
        inside = self.tree.children(depth, domain)
        for child in range(inside.start, inside.stop):
            children.append(self._build(k, depth + 1, child, weights))
            total = _sum(total, children[-1])
            sums.append(total)
        return _Domain(self._under_rules(k, depth, domain, total), total, children, sums)

    def _node(self, k: int, node: int, weights: dict[int, int]) -> _Domain:
        """Return the costs of one node; nodes that are alike in them share the arrays."""
        groups = self.states.groups.get(node, ())
        alive = self.parts[k].living.get(node, 0)
        prices = tuple((group.blurred, *(weights[unit] for unit in group.units)) for group in groups)
        key = (k, alive, prices, self.states.slots[k][node].tobytes())
        if key not in self._nodes:
            cost = self._node_costs(k, node, weights)
            self._nodes[key] = _Domain(self._under_rules(k, self.tree.node_depth, node, cost), cost)
        found = copy(self._nodes[key])
        found.node = node
        found.steps = self._nodes[key].steps
        return found

    def _node_costs(self, k: int, node: int, weights: dict[int, int]) -> Ints:
        target = self.parts[k].target
        cost = np.full(target + 1, _NEVER, dtype=np.int64)
        slots = self.states.slots[k][node]
        for number, (price, _) in enumerate(self._states_of(node, weights)):
            upto = min(int(slots[number]), target) + 1
            cost[:upto] = np.minimum(cost[:upto], price)
        return cost

    def _states_of(self, node: int, weights: dict[int, int]) -> Iterable[tuple[int, list[int]]]:
        """Yield (least cost, units that cost the least) of a node's states, in order."""
        groups = self.states.groups.get(node, ())
        cheap = [sorted(group.units, key=lambda unit: (weights[unit], unit)) for group in groups]
        for counts in states_of(groups):
            price, units = 0, []
            for group, order, count in zip(groups, cheap, counts, strict=True):
                price += sum(weights[unit] for unit in order[:count])
                units += order if group.blurred and count else order[:count]
            yield price, units

    def _cheapest_state(self, k: int, node: int, pods: int, weights: dict[int, int]) -> list[int]:
        """Return the units of the cheapest state of a node with room for `pods`."""
        slots = self.states.slots[k][node]
        states = enumerate(self._states_of(node, weights))
        return min((price, units) for number, (price, units) in states if slots[number] >= pods)[1]

    def _under_rules(self, k: int, depth: int, domain: int, raw: Ints) -> Ints:
        part = self.parts[k]
        pods = np.arange(len(raw))
        cost = raw
        for level, size in part.slices:
            if level == depth and not part.living:
                up = -(-pods // size) * size
                cost = np.where(up < len(raw), cost[np.minimum(up, len(raw) - 1)], _NEVER)
        for level, most in part.spread:
            if level == depth:
                alive = int(domain_counts(self.tree, part.living, depth)[domain])
                cost = np.where(pods > max(0, most - alive), _NEVER, cost)
        return cost

    def _trace(self, domain: _Domain, pods: int) -> Iterable[tuple[int, int]]:
        """Yield (node, pods) of one cheapest way to have room for `pods` in a domain."""
        if not pods:
            return
        if domain.node >= 0:
            yield domain.node, pods
            return
        pods = (
            int(np.searchsorted(domain.raw, domain.cost[pods], side="right")) - 1
        )  # whole slices, or more for nothing
        for i in range(len(domain.children) - 1, -1, -1):
            before, child = domain.sums[i], domain.children[i].cost
            both = before[pods::-1] + child[: pods + 1]
            given = int(np.argmin(both))
            yield from self._trace(domain.children[i], given)
            pods -= given


def _sum(a: Ints, other: _Domain) -> Ints:
    """Return the least cost of p pods and more from domains of cost `a` and another one together."""
    total: Ints = np.full(len(a), _NEVER, dtype=np.int64)
    for most, price in other.steps:
        total[:most] = np.minimum(total[:most], price)  # `a` is 0 for no pods
        total[most:] = np.minimum(total[most:], a[: len(a) - most] + price)
    return total
