"""The fewest jobs to leave, nodes to clear or nodes to open so that a gang fits, proven where bound and answer meet.

Each of these is a set of *units* (jobs or nodes) whose going makes room; more of them never make less. A set is found
by dynamic programming over the tree (`cheapest`), which also gives a lower bound, and is tried with the exact placer.
What is left between bound and answer is searched set by set, within a limit of work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from kant_opt.engine.cheapest import Cheapest
from kant_opt.engine.node_states import NodeStates, emptied, opened_states
from kant_opt.engine.relaxed import kin
from kant_opt.engine.what_if import WhatIf
from kant_opt.schema import Allocation, Hold, Relaxation
from kant_opt.schema.outcome import RelaxationKind
from kant_opt.view import Quotas, open_nodes

_DOMAINS = 8
"""Domains in which the cheapest set is worked out, the most promising first."""
_TRIES = 400_000
"""Work limit of tries with the exact placer, in nodes and holds looked at."""
_NAMES = 6
"""Names told in a sentence."""
_ALONE = 8
"""Units tried by themselves where one is enough, to find one that is better to spare."""
_SETS = 4_000_000
"""Work limit of sets counted through, in nodes looked at."""


def fewest_jobs(case: WhatIf) -> Iterator[Relaxation]:
    """Yield the fewest running jobs whose leaving lets the gang in, and the fewest preemptible ones, if they differ."""
    own = kin(case.request, case.names)
    others = [alloc for alloc in case.request.allocations if alloc.job not in own and alloc.holds]
    found = list(_leaving(case, "jobs", others))
    yield from found
    mild = [alloc for alloc in others if alloc.preemptible]
    if mild and not (found and {alloc.job for alloc in mild}.issuperset(found[0].names)):
        yield from _leaving(case, "preemptible", mild)


def _leaving(case: WhatIf, kind: RelaxationKind, leaving: Sequence[Allocation]) -> Iterator[Relaxation]:
    """Yield the fewest of the jobs `leaving`; where one is enough: a preemptible, less important, smaller one."""

    def preferred(alloc: Allocation) -> tuple[bool, int, int, str]:
        return (not alloc.preemptible, alloc.priority, sum(_gpu_milli(hold) for hold in alloc.holds), alloc.job)

    leaving = sorted(leaving, key=preferred)
    on: dict[int, list[tuple[int, frozenset[str]]]] = {}
    for unit, alloc in enumerate(leaving):
        for node in dict.fromkeys(case.tree.index[hold.node] for hold in alloc.holds):
            on.setdefault(node, []).append((unit, frozenset({alloc.job})))
    yield from _Search(case, kind, [alloc.job for alloc in leaving], lambda: emptied(case, on)).run()


def fewest_nodes(case: WhatIf) -> Iterator[Relaxation]:
    """Yield the fewest nodes that everything of other jobs has to leave so that the gang fits."""
    own = kin(case.request, case.names)
    jobs: dict[int, set[str]] = {}
    held: dict[int, int] = {}
    for alloc in case.request.allocations:
        for hold in alloc.holds if alloc.job not in own else ():
            node = case.tree.index[hold.node]
            jobs.setdefault(node, set()).add(alloc.job)
            held[node] = held.get(node, 0) + _gpu_milli(hold)
    nodes = sorted(jobs, key=lambda node: (held[node], node))
    on = {node: [(unit, frozenset(jobs[node]))] for unit, node in enumerate(nodes)}
    yield from _Search(case, "nodes", [case.tree.names[node] for node in nodes], lambda: emptied(case, on)).run()


def fewest_openings(case: WhatIf) -> Iterator[Relaxation]:
    """Yield the fewest nodes to open, that is, to make schedulable and free of taints, so that the gang fits."""
    names, states = opened_states(case)
    yield from _Search(case, "open", names, lambda: states).run()


def _gpu_milli(hold: Hold) -> int:
    """Return what a hold takes of GPUs, in thousandths; a share in MiB counts as one, to order by."""
    return 1000 * hold.gpus or hold.gpu_milli or (1000 if hold.gpu_memory_mib else 0)


Units = frozenset[int]


@dataclass
class _Budget:
    tries: int
    sets: int


class _Search:
    """The fewest of `names` (units, those to prefer first) that make enough room."""

    def __init__(
        self, case: WhatIf, kind: RelaxationKind, names: Sequence[str], states: Callable[[], NodeStates]
    ) -> None:
        self.case, self.kind, self.names, self.make_states = case, kind, names, states
        size = len(case.tree.names)
        held = sum(len(alloc.holds) for alloc in case.request.allocations)
        many = 1 if len(case.gang.open_parts) == 1 else 10  # one part is placed by counting, several by search
        self.budget = _Budget(max(15, _TRIES // (many * (size + held + 1))), min(20_000, _SETS // (size + 1)))
        self.tried: dict[Units, bool | None] = {}
        self.doubt = False
        """Some try was given up, or hit the search's limit, and may have been enough."""
        self.counted = len(case.gang.open_parts) == 1 and not Quotas(case.cluster)
        self.counted = self.counted and open_nodes(case.free, case.gang) is None
        """Room per node tells which units can help at all."""

    def run(self) -> Iterator[Relaxation]:
        """Yield the smallest set, if any is enough."""
        everything = frozenset(range(len(self.names)))
        if not everything or not self.case.smallest_gang.open_parts or not self._enough(everything):
            return
        cheapest = Cheapest(self.case, self.make_states())
        ranked = cheapest.ranked()
        best: Units | None = None
        for bound, domain in ranked[:_DOMAINS]:
            if best is not None and bound >= len(best):
                break
            found = self._inside(cheapest, domain, bound)
            if found is not None and (best is None or len(found) < len(best)):
                best = found
        best = self._cut(frozenset(), sorted(everything, reverse=True)) if best is None else best
        bound = max(1, ranked[0][0] if ranked else 1)
        best, proven = (best, True) if bound >= len(best) else self._search(cheapest, bound, best)
        if len(best) == 1:
            best = self._preferred(cheapest, best)
        relaxation = self._relaxation(best)
        yield relaxation.model_copy(update={"proven": proven, "sentence": self._sentence(relaxation.names)})

    def _preferred(self, cheapest: Cheapest, best: Units) -> Units:
        """Return the first unit that is enough by itself, among the few tried."""
        alone = (frozenset({unit}) for unit in range(min(best)) if cheapest.may_suffice(frozenset({unit})))
        return next((unit for unit in islice(alone, _ALONE) if self._enough(unit)), best)

    def _sentence(self, names: Sequence[str]) -> str:
        many = len(names) > 1
        if self.kind == "open":
            return f"open {len(names):,} {'nodes' if many else 'node'}: {_some(names)}"
        if self.kind == "nodes":
            return f"free {len(names):,} {'nodes' if many else 'node'} of what runs there: {_some(names)}"
        marks = dict.fromkeys(self.case.placed, " (placed just now)")
        if self.kind == "jobs":
            marks |= {a.job: " (preemptible)" for a in self.case.request.allocations if a.preemptible}
        told = _some([f"{name!r}{marks.get(name, '')}" for name in names])
        only = "preemptible " if self.kind == "preemptible" else ""
        return f"{len(names):,} {only}{'jobs leave' if many else 'job leaves'}: {told}"

    def _inside(self, cheapest: Cheapest, domain: int, bound: int) -> Units | None:
        """Return a minimal set that makes room inside one domain, None where none was found."""
        guess = cheapest.units(domain)
        if guess is not None:
            guess = cheapest.cut(domain, guess, bound, self.budget.sets // 2)
            if self._enough(guess):
                return guess
        touching = cheapest.touching(domain)
        if touching and self._enough(frozenset(touching)):
            return self._cut(frozenset(), sorted(touching, reverse=True))
        return None

    def _cut(self, fixed: Units, rest: Sequence[int]) -> Units:
        """Return `fixed` with those of `rest` that are needed: none can be spared. QuickXplain (Junker 2004)."""
        if self._enough(fixed):
            return fixed
        if len(rest) <= 1:
            return fixed.union(rest)
        half = len(rest) // 2
        first = self._cut(fixed.union(rest[half:]), rest[:half])
        needed = first.intersection(rest[:half])
        return self._cut(fixed | needed, rest[half:])

    def _search(self, cheapest: Cheapest, bound: int, best: Units) -> tuple[Units, bool]:
        """Return the smallest of all sets of `bound` units and more, and whether it is proven that none is smaller."""
        units = sorted(cheapest.states.useful) if self.counted else range(len(self.names))
        for size in range(bound, len(best)):
            for chosen in combinations(units, size):
                self.budget.sets -= 1
                if self.budget.sets < 0:
                    return best, False
                units_chosen = frozenset(chosen)
                if not cheapest.may_suffice(units_chosen):
                    continue
                if self._enough(units_chosen):
                    return units_chosen, not self.doubt
                if self.budget.tries < 0:
                    return best, False
        return best, not self.doubt

    def _enough(self, units: Units) -> bool:
        """Return whether the gang fits once these units are gone."""
        if units not in self.tried:
            self.budget.tries -= 1
            self.tried[units] = None if self.budget.tries < 0 else self.case.try_(self._relaxation(units))
        self.doubt = self.doubt or self.tried[units] is None
        return bool(self.tried[units])

    def _relaxation(self, units: Collection[int]) -> Relaxation:
        names = tuple(self.names[u] for u in sorted(units))
        return Relaxation(kind=self.kind, proven=False, amount=len(names), names=names)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES])
    return shown if len(names) <= _NAMES else f"{shown} and {len(names) - _NAMES:,} more"
