"""Podsets, jobs of a group, and jobs on separate roots stay in one domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kant_opt.fabric import Path
from kant_opt.schema import JobGroup
from kant_opt.verify.state import Presence, State
from kant_opt.verify.texts import pods_in, some
from kant_opt.verify.violation import Finding, rule


@rule("together")
def together(state: State) -> Iterator[Finding]:
    """Pods that are tied, living ones too, lie in one domain of the tie's level."""
    for job in state.placed.values():
        for tie in job.together:
            domains = state.pods_per_domain(job.name, tie.podsets or [p.name for p in job.podsets], tie.level)
            who = f"podsets {some(tie.podsets)}" if tie.podsets else "podsets"
            yield from _one_domain(job.name, who, tie.level, domains)
    for group in state.request.groups:
        if group.together_level is not None and any(job in state.placed for job in group.jobs):
            yield from _one_domain(group.name, "jobs", group.together_level, _of_group(state, group))
    if state.index.fabric.separate_roots:
        outermost = state.index.fabric.levels[0]
        for job in state.placed.values():
            if not job.may_span_fabrics:
                domains = state.job_per_domain(job.name, outermost)
                yield from _one_domain(job.name, "pods on separate roots", outermost, domains)


def _of_group(state: State, group: JobGroup) -> dict[Path, Presence]:
    domains: dict[Path, Presence] = {}
    for job in dict.fromkeys(group.jobs):
        for domain, here in state.job_per_domain(job, group.together_level or "").items():
            sum_here = domains.setdefault(domain, Presence())
            sum_here.living += here.living
            sum_here.new += here.new
    return domains


def _one_domain(subject: str, who: str, level: str, domains: Mapping[Path, Presence]) -> Iterator[Finding]:
    if len(domains) > 1:
        yield subject, f"{who} lie in {len(domains)} domains of level {level!r}, one allowed: {pods_in(domains)}"
