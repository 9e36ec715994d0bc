"""All loads that fit on a node, listed: x[kind, pattern] nodes of a kind carry this multiset of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from kant_opt.formulation.filling import Filling, Load, Terms
from kant_opt.formulation.program import Program, Sense
from kant_opt.formulation.stock import Stock, Vector

MOST_PATTERNS = 500
"""Loads of one kind of node beyond which they are not listed."""


class Patterns(Filling):
    """For any sizes and several resources; one variable per kind of node and load."""

    word = "patterns"

    def __init__(self, stock: Stock) -> None:
        super().__init__(stock)
        self.patterns = [_of_kind(stock, kind.room) for kind in stock.kinds]
        self.variables = sum(map(len, self.patterns))
        self.nodes: list[dict[Vector, int]] = []

    @staticmethod
    def suits(stock: Stock) -> bool:
        """Return whether every kind of node has few enough loads."""
        return all(len(_of_kind(stock, kind.room)) <= MOST_PATTERNS for kind in stock.kinds)

    def write(self, program: Program, name: str, pods: Sequence[Terms]) -> None:
        rows = [dict.fromkeys(terms, -1) for terms in pods]
        for k, (kind, patterns) in enumerate(zip(self.stock.kinds, self.patterns, strict=True)):
            self.nodes.append({})
            for p, pattern in enumerate(patterns):
                upper = min(m // n for m, n in zip(self.stock.most, pattern, strict=True) if n)
                var = program.var(f"pattern_{name}_{k}_{p}", 0, min(upper, len(kind.nodes)))
                self.nodes[k][pattern] = var
                self.tell(kind, sum(n * g for n, g in zip(pattern, self.stock.gpus, strict=True)), {var: 1})
                for s, n in enumerate(pattern):
                    if n:
                        rows[s][var] = n
            if patterns:
                every = dict.fromkeys(self.nodes[k].values(), 1)
                program.row(f"nodes_{name}_{k}", every, Sense.LE, len(kind.nodes))
        for s, row in enumerate(rows):
            if any(self.stock.needs[s]):
                program.row(f"loads_{name}_{s}", row, Sense.EQ, 0)

    def count(self, values: list[int], kind: int, load: Vector) -> None:
        values[self.nodes[kind][load]] += 1

    def loads(self, values: Sequence[int], kind: int) -> Iterator[Load]:
        for pattern, var in self.nodes[kind].items():
            for _ in range(values[var]):
                yield list(pattern)


def _of_kind(stock: Stock, room: Vector) -> tuple[Vector, ...]:
    fitting = tuple(stock.fitting(s, room) if any(needs) else 0 for s, needs in enumerate(stock.needs))
    return _patterns(stock.needs, room, fitting)


@lru_cache(maxsize=256)
def _patterns(needs: tuple[Vector, ...], room: Vector, most: Vector) -> tuple[Vector, ...]:
    """Return the loads that fit in a room, the empty one left out; one more than MOST_PATTERNS where there are more."""
    found: list[Vector] = []

    def add(load: Vector, left: Vector) -> None:
        s = len(load)
        if s == len(needs):
            found.append(load)
            return
        for n in range(most[s] + 1):
            if len(found) > MOST_PATTERNS + 1 or min(left, default=0) < 0:
                return
            add((*load, n), left)
            left = tuple(r - need for r, need in zip(left, needs[s], strict=True))

    add((), room)
    return tuple(found[1:])
