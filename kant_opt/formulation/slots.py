"""Sizes of which each divides the next: counting slots of every size tells whether pods fit.

A pod of size g takes g / s slots of every smaller size s, on whichever node it lies, since s divides g. So, the largest
first, pods find room as long as there are slots: counts p fit iff for every size s

    sum over g >= s of (g / s) p_g  <=  sum over nodes of floor(room / s).

Where it counts how much of a node is used, t[kind, n] nodes are used by n units, and the same inequality for these n in
place of the rooms, with equality at size 1, says that pods can be dealt out so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kant_opt.formulation.filling import Filling, Load, Terms
from kant_opt.formulation.program import Program, Sense
from kant_opt.formulation.stock import Stock, Vector


class Slots(Filling):
    """No variable per node; with fragmentation one per kind of node and units used."""

    word = "slots"

    def __init__(self, stock: Stock) -> None:
        super().__init__(stock)
        self.sizes = [needs[0] if needs else 0 for needs in stock.needs]
        self.rooms = [kind.room[0] if kind.room else 0 for kind in stock.kinds]
        self.variables = sum(self.rooms) if stock.fragments else 0
        self.taken: dict[tuple[int, int], int] = {}

    @staticmethod
    def suits(stock: Stock) -> bool:
        """Return whether pods differ in one resource at most, and each size divides the next."""
        sizes = sorted({size for needs in stock.needs for size in needs if size})
        return stock.resources <= 1 and all(large % small == 0 for small, large in pairwise(sizes))

    def write(self, program: Program, name: str, pods: Sequence[Terms]) -> None:
        if self.stock.fragments:
            self._add_taken(program, name)
        for s in sorted({size for size in self.sizes if size}):
            row = {var: size // s for size, terms in zip(self.sizes, pods, strict=True) if size >= s for var in terms}
            room = 0
            if self.stock.fragments:
                row |= {var: -(n // s) for (_, n), var in self.taken.items() if n >= s}
            else:
                room = sum(r // s * len(kind.nodes) for r, kind in zip(self.rooms, self.stock.kinds, strict=True))
            exact = self.stock.fragments and s == 1
            program.row(f"slots_{name}_{s}", row, Sense.EQ if exact else Sense.LE, room)

    def _add_taken(self, program: Program, name: str) -> None:
        step = next(g // size for g, size in zip(self.stock.gpus, self.sizes, strict=True) if size)
        for k, kind in enumerate(self.stock.kinds):
            for n in range(1, self.rooms[k] + 1):
                var = self.taken[k, n] = program.var(f"taken_{name}_{k}_{n}", 0, len(kind.nodes))
                self.tell(kind, n * step, {var: 1})
            if self.rooms[k]:
                row = {self.taken[k, n]: 1 for n in range(1, self.rooms[k] + 1)}
                program.row(f"nodes_{name}_{k}", row, Sense.LE, len(kind.nodes))

    def count(self, values: list[int], kind: int, load: Vector) -> None:
        if self.stock.fragments:
            values[self.taken[kind, sum(n * size for n, size in zip(load, self.sizes, strict=True))]] += 1

    def loads(self, values: Sequence[int], kind: int) -> Iterator[Load]:
        raise NotImplementedError  # nodes of all kinds are filled together

    def fill(self, values: Sequence[int], pods: Sequence[int]) -> dict[int, Load]:
        left: dict[int, int] = {}
        for k, kind in enumerate(self.stock.kinds):
            budgets = [self.rooms[k]] * len(kind.nodes)
            if self.stock.fragments:
                budgets = [n for n in range(self.rooms[k], 0, -1) for _ in range(values[self.taken[k, n]])]
                budgets += [0] * (len(kind.nodes) - len(budgets))
            left.update(zip(kind.nodes, budgets, strict=True))
        found: dict[int, Load] = {}
        for s in sorted(range(len(pods)), key=lambda s: -self.sizes[s]):
            size, missing = self.sizes[s], pods[s]
            for node, units in left.items():
                if not missing:
                    break
                here = min(missing, units // size) if size else missing
                if here:
                    found.setdefault(node, [0] * len(pods))[s] += here
                    left[node] -= here * size
                    missing -= here
            assert not missing, "slots counted are there"
        return found
