"""Podsets and jobs that keep away from each other, and jobs that want a domain for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from kant_opt.fabric import Path
from kant_opt.schema import Apart, Job
from kant_opt.verify.state import Presence, State
from kant_opt.verify.texts import domain_name, some
from kant_opt.verify.violation import Finding, rule

Domains = Mapping[Path, Presence]


@rule("apart")
def apart(state: State) -> Iterator[Finding]:
    """No shared domain where a rule forbids it; only where at least one new pod is part of the conflict.

    The rule of a job that merely runs binds the pods placed beside it.
    """
    for job in state.request.jobs:
        for ban in job.apart:
            yield from _podsets(state, job, ban)
            yield from _jobs(state, job, ban)
    yield from _exclusive(state)


def _podsets(state: State, job: Job, ban: Apart) -> Iterator[Finding]:
    domains = {name: state.pods_per_domain(job.name, [name], ban.level) for name in dict.fromkeys(ban.podsets)}
    for a, b in combinations(domains, 2):
        if shared := _conflicts(domains[a], domains[b]):
            yield job.name, f"podsets {a!r} and {b!r} share {_where(ban.level, shared)}"


def _jobs(state: State, job: Job, ban: Apart) -> Iterator[Finding]:
    for other in dict.fromkeys(ban.jobs):
        mine, others = (state.job_per_domain(name, ban.level) for name in (job.name, other))
        if shared := _conflicts(mine, others):
            yield job.name, f"shares {_where(ban.level, shared)} with job {other!r}"


def _exclusive(state: State) -> Iterator[Finding]:
    marks = dict.fromkeys(_marks(state))
    for level in dict.fromkeys(level for _, level in marks):
        everybody: dict[Path, dict[str, Presence]] = {}
        for name in state.jobs_present():
            for domain, here in state.job_per_domain(name, level).items():
                everybody.setdefault(domain, {})[name] = here
        for owner in (name for name, marked in marks if marked == level):
            for domain, mine in state.job_per_domain(owner, level).items():
                others = [n for n, here in everybody[domain].items() if n != owner and (mine.new or here.new)]
                if others:
                    yield owner, f"is to be alone in {level} {domain_name(domain)}, there is {some(others)}"


def _marks(state: State) -> Iterator[tuple[str, str]]:
    """Yield (job, level) of every job that wants domains for itself, by its own or its allocation's mark."""
    for job in state.request.jobs:
        if job.exclusive_level is not None:
            yield job.name, job.exclusive_level
    for alloc in state.request.allocations:
        if alloc.exclusive_level is not None:
            yield alloc.job, alloc.exclusive_level


def _conflicts(a: Domains, b: Domains) -> list[Path]:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return sorted(d for d, here in small.items() if d in large and (here.new or large[d].new))


def _where(level: str, domains: list[Path]) -> str:
    return f"{level} {some(map(domain_name, domains))}"
