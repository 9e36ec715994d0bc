"""The objective levels of an answer: its values beside the best bounds that anybody proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Literal

from kant_opt.backends import Answer, best_rents
from kant_opt.bounds import Bound, Facts, Market, cheapest_sets, counting_bounds, least_traffic, markets
from kant_opt.bounds.rents import SCALE
from kant_opt.engine.reasons import Explainer
from kant_opt.schema import Certificate, LevelValue, RentMarket, RentTable, TermName
from kant_opt.view import Cluster, Gang, Ints


def level_values(
    cluster: Cluster,
    answer: Answer,
    explainer: Explainer,
    values: Mapping[str, int],
    *,
    seconds: float | None,
    hurried: bool = False,
) -> tuple[tuple[LevelValue, ...], Certificate | None]:
    """Return every objective level with the best bound known, and the certificate of a bound by rents.

    `seconds` may be spent on a better traffic bound where counting does not reach the value; 0 for none, None for any.
    `hurried`: the deadline is past, so no gang is tried alone and bounds are the weaker for it.
    """
    objective = cluster.request.objective
    if objective.weights:
        return (_weighted(dict(objective.weights), values, answer),), None
    facts = Facts(
        free=explainer.before,
        possible=[gang for gang, _ in answer.taken]
        + [g for g, why in answer.failed if why == "limit" or hurried or not explainer.impossible_alone(g)],
        admitted=[g for g, _ in answer.taken],
        values=dict(values),
        traffic_weights=[0, *objective.weights_of(cluster.tree.levels[:-1]).values(), 0],
    )
    found = {name: [bound] for name, bound in counting_bounds(facts, objective.order).items()}
    for name, bound in answer.bounds.items():
        found.setdefault(name, []).append(bound)
    certificate = None
    order = objective.order
    fixed = "traffic" in order and "admitted" in order[: order.index("traffic")]
    if (
        fixed
        and seconds != 0
        and max((b.value for b in found.get("traffic", [])), default=values["traffic"]) < values["traffic"]
    ):
        bound, certificate = (_by_rents if facts.settled else _by_rents_of_any_set)(facts, seconds)
        found["traffic"].append(bound)
    levels = []
    for term in objective.order:
        for name in [n for n in values if n == term or n.startswith(f"{term}[")]:
            levels.append(_level(name, values[name], found.get(name, [])))
    return tuple(levels), certificate


def _level(name: str, value: int, bounds: Sequence[Bound]) -> LevelValue:
    sense: Literal["max", "min"] = "max" if name.startswith("admitted[") else "min"
    best = None
    if bounds:
        best = (min if sense == "max" else max)(bounds, key=lambda b: b.value)
    return LevelValue(
        name=name,
        sense=sense,
        value=value,
        bound=None if best is None else best.value,
        bound_source="" if best is None else best.source,
    )


def _weighted(weights: Mapping[TermName, int], values: Mapping[str, int], answer: Answer) -> LevelValue:
    total = 0
    for term, weight in weights.items():
        amount = sum(v for name, v in values.items() if name == term or name.startswith(f"{term}["))
        total += -weight * amount if term == "admitted" else weight * amount
    bound = answer.bounds.get("weighted")
    return _level("weighted", total, [] if bound is None else [bound])


def _by_rents(facts: Facts, seconds: float | None) -> tuple[Bound, Certificate | None]:
    """Return the traffic bound by the best rents of every market, other jobs counted, and its certificate."""
    total, sold = 0, []
    priced: set[str] = set()
    for market in markets(facts.free, facts.admitted, facts.traffic_weights):
        rents = best_rents(market, seconds)
        if rents is not None and (bound := market.bound(rents)) > 0:
            total += bound
            priced |= {job for job, _, _ in market.sizes}
            sold.append(_tables(market, rents))
    certificate = _certificate(sold, total) if sold else None
    others = [gang for gang in facts.admitted if priced.isdisjoint(job.name for job in gang.jobs)]
    return Bound(total + sum(least_traffic(facts, gang) for gang in others), "rents"), certificate


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


def _by_rents_of_any_set(facts: Facts, seconds: float | None) -> tuple[Bound, None]:
    """Return the traffic bound where other sets of gangs reach the same GPUs: what the cheapest pays less the rents."""
    placed = {job.name for gang in facts.admitted for job in gang.jobs}
    found = markets(facts.free, facts.possible, facts.traffic_weights)
    rents = best_rents(found[0], seconds, placed) if len(found) == 1 else None
    if rents is None:
        return Bound(0, "trivial"), None
    paid = found[0].paid(rents)

    def price(gang: Gang) -> int:
        if all(job.name in paid for job in gang.jobs):
            return sum(paid[job.name] for job in gang.jobs)
        return SCALE * least_traffic(facts, gang)

    least = cheapest_sets(facts, price)
    return Bound(0 if least is None else max(0, -(-(least - found[0].rent(rents)) // SCALE)), "rents"), None


def _tables(market: Market, rents: Sequence[Ints]) -> RentMarket:
    tree, depth = market.tree, market.tree.leaf_depth - 1
    tables = [
        RentTable(domain=tree.paths[depth][domain], rents=tuple(rents[kind].tolist()))
        for domain, kind in enumerate(market.kinds[depth].tolist())
        if market.room(depth, domain)
    ]
    return RentMarket(jobs=tuple(sorted(job for job, _, _ in market.sizes)), tables=tuple(tables))
