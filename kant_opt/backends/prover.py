"""The best bounds that are known of an answer's objective levels: by counting, and of traffic by rents.

Backends ask for them to know when to stop, the engine to say how good the answer is; see `bounds` for why they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from time import monotonic

from kant_opt.backends.arcflow import fewest_cuts
from kant_opt.backends.rents import Choice, Rents
from kant_opt.backends.solver import Stop
from kant_opt.bounds import Bound, Facts, Market, cheapest_sets, counting_bounds, least_traffic, markets, weighted_bound
from kant_opt.bounds.rents import SCALE
from kant_opt.schema import Certificate, RentMarket, RentTable, TermName
from kant_opt.view import Cluster, Free, Gang, Ints

_WORTH_A_SOLVER_S = 0.5
_NARROW = 2
"""Gap that whole numbers may close: they raise the bound of fractions by one or two."""


@dataclass(frozen=True)
class Proof:
    """Bounds by objective level, and what anybody may check the one by rents with."""

    bounds: dict[str, Bound] = field(default_factory=dict)
    certificate: Certificate | None = None


def find_proof(
    cluster: Cluster,
    before: Free,
    possible: Sequence[Gang],
    admitted: Sequence[Gang],
    values: Mapping[str, int],
    rents: Rents,
    seconds: float | None = None,
    *,
    whole: Stop | None = None,
) -> Proof:
    """Return a bound of every objective level that has one, given the values reached on the levels before it.

    `before` is the room without the answer, `possible` the gangs not proven impossible on it alone, `admitted` those
    placed, `values` the value reached of every level. `seconds` may be spent on finding rents where counting does not
    reach the traffic: 0 for none but those found before, None for any. Where rents do not reach it either, and `whole`
    is given, a solver looks for a bound in whole numbers (backends.arcflow), until `whole` asks it to stop.
    """
    end = None if seconds is None else monotonic() + seconds
    objective = cluster.request.objective
    facts = Facts(
        free=before,
        possible=possible,
        admitted=admitted,
        values=dict(values),
        traffic_weights=cluster.traffic_weights,
    )
    if objective.weights:
        return Proof({"weighted": _weighted(facts, objective.weights, values["weighted"], rents, seconds)})
    found = counting_bounds(facts, objective.order)
    order = objective.order
    if (
        (seconds == 0 and not rents)
        or "traffic" not in order
        or "admitted" not in order[: order.index("traffic")]
        or found["traffic"].value >= values["traffic"]
    ):
        return Proof(found)
    bound, certificate = (_by_rents if facts.settled else _by_rents_of_any_set)(facts, rents, seconds)
    gap = values["traffic"] - max(bound.value, found["traffic"].value)
    if whole is not None and 0 < gap <= max(_NARROW, values["traffic"] // 100):
        left = None if end is None else end - monotonic()
        better = _in_whole_numbers(facts, rents, values["traffic"], left, whole)
        if better.value > bound.value:
            bound, certificate = better, None
    if bound.value <= found["traffic"].value:
        return Proof(found)
    return Proof(found | {"traffic": bound}, certificate)


def _in_whole_numbers(facts: Facts, rents: Rents, value: int, seconds: float | None, stop: Stop) -> Bound:
    """Return the traffic bound by arc-flows, 0 where there is none: of the only market, other jobs counted."""
    settled = facts.settled
    found = markets(facts.free, facts.admitted if settled else facts.possible, facts.traffic_weights)
    if len(found) != 1 or (seconds is not None and seconds < _WORTH_A_SOLVER_S):
        return Bound(0, "trivial")
    beside = 0
    if settled:
        priced = {job for job, _, _ in found[0].sizes}
        others = [gang for gang in facts.admitted if priced.isdisjoint(job.name for job in gang.jobs)]
        beside = sum(least_traffic(facts, gang) for gang in others)
    cuts = fewest_cuts(found[0], value - beside, seconds, stop, None if settled else _choice(facts))
    return Bound(0, "trivial") if cuts is None else Bound(cuts + beside, "arc-flow")


def _by_rents(facts: Facts, rents: Rents, seconds: float | None) -> tuple[Bound, Certificate | None]:
    """Return the traffic bound by the best rents of every market, other jobs counted, and its certificate."""
    total, sold = 0, []
    priced: set[str] = set()
    for market in markets(facts.free, facts.admitted, facts.traffic_weights):
        tables = rents.of(market, seconds)
        if tables is not None and (bound := market.bound(tables)) > 0:
            total += bound
            priced |= {job for job, _, _ in market.sizes}
            sold.append(_tables(market, tables))
    others = [gang for gang in facts.admitted if priced.isdisjoint(job.name for job in gang.jobs)]
    certificate = _certificate(sold, total) if sold else None
    return Bound(total + sum(least_traffic(facts, gang) for gang in others), "rents"), certificate


def _by_rents_of_any_set(facts: Facts, rents: Rents, seconds: float | None) -> tuple[Bound, None]:
    """Return the traffic bound where other sets of gangs reach the same GPUs: what the cheapest pays less the rents."""
    priced = _prices(facts, rents, seconds, _choice(facts))
    if priced is None:
        return Bound(0, "trivial"), None
    price, rent = priced
    least = cheapest_sets(facts, price)
    return Bound(0 if least is None else max(0, -(-(least.cost - rent) // SCALE)), "rents"), None


def _weighted(facts: Facts, weights: Mapping[TermName, int], value: int, rents: Rents, seconds: float | None) -> Bound:
    """Return the bound of a weighted sum: by counting, and by rents where that does not reach its value."""
    counted = weighted_bound(facts, weights)
    if counted.value >= value or not weights.get("traffic") or not weights.get("admitted"):
        return counted
    priced = _prices(facts, rents, seconds, None)
    if priced is None:
        return counted
    return max(counted, weighted_bound(facts, weights, *priced, SCALE), key=lambda bound: bound.value)


def _prices(
    facts: Facts, rents: Rents, seconds: float | None, choice: Choice | None
) -> tuple[Callable[[Gang], int], int] | None:
    """Return what every possible gang pays and the rent of all leaves, in 1 / SCALE: any set's traffic is at least the
    sum of its prices less the rent. None where there are no rents, or several markets to find them for.
    """
    found = markets(facts.free, facts.possible, facts.traffic_weights)
    tables = rents.of(found[0], seconds, choice) if len(found) == 1 else None
    if tables is None:
        return None
    paid = found[0].paid(tables)

    def price(gang: Gang) -> int:
        if all(job.name in paid for job in gang.jobs):
            return sum(paid[job.name] for job in gang.jobs)
        return SCALE * least_traffic(facts, gang)

    return price, found[0].rent(tables)


def _choice(facts: Facts) -> Choice:
    amounts = {int(name[9:-1]): value for name, value in facts.values.items() if name.startswith("admitted[")}
    worths: dict[str, tuple[int, int]] = {}
    for part in (part for gang in facts.possible for part in gang.parts):
        worth = worths.get(part.job.name, (0, 0))[1] + part.target * part.worth
        worths[part.job.name] = (part.job.priority, worth)
    return Choice(worths, amounts)


def _certificate(sold: list[RentMarket], bound: int) -> Certificate:
    """Return the certificate in the largest unit of which all rents are whole numbers."""
    unit = gcd(SCALE, *(rent for market in sold for table in market.tables for rent in table.rents))
    markets = tuple(
        RentMarket(
            jobs=market.jobs,
            tables=tuple(RentTable(domain=t.domain, rents=tuple(r // unit for r in t.rents)) for t in market.tables),
        )
        for market in sold
    )
    return Certificate(scale=SCALE // unit, markets=markets, bound=bound)


def _tables(market: Market, rents: Sequence[Ints]) -> RentMarket:
    tree, depth = market.tree, market.tree.leaf_depth - 1
    tables = [
        RentTable(domain=tree.paths[depth][domain], rents=tuple(rents[kind].tolist()))
        for domain, kind in enumerate(market.kinds[depth].tolist())
        if market.room(depth, domain)
    ]
    return RentMarket(jobs=tuple(sorted(job for job, _, _ in market.sizes)), tables=tuple(tables))
