"""One gang onto the free room, all or nothing: the frame that every greedy shares.

A strategy says how one part fills one domain; this file sees to the rules between parts (scopes, ties, apart), to the
rules towards other jobs, to quotas, elastic sizes and to the exact search where counting is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from kant_opt.backends.reachable import ExactGang, SearchLimit
from kant_opt.backends.strategy import Counts, Site, Strategy
from kant_opt.view import Free, Gang, GpuIndices, Ints, Mask, Part, Quotas, capacities, domain_counts, open_nodes

Failure = Literal["no_room", "quota", "limit"]
"""no_room: proven for this gang on this free room. quota: it would fit but for its quota. limit: the search stopped."""

_TRIES = 8
"""Domains tried part by part before the exact search looks at all of them."""


class Taken(NamedTuple):
    """Pods of one part on one node, room taken."""

    part: Part
    node: int
    pods: int
    gpus: tuple[GpuIndices, ...]


class Placer:
    """Places gangs one after another on `free` and `quotas`, which it changes."""

    def __init__(
        self,
        free: Free,
        strategy: Strategy,
        quotas: Quotas | None = None,
        work: int = 10_000_000,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        """`work` limits the exact search of one gang; once `is_late` says so, it ends, and sizes are grown no more."""
        self.free, self.strategy, self.work, self.is_late = free, strategy, work, is_late
        self.quotas = Quotas(free.cluster) if quotas is None else quotas
        self.tree = free.cluster.tree
        self.within: Mask | None = None

    def place(self, gang: Gang, within: Mask | None = None) -> list[Taken] | Failure:
        """Take room for the gang and return it, or say why it was not placed; then nothing is taken.

        `within` (N,) limits it to some nodes; a failure then speaks of these alone.
        """
        if not gang.open_parts:
            return []
        self.within = within
        taken = self._elastic(gang)
        if self.quotas and taken == "no_room" and self._fits_without_quota(gang):
            return "quota" if all(self.quotas.is_exact(gang.parts[i]) for i in gang.open_parts) else "limit"
        return taken

    def release(self, taken: list[Taken]) -> None:
        """Give back the room of a gang."""
        for t in taken:
            self.free.release(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus)
            self.quotas.charge(t.part, t.node, -t.pods)

    def take_again(self, taken: list[Taken]) -> None:
        """Take the room of a gang that was given back, on the same GPUs where they are named."""
        for t in taken:
            self._take(t.part, t.node, t.pods, t.gpus or None)

    # -- sizes -----------------------------------------------------------------------------------

    def _elastic(self, gang: Gang) -> list[Taken] | Failure:
        """Try the full size, then the least, and from there the largest part by part."""
        taken = self._fixed(gang)
        if not isinstance(taken, str) or all(part.least == part.target for part in gang.parts):
            return taken
        sizes = [part.least for part in gang.parts]
        found = self._fixed(_resized(gang, sizes))
        if isinstance(found, str):
            # Fewer pods are no easier where running ones fill slices in part: sizes between were not tried.
            uneven = any(part.slices and part.living and part.least < part.target for part in gang.parts)
            return "limit" if uneven else found
        for i in gang.open_parts:
            part = gang.parts[i]
            low, high = sizes[i], part.target
            while high - low >= part.unit and not self.is_late():
                middle = low + ((high - low) // part.unit + 1) // 2 * part.unit
                trial = [*sizes[:i], middle, *sizes[i + 1 :]]
                self.release(found)
                again = self._fixed(_resized(gang, trial))
                if isinstance(again, str):
                    high = middle - part.unit
                    found = [self._take(t.part, t.node, t.pods, t.gpus) for t in found]
                else:
                    found, low, sizes = again, middle, trial
        return found

    def _fits_without_quota(self, gang: Gang) -> bool:
        unlimited = Placer(self.free, self.strategy, _no_quotas(self.free), self.work, self.is_late)
        taken = unlimited._elastic(gang)
        if isinstance(taken, str):
            return False
        unlimited.release(taken)
        return True

    # -- one size --------------------------------------------------------------------------------

    def _fixed(self, gang: Gang) -> list[Taken] | Failure:
        """Place exactly `target` pods of every part."""
        nodes = self._open_nodes(gang)
        if self.quotas:
            for i in gang.open_parts:
                if self.quotas.pods_left(gang.parts[i]) < gang.parts[i].target:
                    return "no_room"
        if self._torn(gang) or any(self._spoiled(part) for part in gang.parts if not part.target):
            return "no_room"
        if not gang.open_parts:
            return []
        if not all(_countable(part) for part in gang.parts):
            return self._exact(gang, nodes)
        single = len(gang.open_parts) == 1
        rooms = {i: self._room(gang.parts[i], self._mask_for(gang, i, [], [], nodes)) for i in gang.open_parts}
        if not self.quotas and any(room[0].sum() < gang.parts[i].target for i, room in rooms.items()):
            return "no_room"  # one part has too little room even alone: nothing to search
        for depth, domain in self._candidates(gang, rooms, exact=single):
            taken = self._in_best_order(gang, rooms, nodes, depth, domain)
            if taken is not None:
                return taken
        if single:
            return "no_room"
        return self._exact(gang, nodes)

    def _spoiled(self, part: Part) -> bool:
        """Return whether living pods break a rule of counting that no new pod of the part can mend."""
        for depth, size in part.slices:
            if (domain_counts(self.tree, part.living, depth) % size).any():
                return True
        return any((domain_counts(self.tree, part.living, depth) > most).any() for depth, most in part.spread)

    def room_of(self, gang: Gang, i: int) -> list[Ints]:
        """Return pods of part `i` that fit per domain, no other part of the gang placed yet; see capacities."""
        return self._room(gang.parts[i], self._mask_for(gang, i, [], [], self._open_nodes(gang)))

    def _open_nodes(self, gang: Gang) -> Mask | None:
        nodes = open_nodes(self.free, gang)
        if self.within is not None:
            nodes = self.within if nodes is None else nodes & self.within
        return nodes

    def _torn(self, gang: Gang) -> bool:
        """Return whether pods that run already lie in two domains where all of them should be in one."""
        for depth, members in gang.scopes:
            nodes = [node for i in members for node in gang.parts[i].living]
            if len(set(self.tree.of_node[depth][nodes].tolist() if nodes else ())) > 1:
                return True
        return False

    def _room(self, part: Part, nodes: Mask | None) -> list[Ints]:
        if self.quotas:
            within = self.quotas.open_nodes(part, part.target)
            if within is not None:
                nodes = within if nodes is None else nodes & within
        return capacities(self.free, part, nodes)

    def _candidates(self, gang: Gang, rooms: dict[int, list[Ints]], *, exact: bool) -> Iterator[tuple[int, int]]:
        """Yield domains that could hold the whole gang, innermost first, best first."""
        parts = [gang.parts[i] for i in gang.open_parts]
        lead = max(gang.open_parts, key=lambda i: (gang.parts[i].gpu_milli * gang.parts[i].target, -i))
        outermost = gang.common_depth
        at_node = any(self.tree.node_depth in (p.required, p.preferred) for p in parts)
        innermost = max(outermost, self.tree.node_depth if at_node else self.tree.leaf_depth)
        used = self._used(gang, [])
        if used or not self.strategy.innermost_first or any(part.balance_depth for part in parts):
            innermost = outermost  # the strategy goes outwards itself, from living members or evenly
        for depth in range(innermost, outermost - 1, -1):
            fits = np.ones(self.tree.num_domains(depth), dtype=bool)
            for i, room in rooms.items():
                fits &= room[depth] >= gang.parts[i].target
            domains = np.flatnonzero(fits)
            if not len(domains):
                continue
            order = self.strategy.choose(
                Site(self.free, gang.parts[lead], rooms[lead], used), gang.parts[lead].target, depth, domains
            )
            if exact:  # every domain listed holds the gang
                yield depth, int(order[0])
            else:
                for domain in order[:_TRIES].tolist():
                    yield depth, domain

    def _used(self, gang: Gang, taken: list[Taken]) -> list[Mask]:
        """Return per depth which domains the gang's pods use already."""
        nodes = sorted({n for part in gang.parts for n in part.living} | {t.node for t in taken})
        if not nodes:
            return []
        used = []
        for depth in range(self.tree.depths):
            mask = np.zeros(self.tree.num_domains(depth), dtype=bool)
            mask[self.tree.of_node[depth][nodes]] = True
            used.append(mask)
        return used

    def _in_best_order(
        self, gang: Gang, rooms: dict[int, list[Ints]], nodes: Mask | None, depth: int, domain: int
    ) -> list[Taken] | None:
        """Place the parts inside one domain, the largest pods first; where they lie in several domains inside it, also
        the smallest first if that needs fewer."""
        order = sorted(gang.open_parts, key=lambda i: (-gang.parts[i].gpu_milli, -gang.parts[i].shape.cpu, i))
        taken = self._part_by_part(gang, order, rooms, nodes, depth, domain)
        if len(order) == 1 or not self.strategy.innermost_first or taken is None:
            return taken
        span = self._span(taken)
        if max(span[depth:], default=1) == 1:
            return taken
        self.release(taken)
        other = self._part_by_part(gang, order[::-1], rooms, nodes, depth, domain)
        if other is not None:
            if self._span(other) < span:
                return other
            self.release(other)
        return self._part_by_part(gang, order, rooms, nodes, depth, domain)

    def _span(self, taken: list[Taken]) -> list[int]:
        """Return the number of domains used per depth, outermost first, the whole fabric left out."""
        nodes = [t.node for t in taken]
        return [len(set(self.tree.of_node[depth][nodes].tolist())) for depth in range(1, self.tree.depths)]

    def _part_by_part(
        self,
        gang: Gang,
        order: list[int],
        rooms: dict[int, list[Ints]],
        nodes: Mask | None,
        depth: int,
        domain: int,
    ) -> list[Taken] | None:
        """Place the parts one after another inside one domain; None, and nothing taken, where one does not fit."""
        taken: list[Taken] = []
        for n, i in enumerate(order):
            part = gang.parts[i]
            mask = self._mask_for(gang, i, order[:n], taken, nodes)
            room = rooms[i] if n == 0 and mask is nodes else self._room(part, mask)
            used = self._used(gang, taken)
            at = self._scope_of(gang, i, rooms, room, used, depth, domain)
            if at is None or room[at[0]][at[1]] < part.target:
                self.release(taken)
                return None
            taken += self._take_all(part, self.strategy.fill(Site(self.free, part, room, used), part.target, *at))
        if self.quotas and self.quotas.exceeded((t.part, t.node) for t in taken):
            self.release(taken)
            return None
        return taken

    def _take_all(self, part: Part, counts: Counts) -> list[Taken]:
        """Take room on many nodes; nodes that the pods fill wholly in one step."""
        nodes, pods = np.array(counts, dtype=np.int64).reshape(-1, 2).T
        fills = part.shape.gpus * pods == self.free.cluster.gpus[nodes]
        whole = (
            part.shape.gpus > 0
            and len(nodes) > 1
            and bool((fills & (self.free.capacity == self.free.spare)[nodes]).all())
        )
        if not whole or self.quotas:
            return [self._take(part, node, count) for node, count in counts]
        gpus = self.free.take_whole(nodes, part.shape, pods, part.job.name)
        return [Taken(part, node, count, g) for (node, count), g in zip(counts, gpus, strict=True)]

    def _take(self, part: Part, node: int, count: int, gpus: tuple[GpuIndices, ...] | None = None) -> Taken:
        gpus = self.free.take(node, part.shape, count, part.job.name, gpus)
        self.quotas.charge(part, node, count)
        return Taken(part, node, count, gpus)

    def _mask_for(self, gang: Gang, i: int, placed: list[int], taken: list[Taken], nodes: Mask | None) -> Mask | None:
        """Close the domains that `apart` and the scopes of parts already placed leave not open to part `i`."""
        for depth, sets in gang.apart:
            mine = [s for s in sets if i in s]
            others = {k for s in sets if i not in s for k in s}
            if mine and others:
                nodes = self._restrict(gang, nodes, others, placed, taken, depth, inside=False)
        for depth, members in gang.scopes:
            if i in members:
                nodes = self._restrict(gang, nodes, set(members), placed, taken, depth, inside=True)
        return nodes

    def _restrict(
        self,
        gang: Gang,
        nodes: Mask | None,
        others: set[int],
        placed: list[int],
        taken: list[Taken],
        depth: int,
        *,
        inside: bool,
    ) -> Mask | None:
        at = {node for k in others for node in gang.parts[k].living}
        theirs = {id(gang.parts[k]) for k in others if k in placed}
        at |= {t.node for t in taken if id(t.part) in theirs}
        if not at:
            return nodes
        hit = np.zeros(self.tree.num_domains(depth), dtype=bool)
        hit[self.tree.of_node[depth][sorted(at)]] = True
        mask: Mask = hit[self.tree.of_node[depth]] == inside
        return mask if nodes is None else nodes & mask

    def _scope_of(
        self,
        gang: Gang,
        i: int,
        rooms: dict[int, list[Ints]],
        room: list[Ints],
        used: list[Mask],
        depth: int,
        domain: int,
    ) -> tuple[int, int] | None:
        """Return the domain inside (depth, domain) in which part `i` has to lie, as its own scopes ask."""
        part = gang.parts[i]
        for scope, members in sorted(gang.scopes, key=lambda s: -s[0]):
            if i not in members or scope <= depth:
                continue
            run = self.tree.of_node[depth][self.tree.start[scope]] == domain
            fits = run & (room[scope] >= part.target)
            for k in members:
                if k in rooms and k != i:
                    fits &= rooms[k][scope] >= gang.parts[k].target
            domains = np.flatnonzero(fits)
            if not len(domains):
                return None
            chosen = self.strategy.choose(Site(self.free, part, room, used), part.target, scope, domains)
            return scope, int(chosen[0])
        return depth, domain

    # -- exact -----------------------------------------------------------------------------------

    def _exact(self, gang: Gang, nodes: Mask | None) -> list[Taken] | Failure:
        search = ExactGang(self.free, gang, nodes, self.work, self.is_late)
        try:
            found = search.place()
        except SearchLimit:
            return "limit"
        if found is None:
            return "no_room"
        taken: list[Taken] = []
        for node, k, count, gpus in search.with_gpus(found):
            taken.append(self._take(search.parts[k], node, count, gpus))
        if self.quotas and self.quotas.exceeded((t.part, t.node) for t in taken):
            self.release(taken)
            return "no_room"
        return taken


def _countable(part: Part) -> bool:
    """Return whether capacities per domain tell all: not where living pods fill slices or spreads in part."""
    return not (part.living and (part.slices or part.spread)) and part.target % part.unit == 0


def _resized(gang: Gang, sizes: list[int]) -> Gang:
    parts = tuple(replace(part, target=size, least=size) for part, size in zip(gang.parts, sizes, strict=True))
    return replace(gang, parts=parts)


def _no_quotas(free: Free) -> Quotas:
    quotas = Quotas(free.cluster)
    quotas.caps = []
    return quotas
