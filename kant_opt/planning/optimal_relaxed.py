"""A relaxation of the rules of space: what any placement needs, counted, so that no plan can do with less.

On any set of nodes, pods of g whole GPUs take floor(g / s) of the slots of s GPUs, of which a node with f free has
floor(f / s): together they fit only where the slots of every size do (floor(x / s) of a sum is no less than the sum of
them: a dual feasible function). The sets are the nodes eligible to some pod, and for gangs that have to stay inside
one domain each domain of that level, between which such a gang chooses. CPU, memory, quotas and all rules between
pods are left out; so are reservations that one of the jobs may use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kant_opt.formulation.schedule import Busy, Resource
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.view import Free, Gang, Ints, Mask, Part, Tree

MOST_MODES = 128
"""Domains between which a gang chooses in the program; of a level with more, the rule is left out."""
MOST_TIMES = 256
"""Changes of what is free that are looked at; where there are more, everything is free from the last of them on."""
_SHARES = 0
"""Stands for the size of slots where thousandths of GPUs are counted."""


@dataclass
class Relaxed:
    """Resources, and per ticket the demand of each mode and the domain that it stands for."""

    resources: list[Resource] = field(default_factory=list)
    modes: list[tuple[dict[int, int], ...]] = field(default_factory=list)
    domains: list[tuple[int, ...]] = field(default_factory=list)
    """Per ticket and mode, the domain at the depth that holds the gang together; empty: anywhere."""


def relax(space: TopologicalSpace, tickets: Sequence[Ticket], now: int, *, throughout: bool = False) -> Relaxed:
    """Return the relaxation of `tickets` beside all that is reserved in the space, time 0 being `now`.

    With `throughout` only what is free all the time between two of the times looked at counts, so that the program
    is no relaxation any more but one whose schedules can rather be placed. Costs a look at the nodes per time.
    """
    room = _Room(space, tickets, now, throughout)
    found = Relaxed()
    numbers: dict[_Key, int] = {}

    def number(key: _Key) -> int:
        if key not in numbers:
            numbers[key] = len(found.resources)
            found.resources.append(room.resource(key))
        return numbers[key]

    for ticket in tickets:
        gang = _gang(ticket)
        anywhere = {number(key): amount for key, amount in room.needs(gang, 0, 0).items()}
        domains = room.domains(gang)
        inside = [{number(key): n for key, n in room.needs(gang, gang.common_depth, d).items()} for d in domains]
        found.modes.append(tuple(anywhere | demand for demand in inside) or (anywhere,))
        found.domains.append(tuple(domains))
    return found


def mode_of(tree: Tree, claim: Claim, domains: Sequence[int]) -> int:
    """Return the index of the domain that holds a claim; 0 where there is none."""
    if not domains or not claim.taken:
        return 0
    at = int(tree.of_node[_gang(claim.ticket).common_depth][claim.taken[0].node])
    return domains.index(at) if at in domains else 0


def _gang(ticket: Ticket) -> Gang:
    assert ticket.gang is not None, "a ticket of this space has a gang"
    return ticket.gang


_Key = tuple[int, int, int, int]
"""A resource: depth and index of a domain, index of a set of nodes, size of the slots."""


class _Room:
    """Slots free over time, per domain, set of nodes and size."""

    def __init__(self, space: TopologicalSpace, tickets: Sequence[Ticket], now: int, throughout: bool) -> None:
        self.tree, self.now = space.cluster.tree, now
        self.times, free = _free(space, tickets, now, throughout)
        self.whole = np.array([each[0] for each in free])
        self.milli = np.array([each[1] for each in free])
        """(T, N) whole GPUs, and thousandths of GPUs, free from each of the times on."""
        parts = [part for ticket in tickets for part in _gang(ticket).parts if part.least and part.shape.uses_gpu]
        masks = {part.eligible.tobytes(): part.eligible for part in parts}
        if parts:
            union: Mask = np.logical_or.reduce([part.eligible for part in parts])
            masks.setdefault(union.tobytes(), union)
        self.masks: list[Mask] = list(masks.values())
        self.inside = [[_is_subset(part.eligible, mask) for mask in self.masks] for part in parts]
        self.row = {id(part): i for i, part in enumerate(parts)}
        self.sizes: list[list[int]] = []
        for m in range(len(self.masks)):
            here = [part for part in parts if self.inside[self.row[id(part)]][m]]
            sizes = sorted({part.shape.gpus for part in here if part.shape.gpus})
            self.sizes.append([*sizes, *([_SHARES] if any(part.shape.milli for part in here) else [])])
        self._slots: dict[tuple[int, int, int], Ints] = {}

    def needs(self, gang: Gang, depth: int, domain: int) -> dict[_Key, int]:
        """Return what the gang takes at least of the slots in one domain that holds it."""
        found: dict[_Key, int] = {}
        for part in gang.parts:
            if id(part) not in self.row:
                continue
            for m, inside in enumerate(self.inside[self.row[id(part)]]):
                for size in self.sizes[m] if inside else ():
                    if amount := _slots_taken(part, size):
                        key = (depth, domain, m, size)
                        found[key] = found.get(key, 0) + amount
        return found

    def domains(self, gang: Gang) -> list[int]:
        """Return the domains that may hold the gang; none where it may be spread or there are too many to choose."""
        depth = gang.common_depth
        if not depth:
            return []
        possible = np.ones(self.tree.num_domains(depth), dtype=bool)
        for (_, _, m, size), amount in self.needs(gang, depth, 0).items():
            possible &= self._of(depth, m, size).max(axis=0) >= amount
        found = np.flatnonzero(possible).tolist()
        return found if len(found) <= MOST_MODES else []

    def resource(self, key: _Key) -> Resource:
        """Return the slots of a key over time as a resource."""
        depth, domain, m, size = key
        free = self._of(depth, m, size)[:, domain].tolist()
        most = max(free)
        busy: list[Busy] = []
        for i, units in enumerate(free):
            begin, end = self.times[i] - self.now, None if i + 1 == len(free) else self.times[i + 1] - self.now
            if units < most and busy and busy[-1].end == begin and busy[-1].amount == most - units:
                busy[-1] = Busy(busy[-1].start, end, most - units)
            elif units < most:
                busy.append(Busy(begin, end, most - units))
        return Resource(_name(self.tree, key), most, tuple(busy))

    def _of(self, depth: int, m: int, size: int) -> Ints:
        """Return the free slots per time and domain, (T, D)."""
        key = (depth, m, size)
        if key not in self._slots:
            slots = self.milli if size == _SHARES else self.whole // size
            per_node = np.where(self.masks[m], slots, 0)
            self._slots[key] = np.add.reduceat(per_node, self.tree.start[depth], axis=1)
        return self._slots[key]


def _free(
    space: TopologicalSpace, tickets: Sequence[Ticket], now: int, throughout: bool
) -> tuple[list[int], list[tuple[Ints, Ints]]]:
    """Return times from `now` on, and from each on what is free: whole GPUs and thousandths of GPUs per node."""
    times = [now, *space.times(now)]
    if cut := len(times) > MOST_TIMES:
        times = times[:: -(-len(times) // MOST_TIMES)] if throughout else times[:MOST_TIMES]
    found = []
    for i, begin in enumerate(times):
        last = i + 1 == len(times)
        start = FOREVER - 2 if last else begin
        end = times[i + 1] if throughout and not last else start + 1
        free = space.free(start, end)
        closed = np.zeros(len(space.cluster.nodes), dtype=bool)
        for reservation in space.reservations:
            until = FOREVER if reservation.end_s is None else reservation.end_s
            mine = any(job.name in reservation.jobs for ticket in tickets for job in _gang(ticket).jobs)
            if not mine and reservation.start_s < end and start < until:
                closed[[space.cluster.tree.index[name] for name in reservation.nodes]] = True
        if last and cut and not throughout:
            free, closed = Free(space.cluster, empty=True), np.zeros_like(closed)
        milli = free.spare * 1000 // space.cluster.unit
        found.append((np.where(closed, 0, free.whole), np.where(closed, 0, milli)))
    return times, found


def _slots_taken(part: Part, size: int) -> int:
    """Return how many slots of a size the part takes at least; 0 for shares by memory, which are not counted."""
    if size == _SHARES:
        return part.least * (1000 * part.shape.gpus or part.shape.milli)
    return part.least * (part.shape.gpus // size)


def _is_subset(mask: Mask, of: Mask) -> bool:
    return not bool((mask & ~of).any())


def _name(tree: Tree, key: _Key) -> str:
    depth, domain, m, size = key
    where = "/".join(tree.paths[depth][domain]) if 0 < depth < tree.node_depth else f"set {m}"
    return f"shares in {where}" if size == _SHARES else f"slots of {size} GPUs in {where}"
