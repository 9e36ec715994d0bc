"""The rents that give the best traffic bound, found by a linear program; bounds.rents says what rents prove."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from math import gcd
from typing import NamedTuple

import numpy as np

from kant_opt.backends.lp import Row, maximise
from kant_opt.bounds.rents import SCALE, Market
from kant_opt.view import Ints

log = logging.getLogger("kant_opt")

MOST_ROWS = 40_000
"""Rows beyond which all leaves share one table of rents: the bound may be weaker, but comes within a second or two."""
_HIGHEST = 100_000
_LONGEST_S = 20.0


class Choice(NamedTuple):
    """Jobs of which any set may be placed whose worths add up to the amount of each priority class.

    `worths[job]` is (class, worth); jobs that are not in the market have no traffic.
    """

    worths: Mapping[str, tuple[int, int]]
    amounts: Mapping[int, int]

    @property
    def key(self) -> object:
        """The same for equal choices."""
        return tuple(sorted(self.worths.items())), tuple(sorted(self.amounts.items()))


class Rents:
    """The best rents of the markets of one request, each market's found once."""

    def __init__(self) -> None:
        self._found: dict[object, list[Ints] | None] = {}

    def of(self, market: Market, seconds: float | None = None, choice: Choice | None = None) -> list[Ints] | None:
        """Return `best_rents` of the market, found now or before; with 0 `seconds` only those found before."""
        sold = tuple(sorted((size, scope) for _, size, scope in market.sizes))
        key = (sold, market.free.tobytes(), tuple(market.weights), choice and choice.key)
        if key not in self._found and seconds != 0:
            self._found[key] = best_rents(market, seconds, choice)
        return self._found.get(key)

    def __bool__(self) -> bool:
        """Whether any were looked for."""
        return bool(self._found)


def best_rents(market: Market, seconds: float | None = None, choice: Choice | None = None) -> list[Ints] | None:
    """Return rents per kind of the leaves' parents, in 1 / SCALE, best for `Market.bound`, or with a choice for the
    cheapest set of jobs.

    None where HiGHS is not installed or fails, the program is too large even so, or the time is up (20 s where none
    is given).
    """
    if find_spec("highspy") is None:
        return None
    kinds = [kind for kind, _ in market.one_of_each(market.tree.leaf_depth - 1)]
    pooled = _num_rows(market, len(kinds)) > MOST_ROWS
    if pooled and _num_rows(market, 1) > 10 * MOST_ROWS:
        return None
    program = _Program(market, choice, pooled=pooled)
    try:
        values = maximise(program.objective, program.rows, _HIGHEST, _LONGEST_S if seconds is None else seconds)
    except Exception:  # a solver that fails costs its bound, never the answer
        log.warning("no bound by rents", exc_info=True)
        return None
    if values is None:
        return None
    tables = [program.rents[0 if pooled else kind] for kind in kinds]
    return [np.rint(np.array([0.0, *(values[i] for i in table[1:])]) * SCALE).astype(np.int64) for table in tables]


def arcs(market: Market, choice: Choice | None = None) -> tuple[list[int], list[Row]]:
    """Return the program of the best rents, transposed an arc-flow program: what each balance has to reach at least,
    and per arc its balances with their coefficients, and its cost.
    """
    program = _Program(market, choice, pooled=False)
    return program.objective, program.rows


def _num_rows(market: Market, kinds: int) -> int:
    leaf = int(market.free.max(initial=0))
    return kinds * (leaf * leaf // 2 + leaf * market.longest) + market.longest**2 // 4


class _Program:
    """Maximise prices paid less rents; variables 0 .. are rents and prices, index -1 stands for "no nodes: 0".

    `pooled`: on every depth the roomiest domain stands for all, and all leaves pay by one table. With a choice the
    prices paid are those of the cheapest set, by the dual of a knapsack: a worth of one is paid alike in all of a
    class, less what the jobs would save that pay less by it.
    """

    def __init__(self, market: Market, choice: Choice | None, *, pooled: bool) -> None:
        self.market, self.pooled, self.choice = market, pooled, choice
        self.paid: dict[tuple[int, int], int] = {}
        self.objective: list[int] = []
        self.rows: list[Row] = []
        self.rents: dict[int, list[int]] = {}
        bottom = market.tree.leaf_depth - 1
        prices: dict[int, list[int]] = {}
        for depth in range(bottom, -1, -1):
            below, prices = prices, {}
            for kind, domain in self._domains(depth):
                if depth == bottom:
                    prices[kind] = self._parent_of_leaves(kind, domain)
                else:
                    children = np.unique(market.kinds[depth + 1][market.tree.children(depth, domain)]).tolist()
                    offers = list(below.values()) if pooled else [below[k] for k in children]
                    prices[kind] = self._outer(offers, depth, domain)
            self._sell(depth, list(prices.values()))
        if choice is not None:
            self._choose(choice)

    def _sold(self, scope: int) -> Iterator[tuple[int, int]]:
        """Yield (size, number that surely is paid for) of the jobs of a scope."""
        sizes = Counter(size for _, size, at in self.market.sizes if at == scope)
        yield from ((size, 0 if self.choice else number) for size, number in sizes.items())

    def _choose(self, choice: Choice) -> None:
        step = gcd(*choice.amounts.values(), *(worth for _, worth in choice.worths.values())) or 1
        each = {priority: self._var(amount // step) for priority, amount in choice.amounts.items()}
        at = {job: (size, scope) for job, size, scope in self.market.sizes}
        alike = Counter((*worth, at.get(job)) for job, worth in choice.worths.items())
        for (priority, worth, sold), number in alike.items():
            saved = self._var(-number)
            paid = [(self.paid[sold], -1)] if sold in self.paid else []
            self._row([(each[priority], worth // step), (saved, -1), *paid], 0)

    def _domains(self, depth: int) -> list[tuple[int, int]]:
        domains = list(self.market.one_of_each(depth))
        if not self.pooled:
            return domains
        return [(0, max((self.market.room(depth, domain), -domain) for _, domain in domains)[1] * -1)]

    def _var(self, worth: int = 0) -> int:
        self.objective.append(worth)
        return len(self.objective) - 1

    def _row(self, terms: list[tuple[int, int]], rhs: int) -> None:
        self.rows.append((tuple(terms), rhs))

    def _parent_of_leaves(self, kind: int, domain: int) -> list[int]:
        market = self.market
        depth = market.tree.leaf_depth - 1
        free = market.free if self.pooled else market.free[market.tree.children(depth, domain)]
        alike = 1 if self.pooled else int((market.kinds[depth] == kind).sum())
        count = Counter(free.tolist())
        most = int(free.max(initial=0))
        rents = [-1, *(self._var(-alike * count[x]) for x in range(1, most + 1))]
        self.rents[kind] = rents
        prices = self._prices(depth, domain)
        for x in range(2, most + 1):
            self._row([(rents[x - 1], 1), (rents[x], -1)], 0)
        for v in range(1, min(most, len(prices) - 1) + 1):
            self._below_rents(prices[v], v, rents)
        self._cut(prices, most, market.cut_cost(depth))
        for size, number in self._sold(depth + 1):  # held by one leaf
            if size <= most:
                if (size, depth + 1) not in self.paid:
                    self.paid[size, depth + 1] = self._var(number)
                self._below_rents(self.paid[size, depth + 1], size, rents)
        return prices

    def _outer(self, children: Sequence[list[int]], depth: int, domain: int) -> list[int]:
        prices = self._prices(depth, domain)
        for child in children:
            for v in range(1, min(len(prices), len(child))):
                self._row([(prices[v], 1), (child[v], -1)], 0)
        self._cut(prices, max(map(len, children)) - 1, self.market.cut_cost(depth))
        return prices

    def _prices(self, depth: int, domain: int) -> list[int]:
        return [-1, *(self._var() for _ in range(min(self.market.longest, self.market.room(depth, domain))))]

    def _below_rents(self, price: int, nodes: int, rents: list[int]) -> None:
        for x in range(nodes, len(rents)):
            rest = [(rents[x - nodes], 1)] if x > nodes else []
            self._row([(price, 1), (rents[x], -1), *rest], 0)

    def _cut(self, prices: list[int], widest: int, cost: int) -> None:
        for v in range(2, len(prices)):
            for a in range(1, min(widest, v - 1 if v > widest else v // 2) + 1):
                rest = [(prices[a], -1), (prices[v - a], -1)] if 2 * a != v else [(prices[a], -2)]
                self._row([(prices[v], 1), *rest], cost)

    def _sell(self, depth: int, prices: list[list[int]]) -> None:
        """Add what the gangs pay that one domain of this depth has to hold: the least of its domains' prices."""
        for size, number in self._sold(depth):
            offers = [table[size] for table in prices if size < len(table)]
            if offers:
                paid = self._var(number)
                self.paid[size, depth] = paid
                for offer in offers:
                    self._row([(paid, 1), (offer, -1)], 0)
