"""The bound of a weighted objective: what gangs gain at most, each for itself, within the GPUs that there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from kant_opt.bounds.counting import counting_bounds, least_traffic, usable_milli
from kant_opt.bounds.facts import Bound, Facts
from kant_opt.schema import TermName
from kant_opt.view import Gang


def weighted_bound(
    facts: Facts,
    weights: Mapping[TermName, int],
    price: Callable[[Gang], int] | None = None,
    rent: int = 0,
    scale: int = 1,
) -> Bound:
    """Return a value that no placement's weighted sum is below, whatever gangs it places.

    Placing a gang changes the sum by no less than its traffic's price less its worth; one that costs more than it is
    worth stays out. Worths add up to no more than the GPUs there are, so the gains are those of a knapsack whose last
    item may be cut. Broken nodes and leaves have bounds of their own that hold for any gangs.

    `price` and `rent` (both in 1 / `scale`): the traffic of any gangs is at least the sum of their prices less `rent`;
    without them every gang pays the least traffic that it has alone.
    """
    worth, wire = weights.get("admitted", 0), weights.get("traffic", 0)
    alone: Callable[[Gang], int] = price or (lambda gang: least_traffic(facts, gang) if wire else 0)
    gains = []
    for gang in facts.possible:
        size = sum(part.target * part.worth for part in gang.parts)
        gain = scale * worth * size - wire * alone(gang)
        if size and gain > 0:
            gains.append((gain, size))
    counted: tuple[TermName, ...] = ("broken_nodes", "broken_leaves")
    fragments = counting_bounds(facts, counted)
    broken = sum(weights.get(term, 0) * fragments[term].value for term in counted)
    best = _knapsack(gains, _room(facts)) + wire * rent
    return Bound(broken - best // scale, "counting" if price is None else "rents")


def _knapsack(gains: list[tuple[int, int]], room: int | None) -> int:
    """Return the most that (gain, size) add up to in the room, the last one cut to fit and rounded down."""
    total, left = 0, sum(size for _, size in gains) if room is None else room
    for gain, size in sorted(gains, key=lambda item: Fraction(-item[0], item[1])):
        if size > left:
            return total + gain * left // size
        total, left = total + gain, left - size
    return total


def _room(facts: Facts) -> int | None:
    """Return the most that all pods placed can be worth; None where rounding allows more than the GPUs there are."""
    parts = [part for gang in facts.possible for part in gang.parts]
    if any(part.shape.mib for part in parts):
        return None
    free_of_gpus = sum(part.target * (part.worth - part.gpu_milli) for part in parts)
    whole = all(part.gpu_milli % 1000 == 0 for part in parts)
    return usable_milli(facts.free, 1000 if whole else 1, facts.open_nodes) + free_of_gpus
