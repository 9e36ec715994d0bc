"""Bounds of fragmentation: how many broken nodes and leaves are left at least, by counting what fills a gap."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

import numpy as np

from kant_opt.bounds.facts import Bound, Facts
from kant_opt.view import Ints, Part

_MOST_STEPS = 50_000
"""Leaves times broken leaves beyond which sums of leaves are not looked at."""


def broken_nodes_bound(facts: Facts, *, fixed: bool) -> Bound:
    """Return the broken nodes now, less the most that the pods at hand could fill up; at least one where GPUs in use do
    not add up to whole nodes of one size.

    A gap of s is filled by pods that add up to s, and for any g those whose size is no multiple of g bring at least
    s mod g of it. So for every g the gaps filled have residues that add up to no more than such pods have in all: with
    pods of 1, 2 and 4 GPUs, no more gaps of odd size are filled than there are pods of 1. `fixed`: the GPUs admitted.
    """
    free, cluster = facts.free, facts.free.cluster
    broken = free.is_broken()
    gaps = free.spare[broken] * 1000 // cluster.unit[broken]
    exact = cluster.unit[broken] == 1000
    largest = int(gaps.max(initial=0))
    gangs = facts.admitted if fixed and facts.settled else facts.possible
    reaching = {id(p.eligible): bool((p.eligible & broken).any()) for gang in gangs for p in gang.parts}
    parts = [
        p
        for gang in gangs
        for p in gang.parts
        if reaching[id(p.eligible)] and p.gpu_milli and (p.gpu_milli <= largest or p.shape.mib)
    ]
    admitted = facts.admitted_milli if fixed else None
    steps = {largest + 1} | {p.gpu_milli for p in parts if not p.shape.mib}
    filled = min(
        _most_filled(np.where(exact, gaps % step, 0) if step <= largest else gaps, _brought(parts, step, admitted))
        for step in steps
    )
    return Bound(max(len(gaps) - filled, _one_at_least(facts, admitted)))


def _brought(parts: Iterable[Part], step: int, admitted: int | None) -> int:
    """Return the GPU thousandths of pods whose size is no multiple of `step`; MiB count as one GPU each."""
    brought = sum(part.target * part.gpu_milli for part in parts if part.gpu_milli % step or part.shape.mib)
    return brought if admitted is None else min(brought, admitted)


def _most_filled(residues: Ints, brought: int) -> int:
    """Return how many gaps there are at most whose residues add up to no more than what is brought."""
    return int(np.searchsorted(np.cumsum(np.sort(residues)), brought, side="right"))


def _one_at_least(facts: Facts, admitted: int | None) -> int:
    """Return 1 where all nodes have one size and the GPUs in use in the end are no multiple of it, else 0."""
    size = _one_size(facts)
    if admitted is None or size is None:
        return 0
    return int((_in_use(facts) + admitted) % size > 0)


def _one_size(facts: Facts) -> int | None:
    """Return the GPU thousandths of every node that counts, None where they differ."""
    counted = _counted(facts)
    sizes = np.unique(facts.free.capacity[counted] * 1000 // facts.free.cluster.unit[counted])
    return int(sizes[0]) if len(sizes) == 1 else None


def _counted(facts: Facts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.asarray(facts.free.cluster.schedulable & (facts.free.capacity > 0))


def _in_use(facts: Facts) -> int:
    """Return the GPU thousandths in use before anything is placed, where GPUs are counted in thousandths."""
    counted = _counted(facts)
    return int((facts.free.capacity - facts.free.spare)[counted].sum())


# -- leaves ----------------------------------------------------------------------------------------


def broken_leaves_bound(facts: Facts, *, fixed: bool) -> Bound:
    """Return the least number of broken leaves among all ways to spread as many newly used nodes as there can be.

    A leaf with n nodes of which u are used takes n - u more and is full, or fewer and is broken, or none and stays
    empty if it was. It cannot become full where no possible gang may use one of the nodes. `fixed`: the GPUs admitted
    and the broken nodes, which between them tell the number of newly used nodes, often exactly.
    """
    free, tree = facts.free, facts.free.cluster.tree
    if tree.leaf_depth == 0:
        return Bound(0)
    counted = _counted(facts)
    unused = counted & ~free.is_used()
    nodes, empty, open_ = (
        tree.sums(mask.astype(np.int64), tree.leaf_depth) for mask in (counted, unused, unused & facts.open_nodes)
    )
    least, most = _newly_used(facts, fixed=fixed)
    most = min(most, int(open_.sum()))
    gaps = np.sort(empty[(empty > 0) & (empty < nodes)])
    mended = int(np.searchsorted(np.cumsum(np.where(gaps > 0, gaps, 0)), most, side="right"))
    simple = len(gaps) - mended
    value = facts.values.get("broken_leaves", simple)
    if value <= simple or len(nodes) * value > _MOST_STEPS or least > most:
        return Bound(simple)
    return Bound(max(simple, _fewest_broken(nodes, empty, open_, least, most, value)))


def _newly_used(facts: Facts, *, fixed: bool) -> tuple[int, int]:
    """Return the least and the most nodes that are in use in the end and were not before.

    In the end, used nodes of one size C have C x nodes GPUs, of which b broken nodes leave between b and b (C - 1)
    free, counted in the largest unit that all amounts are multiples of.
    """
    gangs = facts.admitted if fixed and facts.settled else facts.possible
    pods = sum(part.target for gang in gangs for part in gang.parts if part.shape.uses_gpu)
    size, admitted = _one_size(facts), facts.admitted_milli
    if not fixed or size is None or admitted is None:
        return 0, pods
    counted = _counted(facts)
    spare = facts.free.spare[counted]
    unit = gcd(size, *np.unique(spare).tolist(), *(part.gpu_milli for gang in facts.possible for part in gang.parts))
    broken, in_use = facts.values["broken_nodes"], _in_use(facts) + admitted
    before = int((counted & facts.free.is_used()).sum())
    least = -(-(in_use + broken * unit) // size) - before
    most = (in_use + broken * (size - unit)) // size - before
    return max(0, least), min(pods, most)


def _fewest_broken(nodes: Ints, empty: Ints, open_: Ints, least: int, most: int, value: int) -> int:
    """Return the fewest broken leaves with between `least` and `most` newly used nodes; `value` where no fewer do.

    `reach[b]` is a set of numbers of newly used nodes, as bits: those that leave b broken leaves among the leaves
    looked at so far.
    """
    inside = (1 << most + 1) - 1
    reach = [1] + [0] * (value - 1)
    for total, rest, room in zip(nodes.tolist(), empty.tolist(), open_.tolist(), strict=True):
        if not rest:
            continue
        for broken in range(value - 1, -1, -1):
            now = reach[broken]
            found = now if rest == total else 0  # stays empty
            if room == rest:
                found |= now << rest
            if broken:
                found |= _up_to(reach[broken - 1], min(room, rest - 1))
            reach[broken] = found & inside
    wanted = inside >> least << least
    return next((broken for broken, numbers in enumerate(reach) if numbers & wanted), value)


def _up_to(numbers: int, more: int) -> int:
    """Return all sums of one of the numbers and one of 0 .. more, as bits."""
    covered = 1
    while covered <= more:
        step = min(covered, more + 1 - covered)
        numbers |= numbers << step
        covered += step
    return numbers
