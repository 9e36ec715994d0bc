"""Podsets and jobs that keep away from each other, and jobs that want a domain for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars
from kant_opt.schema import Job


class _Side(NamedTuple):
    """Who keeps apart: parts with pods to place, and nodes where pods live already."""

    parts: tuple[int, ...]
    living: frozenset[int]


@CONSTRAINTS.register("apart")
def apart(v: Vars) -> None:
    """No domain gets new pods of one side where the other side lives or comes; what lives already may stay."""
    for j, job in enumerate(v.cluster.request.jobs):
        for r, rule in enumerate(job.apart):
            depth = v.tree.depth(rule.level)
            sides = [_podset(v, job, name) for name in dict.fromkeys(rule.podsets)]
            for p, (a, b) in enumerate(combinations(sides, 2)):
                _keep(v, f"apart_{j}_{r}_podsets_{p}", depth, a, b)
            for o, other in enumerate(dict.fromkeys(rule.jobs)):
                _keep(v, f"apart_{j}_{r}_job_{o}", depth, _jobs(v, [job.name]), _jobs(v, [other]))
    everybody = dict.fromkeys([*v.running, *v.jobs])
    for m, (owner, level) in enumerate(dict.fromkeys(_marks(v))):
        # towards one owner all others are one side: whoever of them comes or lives there is in the way
        others = _jobs(v, [name for name in everybody if name != owner])
        _keep(v, f"alone_{m}", v.tree.depth(level), _jobs(v, [owner]), others)


def _keep(v: Vars, name: str, depth: int, a: _Side, b: _Side) -> None:
    new_a, new_b = v.new_in(a.parts, depth), v.new_in(b.parts, depth)
    living_a, living_b = v.domains(a.living, depth), v.domains(b.living, depth)
    for d in sorted({*new_a, *new_b}):
        if d in living_b:
            v.forbid(f"{name}_{d}_first", new_a.get(d, {}))
        if d in living_a:
            v.forbid(f"{name}_{d}_second", new_b.get(d, {}))
        if d in new_a and d in new_b and d not in living_a and d not in living_b:
            most = v.most_of(b.parts, new_b[d])
            v.program.row(f"{name}_{d}", {**new_b[d], v.present(a.parts, depth, d): most}, Sense.LE, most)


def _podset(v: Vars, job: Job, name: str) -> _Side:
    part = next(p for g in v.gangs for p in g.parts if p.job is job and p.podset.name == name)
    k = v.part_index.get((job.name, name))
    return _Side(() if k is None else (k,), frozenset(part.living))


def _jobs(v: Vars, names: Iterable[str]) -> _Side:
    names = list(names)
    parts = tuple(k for name in names for k in v.parts_of.get(name, ()))
    return _Side(parts, frozenset(n for name in names for n in v.living(name)))


def _marks(v: Vars) -> Iterator[tuple[str, str]]:
    """Yield (job, level) of every job that wants domains for itself, by its own or its allocation's mark."""
    for job in v.cluster.request.jobs:
        if job.exclusive_level:
            yield job.name, job.exclusive_level
    for alloc in v.cluster.request.allocations:
        if alloc.exclusive_level:
            yield alloc.job, alloc.exclusive_level
