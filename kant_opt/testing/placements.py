"""A hypothesis strategy for placements on a small request, valid or broken in one way or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from hypothesis import strategies as st

from kant_opt.schema import Job, PlacedJob, PlacedPods, Placement, Request
from kant_opt.testing.brute_force import job_placements
from kant_opt.testing.relax import RELAXABLE, without_groups, without_rule
from kant_opt.verify import RULES, RequestIndex, check

_LOOKED_AT = 40
"""Placements of a job among which one is drawn."""

_ONE_IN_FOUR = st.sampled_from((False, False, False, True))
_THREE_IN_FOUR = st.sampled_from((True, True, False, True))

Draw = Callable[[st.SearchStrategy[Any]], Any]
Jobs = tuple[PlacedJob, ...]


@st.composite
def placements(draw: Draw, request: Request, *, name_gpus: bool = False) -> Placement:
    """Draw a placement of known jobs, podsets, nodes and GPUs, feasible or not.

    Jobs get pods that suit them and each other, or none; but in most draws one job breaks a rule, one rule alone if
    that can be, or is placed anyhow. Pods with whole GPUs name them only where `name_gpus` is True.
    """
    judge = RequestIndex(without_groups(request))
    victim, anyhow = draw(st.sampled_from((None, *request.jobs, *request.jobs))), draw(_ONE_IN_FOUR)
    placed: Jobs = ()
    allowed: frozenset[str] = frozenset()
    for job in request.jobs:
        if job is victim and (spoiled := {} if anyhow else _spoiled(judge, request, placed, job)):
            rule = draw(st.sampled_from(sorted(spoiled)))
            placed, allowed = draw(st.sampled_from(spoiled[rule])), frozenset({rule})
        elif job is victim:
            placed, allowed = (*placed, draw(_any_pods(request, job, name_gpus))), frozenset(RULES)
        elif draw(_THREE_IN_FOUR):
            ways = [way for way, broken in _ways(judge, request, placed, job) if broken <= allowed]
            placed = draw(st.sampled_from(ways or [placed]))
    return Placement(jobs=placed)


def _ways(judge: RequestIndex, asked: Request, placed: Jobs, job: Job) -> Iterator[tuple[Jobs, frozenset[str]]]:
    """Yield some ways to place one job more, valid for `asked` if it were alone, with the rules that break then."""
    for way in islice(job_placements(asked, job.name), _LOOKED_AT):
        jobs = (*placed, way)
        yield jobs, frozenset(v.rule for v in check(judge, Placement(jobs=jobs)))


def _spoiled(judge: RequestIndex, request: Request, placed: Jobs, job: Job) -> dict[str, list[Jobs]]:
    """Return rule -> ways to place one job more that break this rule alone."""
    found: dict[str, list[Jobs]] = {}
    for rule in RELAXABLE:
        asked = without_rule(request, rule)
        for way, broken in _ways(judge, asked, placed, job) if asked != request else ():
            if broken == {rule}:
                found.setdefault(rule, []).append(way)
    return found


@st.composite
def _any_pods(draw: Draw, request: Request, job: Job, name_gpus: bool) -> PlacedJob:
    pods = []
    for podset in job.podsets:
        count = draw(st.sampled_from((podset.count, podset.count - 1, podset.count + 1)))
        for _ in range(count):
            node = draw(st.sampled_from(request.nodes))
            named: tuple[tuple[int, ...], ...] = ()
            if node.gpus and (podset.has_share or (name_gpus and podset.gpus)):
                size = 1 if podset.has_share else podset.gpus
                named = (tuple(draw(st.integers(0, node.gpus - 1)) for _ in range(size)),)
            pods.append(PlacedPods(podset=podset.name, node=node.name, gpus=named))
    return PlacedJob(job=job.name, pods=tuple(pods))
