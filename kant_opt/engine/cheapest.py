"""The cheapest units to go so that the gang has room in one domain: dynamic programming over the tree.

A unit that touches m nodes of the domain costs 1 / m on each, so that every set of units costs at least as much as what
it frees: the least cost, rounded up, is a lower bound on the number of units. Each part is looked at alone, with its
slices and spreads; other rules are left aside, which keeps it a bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from kant_opt.engine.node_states import NodeStates, open_parts
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


class Cheapest:
    """Costs of room in every domain that has to hold the whole gang."""

    def __init__(self, case: WhatIf, states: NodeStates) -> None:
        self.states, self.tree = states, case.tree
        self.parts = open_parts(case)
        self.depth = case.smallest_gang.common_depth
        self._last: tuple[tuple[int, int], _Domain] | None = None

    def ranked(self) -> list[tuple[int, int]]:
        """Return (lower bound on units, domain) of the domains that could have room, the lowest bound first."""
        everything = self._folded(self.states.without(frozenset(self.states.touched)))
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
                found |= self._cheapest_state(k, node, pods, weights)
        return frozenset(found)

    def cut(self, domain: int, units: frozenset[int]) -> frozenset[int]:
        """Return `units` less those that the domain's room can spare, the last ones first."""
        for unit in sorted(units, reverse=True):
            fewer = units - {unit}
            if self._has_room(fewer, domain):
                units = fewer
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
        if self._last is None or self._last[0] != (k, domain):
            self._last = (k, domain), self._build(k, self.depth, domain, self._weights_in(domain))
        return self._last[1]

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
            raw = self._node_costs(k, domain, weights)
            return _Domain(self._under_rules(k, depth, domain, raw), raw, node=domain)
        total = np.full(target + 1, _NEVER, dtype=np.int64)
        total[0] = 0
        sums, children = [total], []
        inside = self.tree.children(depth, domain)
        for child in range(inside.start, inside.stop):
            children.append(self._build(k, depth + 1, child, weights))
            total = _sum(total, children[-1].cost)
            sums.append(total)
        return _Domain(self._under_rules(k, depth, domain, total), total, children, sums)

    def _node_costs(self, k: int, node: int, weights: dict[int, int]) -> Ints:
        target = self.parts[k].target
        cost = np.full(target + 1, _NEVER, dtype=np.int64)
        slots = self.states.slots[k][node]
        for bits, price in self._states_of(node, weights):
            upto = min(int(slots[bits]), target) + 1
            cost[:upto] = np.minimum(cost[:upto], price)
        return cost

    def _states_of(self, node: int, weights: dict[int, int]) -> Iterable[tuple[int, int]]:
        """Yield (bits, least cost of units behind them) of a node's states."""
        prices = [min(weights[u] for u in group.units) for group in self.states.groups.get(node, ())]
        for bits in range(1 << len(prices)):
            yield bits, sum(price for bit, price in enumerate(prices) if bits >> bit & 1)

    def _cheapest_state(self, k: int, node: int, pods: int, weights: dict[int, int]) -> set[int]:
        """Return the units of the cheapest state of a node with room for `pods`."""
        slots = self.states.slots[k][node]
        _, bits = min((price, bits) for bits, price in self._states_of(node, weights) if slots[bits] >= pods)
        return {u for bit, group in enumerate(self.states.groups.get(node, ())) if bits >> bit & 1 for u in group.units}

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
        price = domain.cost[pods]
        pods = int(np.flatnonzero(domain.raw[pods:] == price)[0]) + pods if domain.raw[pods] != price else pods
        for i in range(len(domain.children) - 1, -1, -1):
            before, child = domain.sums[i], domain.children[i].cost
            both = before[pods::-1] + child[: pods + 1]
            given = int(np.argmin(both))
            yield from self._trace(domain.children[i], given)
            pods -= given


def _sum(a: Ints, b: Ints) -> Ints:
    """Return the least cost of p pods and more from two domains together; both costs never fall with p."""
    if np.count_nonzero(np.diff(b)) > np.count_nonzero(np.diff(a)):
        a, b = b, a
    total = np.full(len(a), _NEVER, dtype=np.int64)
    steps = [*np.flatnonzero(np.diff(b)).tolist(), len(b) - 1]
    for most in steps:  # taking fewer than the most pods of a price never helps
        if b[most] >= _NEVER:
            break
        shifted = np.concatenate([np.full(most, a[0]), a[: len(a) - most]])
        total = np.minimum(total, np.minimum(shifted + b[most], _NEVER))
    return total
