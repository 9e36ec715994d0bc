"""Nodes as paths through states of what is left: one arc for each pod put on a node.

A node starts with all its room, an arc of a shape leads from one state to the one with a pod of this shape less, and
the node stays where its path ends. Paths from the start are the loads that fit, so a flow of whole numbers is a filling
of so many nodes, and every filling is a flow: pods are put on in one order of shapes, for which all arcs are there.
After J. M. Valerio de Carvalho, Annals of Operations Research 86 (1999), doi:10.1023/A:1018952112615; departure: states
are vectors of several resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from kant_opt.formulation.filling import Filling, Load, Terms
from kant_opt.formulation.program import Program, Sense
from kant_opt.formulation.stock import Stock, Vector

MOST_ARCS = 20_000
"""Arcs of one kind of node beyond which none are made."""

Arc = tuple[Vector, int]
"""(state, shape of the pod put on)."""


class Arcs(Filling):
    """For many sizes, of which no list could be made; one variable per kind of node and arc."""

    word = "arc-flow"

    def __init__(self, stock: Stock) -> None:
        super().__init__(stock)
        self.order = _order(stock.needs)
        self.arcs = [_of_kind(stock, kind.room) for kind in stock.kinds]
        self.variables = sum(map(len, self.arcs))
        self.flow: list[dict[Arc, int]] = []

    @staticmethod
    def suits(stock: Stock) -> bool:
        """Return whether every kind of node has few enough arcs."""
        return all(len(_of_kind(stock, kind.room)) <= MOST_ARCS for kind in stock.kinds)

    def write(self, program: Program, name: str, pods: Sequence[Terms]) -> None:
        rows = [dict.fromkeys(terms, -1) for terms in pods]
        for k, (kind, arcs) in enumerate(zip(self.stock.kinds, self.arcs, strict=True)):
            upper = [min(len(kind.nodes), most) for most in self.stock.most]
            flow = {arc: program.var(f"arc_{name}_{k}_{i}", 0, upper[arc[1]]) for i, arc in enumerate(arcs)}
            self.flow.append(flow)
            ends: dict[Vector, Terms] = {}
            for (state, s), var in flow.items():
                rows[s][var] = 1
                ends.setdefault(self._next(state, s), {})[var] = 1
                ends.setdefault(state, {})[var] = -1
            for i, (state, terms) in enumerate(ends.items()):
                room = len(kind.nodes) if state == kind.room else 0
                program.row(f"state_{name}_{k}_{i}", terms, Sense.GE, -room)
                self.tell(kind, self._gpus(kind.room, state), terms)
        for s, row in enumerate(rows):
            if any(self.stock.needs[s]):
                program.row(f"loads_{name}_{s}", row, Sense.EQ, 0)

    def count(self, values: list[int], kind: int, load: Vector) -> None:
        state = self.stock.kinds[kind].room
        for s in self.order:
            for _ in range(load[s]):
                values[self.flow[kind][state, s]] += 1
                state = self._next(state, s)

    def loads(self, values: Sequence[int], kind: int) -> Iterator[Load]:
        """Take the flow apart into paths; no state is left by more of it than comes in."""
        out: dict[Vector, list[list[int]]] = {}
        for (state, s), var in self.flow[kind].items():
            if values[var]:
                out.setdefault(state, []).append([s, values[var]])
        start = self.stock.kinds[kind].room
        while out.get(start):
            load, state = [0] * len(self.stock.needs), start
            while arcs := out.get(state):
                arc = arcs[-1]
                arc[1] -= 1
                if not arc[1]:
                    arcs.pop()
                load[arc[0]] += 1
                state = self._next(state, arc[0])
            yield load

    def _next(self, state: Vector, shape: int) -> Vector:
        return tuple(r - need for r, need in zip(state, self.stock.needs[shape], strict=True))

    def _gpus(self, room: Vector, state: Vector) -> int:
        """Return the GPUs taken between two states: the first resource, in steps of what its needs are divided by."""
        if not self.stock.fragments:
            return 0
        step = next(g // needs[0] for g, needs in zip(self.stock.gpus, self.stock.needs, strict=True) if g)
        return (room[0] - state[0]) * step


def _order(needs: Sequence[Vector]) -> list[int]:
    """Return the shapes that need room, the largest first."""
    return sorted((s for s, need in enumerate(needs) if any(need)), key=lambda s: (needs[s], s), reverse=True)


def _of_kind(stock: Stock, room: Vector) -> tuple[Arc, ...]:
    fitting = tuple(stock.fitting(s, room) if any(needs) else 0 for s, needs in enumerate(stock.needs))
    return _arcs(stock.needs, room, fitting)


@lru_cache(maxsize=32)
def _arcs(needs: tuple[Vector, ...], room: Vector, most: Vector) -> tuple[Arc, ...]:
    """Return the arcs on paths from a room, more than MOST_ARCS where there are more."""
    arcs: dict[Arc, None] = {}
    states = {room: None}
    for s in _order(needs):
        for start in list(states):
            state = start
            for _ in range(most[s]):
                further = tuple(r - need for r, need in zip(state, needs[s], strict=True))
                if min(further) < 0:
                    break
                arcs[state, s] = None
                states[further] = None
                state = further
            if len(arcs) > MOST_ARCS:
                return tuple(arcs)
    return tuple(arcs)
