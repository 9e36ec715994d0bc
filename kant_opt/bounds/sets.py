"""Which set of gangs reaches the GPUs admitted at the least cost: a knapsack over amounts, one per priority class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd
from typing import NamedTuple, TypeVar

import numpy as np

from kant_opt.bounds.facts import Facts
from kant_opt.view import Gang

T = TypeVar("T")
_CELLS = 1_000_000_000
"""Largest table of (gangs alike, amount) that is filled, a bit each."""
_FAR = np.int64(1 << 60)


class GangSet(NamedTuple):
    """A set of gangs and what it costs."""

    cost: int
    gangs: list[Gang]


def cheapest_sets(facts: Facts, cost_of: Callable[[Gang], int]) -> GangSet | None:
    """Return a set of possible gangs that reaches the GPUs admitted of every class at the least cost.

    None where sizes are elastic, the sums too many to tell, or no set reaches them; costs are not negative. A gang with
    jobs of several classes pays in the highest one only; that the set has it in all of them is not seen to.
    """
    total, gangs = 0, dict[int, Gang]()
    for name, value in facts.values.items():
        if name.startswith("admitted["):
            found = _cheapest_set(facts, int(name[9:-1]), value, cost_of)
            if found is None:
                return None
            total += found.cost
            gangs |= {id(gang): gang for gang in found.gangs}
    return GangSet(total, list(gangs.values()))


def _cheapest_set(facts: Facts, priority: int, value: int, cost_of: Callable[[Gang], int]) -> GangSet | None:
    gangs = facts.by_class.get(priority, [])
    if value == 0:
        return GangSet(0, [])
    if any(p.least < p.target or p.shape.mib for _, gang in gangs for p in gang.parts):
        return None
    alike: dict[tuple[int, int], list[Gang]] = {}
    for worth, gang in gangs:
        alike.setdefault((worth, cost_of(gang) if gang.priority == priority else 0), []).append(gang)
    step = gcd(value, *(worth for worth, _ in alike))
    lots = [
        (size // step * len(some), cost * len(some), some)
        for (size, cost), all_ in alike.items()
        for some in halved(all_)
    ]
    if value // step * len(lots) > _CELLS:
        return None
    return _knapsack(lots, value // step)


def halved(alike: Sequence[T]) -> Iterator[Sequence[T]]:
    """Deal what is alike out into lots of 1, 2, 4, ... and a rest: some of the lots make up any number of it."""
    start, size = 0, 1
    while start < len(alike):
        yield alike[start : start + size]
        start, size = start + size, 2 * size


def _knapsack(lots: Sequence[tuple[int, int, Sequence[Gang]]], amount: int) -> GangSet | None:
    """Return the cheapest lots, each (size, cost, gangs), whose sizes add up to the amount."""
    cost = np.full(amount + 1, _FAR)
    cost[0] = 0
    taken = []
    for size, price, _ in lots:
        better = np.zeros(amount + 1, dtype=bool)
        if size <= amount:
            with_it = cost[: amount + 1 - size] + price
            better[size:] = with_it < cost[size:]
            cost[size:] = np.where(better[size:], with_it, cost[size:])
        taken.append(np.packbits(better))
    if cost[amount] >= _FAR:
        return None
    left, gangs = amount, list[Gang]()
    for (size, _, some), bits in zip(reversed(lots), reversed(taken), strict=True):
        if bits[left >> 3] >> (7 - (left & 7)) & 1:
            gangs.extend(some)
            left -= size
    return GangSet(int(cost[amount]), gangs)
