"""Podsets, jobs of a group, and jobs on separate roots stay in one domain."""

from __future__ import annotations

from collections.abc import Iterable

from kant_opt.formulation.constraints._one_domain import one_domain
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars
from kant_opt.view import Part


@CONSTRAINTS.register("together")
def together(v: Vars) -> None:
    """At most one domain of the tie's level holds pods of those tied."""
    for gang in v.gangs:
        for job in gang.jobs:
            if job.name in v.placed:
                for t, tie in enumerate(job.together):
                    tied = [p for p in gang.parts if p.job is job and (not tie.podsets or p.podset.name in tie.podsets)]
                    _tie(v, f"together_{v.placed[job.name]}_{t}", v.tree.depth(tie.level), tied)
    for g, group in enumerate(v.cluster.request.groups):
        if group.together_level:
            _jobs(v, f"together_group_{g}", v.tree.depth(group.together_level), dict.fromkeys(group.jobs))
    if v.tree.fabric.separate_roots:
        for name, job in v.jobs.items():
            if not job.may_span_fabrics and not v.is_single(name):
                _jobs(v, f"together_root_{v.placed[name]}", 1, [name])


def _tie(v: Vars, name: str, depth: int, parts: list[Part]) -> None:
    open_parts = [v.part_index[p.job.name, p.podset.name] for p in parts if (p.job.name, p.podset.name) in v.part_index]
    living = {n for part in parts for n in part.living}
    one_domain(v, name, depth, open_parts, living, {v.placed[part.job.name] for part in parts})


def _jobs(v: Vars, name: str, depth: int, jobs: Iterable[str]) -> None:
    """Tie whole jobs: living pods count even where their podset is not one of the job's any more."""
    jobs = list(jobs)
    parts = [k for job in jobs for k in v.parts_of.get(job, ())]
    living = {n for job in jobs for n in v.living(job)}
    one_domain(v, name, depth, parts, living, [v.placed[job] for job in jobs if job in v.placed])
