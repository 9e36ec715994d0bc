"""Counting bounds: what no placement can beat, from capacities alone and without any solver.

Every bound is one of its objective level *given the values reached on the levels before it*, as lexicographic levels
are read: the GPUs admitted per class are fixed when traffic is bounded, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

import numpy as np

from kant_opt.schema import Job, TermName
from kant_opt.view import Free, Gang, Ints, Mask, Part, capacities, domain_counts

_BITS = 20_000_000
"""Largest table of amounts that a subset sum may use."""


@dataclass(frozen=True)
class Bound:
    """A proven value and how it was proven."""

    value: int
    source: str = "counting"


@dataclass(frozen=True)
class Facts:
    """What is known before bounding.

    `free`: the room before anything was placed. `possible`: gangs not proven impossible on it, alone. `admitted`:
    those placed. `values`: level name -> value reached.
    """

    free: Free
    possible: Sequence[Gang]
    admitted: Sequence[Gang]
    values: dict[str, int]
    traffic_weights: Sequence[int]
    """Per depth, 0 at depth 0 and at the node."""
    known: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Least traffic of jobs of one kind, found once."""

    @cached_property
    def settled(self) -> bool:
        """Whether the admitted gangs are the only set that reaches these values: of each class all or none."""
        return all(
            not value or value == sum(worth for worth, _ in self.by_class.get(int(name[9:-1]), []))
            for name, value in self.values.items()
            if name.startswith("admitted[")
        )

    @cached_property
    def open_nodes(self) -> Mask:
        """The nodes that any possible gang may use, (N,)."""
        nodes = np.zeros(len(self.free.cluster.nodes), dtype=bool)
        for gang in self.possible:
            for part in gang.parts:
                nodes |= part.eligible
        return nodes

    @cached_property
    def by_class(self) -> dict[int, list[tuple[int, Gang]]]:
        """Per priority class the gangs with jobs of it, each with what these add to the term `admitted`."""
        classes: dict[int, list[tuple[int, Gang]]] = {}
        for gang in self.possible:
            worth: dict[int, int] = {}
            for part in gang.parts:
                worth[part.job.priority] = worth.get(part.job.priority, 0) + part.target * part.worth
            for priority, amount in worth.items():
                if amount:
                    classes.setdefault(priority, []).append((amount, gang))
        return classes


def counting_bounds(facts: Facts, order: Sequence[TermName]) -> dict[str, Bound]:
    """Return a bound per objective level, by the level's name. Costs about one pass over the nodes per gang shape."""
    found: dict[str, Bound] = {}
    for term in order:
        if term == "admitted":
            found |= _admitted(facts)
        elif term == "traffic":
            found["traffic"] = _traffic(facts, fixed="admitted" in order[: order.index(term)])
        elif term == "broken_nodes":
            found["broken_nodes"] = _broken_nodes(facts, fixed="admitted" in order[: order.index(term)])
        elif term == "broken_leaves":
            found["broken_leaves"] = _broken_leaves(facts)
    return found


# -- admitted --------------------------------------------------------------------------------------


def _admitted(facts: Facts) -> dict[str, Bound]:
    """Per class: the largest sum of its gangs' worths that the GPUs left by the classes above could hold."""
    found: dict[str, Bound] = {}
    step, taken, free_of_gpus = 0, 0, 0
    rounded = False  # shares in MiB are rounded up, so that together they may exceed the GPU
    for name in (n for n in facts.values if n.startswith("admitted[")):
        priority = int(name[9:-1])
        gangs = facts.by_class.get(priority, [])
        for part in (part for _, gang in gangs for part in gang.parts if part.job.priority == priority):
            step = gcd(step, part.gpu_milli)
            rounded = rounded or part.shape.mib > 0
            free_of_gpus += part.target * (part.worth - part.gpu_milli)  # worth something, takes no GPU
        room = usable_milli(facts.free, step, facts.open_nodes) + free_of_gpus - taken
        found[name] = Bound(sum(worth for worth, _ in gangs) if rounded else _largest_sum(gangs, room))
        taken += facts.values[name]
    return found


def usable_milli(free: Free, step: int, nodes: Mask) -> int:
    """Return GPU thousandths of `nodes` that pods of sizes divisible by `step` could use at most."""
    if step and step % 1000 == 0:
        return int((free.whole[nodes] // (step // 1000)).sum()) * step
    return int((free.spare[nodes] * 1000 // free.cluster.unit[nodes]).sum())


def _largest_sum(gangs: Sequence[tuple[int, Gang]], room: int) -> int:
    """Return the largest sum of gang sizes of at most `room`; elastic gangs take any size up to their largest."""
    sizes = [worth for worth, _ in gangs]
    if sum(sizes) <= room:
        return sum(sizes)
    elastic = any(p.least < p.target for _, gang in gangs for p in gang.parts)
    step = gcd(*sizes)
    if elastic or room < 0 or room // step * len(sizes) > 5 * _BITS:
        return max(0, room)
    reach = 1
    for size in sizes:
        reach |= reach << size // step
        reach &= (1 << room // step + 1) - 1
    return (reach.bit_length() - 1) * step


# -- traffic ---------------------------------------------------------------------------------------


def _traffic(facts: Facts, *, fixed: bool) -> Bound:
    """Each gang's least traffic if it were alone, summed over the gangs that are admitted.

    Where other sets of gangs reach the same admitted GPUs, the cheapest such set counts.
    """
    if not fixed:
        return Bound(0, "trivial")
    if facts.settled:
        return Bound(sum(least_traffic(facts, g) for g in facts.admitted))
    return Bound(cheapest_sets(facts, lambda gang: least_traffic(facts, gang)) or 0)


def cheapest_sets(facts: Facts, cost_of: Callable[[Gang], int]) -> int | None:
    """Return the least cost of any set of possible gangs that reaches the GPUs admitted of every class.

    None where sizes are elastic or the sums too many to tell; costs are not negative.
    """
    found = [
        _cheapest_set(facts, int(name[9:-1]), value, cost_of)
        for name, value in facts.values.items()
        if name.startswith("admitted[")
    ]
    return None if None in found else sum(cost for cost in found if cost is not None)


def _cheapest_set(facts: Facts, priority: int, value: int, cost_of: Callable[[Gang], int]) -> int | None:
    """Return the least cost of any set of gangs whose jobs of one class add up to exactly `value`.

    A gang with jobs of several classes pays in the highest one only.
    """
    gangs = facts.by_class.get(priority, [])
    elastic = any(p.least < p.target or p.shape.mib for _, gang in gangs for p in gang.parts)
    step = gcd(value, *(worth for worth, _ in gangs))
    if value == 0:
        return 0
    if elastic or value // step * len(gangs) > _BITS:
        return None
    far = np.int64(1 << 60)
    cost = np.full(value // step + 1, far)
    cost[0] = 0
    for worth, gang in gangs:
        size, least = worth // step, cost_of(gang) if gang.priority == priority else 0
        if size < len(cost):
            cost[size:] = np.minimum(cost[size:], cost[:-size] + least)
    return int(cost[-1]) if cost[-1] < far else None


def least_traffic(facts: Facts, gang: Gang) -> int:
    """Return a lower bound on a gang's traffic: per job and level the fewest domains by largest room."""
    total = 0
    for job in gang.jobs:
        parts = [p for p in gang.parts if p.job is job]
        if job.communication == "none" or not any(p.least for p in parts):
            continue
        alike = (job.communication, *((p.shape, id(p.eligible), p.least, p.target, p.slices, p.spread) for p in parts))
        if any(p.living for p in parts):
            total += _least_traffic(facts, job, parts)
        else:
            if alike not in facts.known:
                facts.known[alike] = _least_traffic(facts, job, parts)
            total += facts.known[alike]
    return total


def _least_traffic(facts: Facts, job: Job, parts: list[Part]) -> int:
    total = 0
    rooms = [capacities(facts.free, p) for p in parts]
    for depth, weight in enumerate(facts.traffic_weights):
        if not weight:
            continue
        alive = np.sum([domain_counts(facts.free.cluster.tree, p.living, depth) for p in parts], axis=0)
        room = np.sum([r[depth] for r in rooms], axis=0)
        count = sum(p.least for p in parts)
        if job.communication == "all_to_all":
            total += weight * _fewest_crossing_pairs(room + alive, count + int(alive.sum()))
            continue
        domains = _fewest_domains(room, alive, count)
        for part, part_room in zip(parts, rooms, strict=True):
            domains = max(domains, _fewest_domains(part_room[depth], alive, part.least))
        total += weight * (domains - 1)
    return total


def _fewest_domains(room: Ints, alive: Ints, count: int) -> int:
    """Return the fewest domains that hold `count` new pods and the living ones; the living ones' domains are given."""
    here = alive > 0
    used = int(here.sum())
    rest = count - int(room[here].sum())
    if rest <= 0:
        return max(1, used)
    others = np.cumsum(np.sort(room[~here])[::-1])
    return used + int(np.searchsorted(others, rest)) + 1


def _fewest_crossing_pairs(room: Ints, count: int) -> int:
    """Return the fewest pairs in different domains: filling the largest first keeps the most pairs together."""
    together, left = 0, count
    for size in np.sort(room)[::-1].tolist():
        taken = min(size, left)
        together += taken * (taken - 1) // 2
        left -= taken
        if not left:
            break
    return max(0, count * (count - 1) // 2 - together)


# -- fragmentation ---------------------------------------------------------------------------------


def _broken_nodes(facts: Facts, *, fixed: bool) -> Bound:
    """Broken nodes now, less the most that the pods at hand could fill up; at least one where GPUs in use do not add
    up to whole nodes of one size."""
    free = facts.free
    cluster = free.cluster
    broken = free.is_broken()
    spare = np.sort(free.spare[broken] * 1000 // cluster.unit[broken])
    largest = int(spare[-1]) if len(spare) else 0
    small = sum(
        part.target * part.gpu_milli
        for gang in facts.possible
        for part in gang.parts
        if part.gpu_milli <= largest or part.shape.mib  # counted as up to a whole GPU each
    )
    filled = int(np.searchsorted(np.cumsum(spare), small, side="right"))
    least = len(spare) - filled
    counted = cluster.schedulable & (free.capacity > 0)
    sizes = np.unique(free.capacity[counted] // cluster.unit[counted])
    exact = (
        fixed
        and all(p.gpu_milli and not p.shape.mib for g in facts.possible for p in g.parts)
        and (cluster.unit == 1000).all()
    )
    if exact and len(sizes) == 1:
        in_use = int((free.capacity - free.spare)[counted].sum())
        in_use += sum(v for n, v in facts.values.items() if n.startswith("admitted["))
        least = max(least, int(in_use % (1000 * int(sizes[0])) > 0))
    return Bound(least)


def _broken_leaves(facts: Facts) -> Bound:
    """Broken leaves now, less the most that could be filled if every new pod used another fresh node."""
    free = facts.free
    tree, cluster = free.cluster.tree, free.cluster
    if tree.leaf_depth == 0:
        return Bound(0)
    counted = cluster.schedulable & (free.capacity > 0)
    nodes = tree.sums(counted.astype(np.int64), tree.leaf_depth)
    used = tree.sums((counted & free.is_used()).astype(np.int64), tree.leaf_depth)
    broken = (used > 0) & (used < nodes)
    pods = sum(part.target for gang in facts.possible for part in gang.parts if part.shape.uses_gpu)
    filled = int(np.searchsorted(np.cumsum(np.sort((nodes - used)[broken])), pods, side="right"))
    return Bound(int(broken.sum()) - filled)
