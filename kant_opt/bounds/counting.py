"""Counting bounds: what no placement can beat, from capacities alone and without any solver.

Every bound is one of its objective level *given the values reached on the levels before it*, as lexicographic levels
are read: the GPUs admitted per class are fixed when traffic is bounded, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from math import gcd
from typing import NamedTuple

import numpy as np

from kant_opt.bounds.facts import Bound, Facts
from kant_opt.bounds.fragmentation import broken_leaves_bound, broken_nodes_bound
from kant_opt.bounds.sets import cheapest_sets, halved
from kant_opt.schema import Job, TermName
from kant_opt.view import Free, Gang, Ints, Mask, Part, capacities, domain_counts

_BITS = 20_000_000
"""Largest table of amounts that a subset sum may use."""
_MOST_MASKS = 16
"""Sets of nodes beyond which pods are not looked at set by set."""


def counting_bounds(facts: Facts, order: Sequence[TermName]) -> dict[str, Bound]:
    """Return a bound per objective level, by the level's name. Costs about one pass over the nodes per gang shape."""
    found: dict[str, Bound] = {}
    for term in order:
        before = order[: order.index(term)]
        if term == "admitted":
            found |= _admitted(facts)
        elif term == "traffic":
            found["traffic"] = _traffic(facts, fixed="admitted" in before)
        elif term == "broken_nodes":
            found["broken_nodes"] = broken_nodes_bound(facts, fixed="admitted" in before)
        elif term == "broken_leaves":
            found["broken_leaves"] = broken_leaves_bound(facts, fixed={"admitted", "broken_nodes"} <= set(before))
    return found


# -- admitted --------------------------------------------------------------------------------------


def _admitted(facts: Facts) -> dict[str, Bound]:
    """Per class, the least that any family of gangs allows: its own sums of whole gangs that the GPUs it could use
    hold, less what the family needs for the values of the classes above, and all gangs outside it.
    """
    names = [name for name in facts.values if name.startswith("admitted[")]
    families, fresh = list[_Family](), _families(facts)
    found: dict[str, Bound] = {}
    for i, name in enumerate(names):
        most = None
        for family in chain(families, _kept(fresh, families)):
            here = family.most_admitted(names[: i + 1])
            most = here if most is None else min(most, here)
            if most <= facts.values[name]:
                break
        assert most is not None
        found[name] = Bound(most)
    return found


def _kept(fresh: Iterator[_Family], families: list[_Family]) -> Iterator[_Family]:
    """Yield what was not made yet, and keep it for the next class."""
    for family in fresh:
        families.append(family)
        yield family


class _Family:
    """Gangs whose pods take multiples of some amount and stay on some nodes; `room`: GPU thousandths they could use."""

    def __init__(self, facts: Facts, gangs: set[Gang], room: int) -> None:
        self.facts, self.gangs, self.room = facts, gangs, room
        self.shares: dict[str, _Share] = {}

    def most_admitted(self, names: Sequence[str]) -> int:
        """Return the most that the last of the classes `names`, highest first, can reach, given the others' values."""
        *above, last = names
        room = self.room
        for name in above:
            share = self._share(name)
            room += share.without_gpus - max(0, self.facts.values[name] - share.outside)
        share = self._share(last)
        return share.outside + _largest_sum(share.inside, room + share.without_gpus)

    def _share(self, name: str) -> _Share:
        """Return what the family is of one class; found once."""
        if name not in self.shares:
            priority = int(name[9:-1])
            gangs = self.facts.by_class.get(priority, [])
            inside = [(worth, gang) for worth, gang in gangs if gang in self.gangs]
            outside = sum(worth for worth, _ in gangs) - sum(worth for worth, _ in inside)
            self.shares[name] = _Share(inside, outside, sum(_worth_without_gpus(g, priority) for _, g in inside))
        return self.shares[name]


class _Share(NamedTuple):
    """The gangs of one class inside a family, the worth of those outside, and the worth of pods inside that take no
    GPU.
    """

    inside: list[tuple[int, Gang]]
    outside: int
    without_gpus: int


def _worth_without_gpus(gang: Gang, priority: int) -> int:
    return sum(p.target * (p.worth - p.gpu_milli) for p in gang.parts if p.job.priority == priority)


def _families(facts: Facts) -> Iterator[_Family]:
    """Yield families for the amounts and the sets of nodes that pods name, that of all gangs first.

    Shares in MiB are rounded up, so that together they may be worth more than the GPU: those gangs are in none.
    """
    masks = {id(part.eligible): part.eligible for gang in facts.possible for part in gang.parts}
    areas: list[tuple[Mask, set[int]]] = [(facts.open_nodes, set(masks))]
    if 1 < len(masks) <= _MOST_MASKS:
        areas += [(m, {key for key, mask in masks.items() if not (mask & ~m).any()}) for m in masks.values()]
    steps = _steps(facts)
    for nodes, within in areas:
        for step in steps:
            gangs = {gang for gang in facts.possible if all(_belongs(part, within, step) for part in gang.parts)}
            yield _Family(facts, gangs, usable_milli(facts.free, step, nodes))


def _belongs(part: Part, within: set[int], step: int) -> bool:
    if not part.gpu_milli:
        return True
    return id(part.eligible) in within and not part.shape.mib and part.gpu_milli % step == 0


def _steps(facts: Facts) -> list[int]:
    """Return amounts that families take multiples of: first what divides all pods, then what divides those of the
    highest classes, and pods' own whole GPUs.
    """
    steps, step = list[int](), 0
    sizes = set[int]()
    for priority in sorted(facts.by_class, reverse=True):
        amounts = {part.gpu_milli for _, gang in facts.by_class[priority] for part in gang.parts}
        step = gcd(step, *amounts)
        steps.append(step)
        sizes |= amounts
    own = sorted(size for size in sizes if size % 1000 == 0)
    return [step for step in dict.fromkeys([*reversed(steps), *own]) if step] or [1]


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
    step, lots = gcd(*sizes), [sum(lot) for n in Counter(sizes).items() for lot in halved(n[1] * [n[0]])]
    if elastic or room < 0 or room // step * len(lots) > 5 * _BITS:
        return max(0, room)
    reach = 1
    for lot in lots:
        reach |= reach << lot // step
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
    cheapest = cheapest_sets(facts, lambda gang: least_traffic(facts, gang))
    return Bound(0 if cheapest is None else cheapest.cost)


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
