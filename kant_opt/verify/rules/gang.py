"""All pods or none, of one job and of a group."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.schema import Job, JobGroup, PlacedJob
from kant_opt.verify.state import State
from kant_opt.verify.texts import some
from kant_opt.verify.violation import Finding, rule


@rule("gang")
def gang(state: State) -> Iterator[Finding]:
    """Names exist; each placed job has L to T new pods per podset; a group with `all_or_none` is whole."""
    for placed in state.placement.jobs:
        job = state.index.jobs.get(placed.job)
        if job is None:
            yield placed.job, "no job of the request has this name"
        else:
            yield from _names(state, job, placed)
            yield from _counts(state, job, placed)
    for group in state.request.groups:
        if group.all_or_none:
            yield from _whole(state, group)


def _names(state: State, job: Job, placed: PlacedJob) -> Iterator[Finding]:
    for podset in sorted({e.podset for e in placed.pods if (job.name, e.podset) not in state.index.podsets}):
        yield job.name, f"it has no podset {podset!r}"
    for node in sorted({e.node for e in placed.pods if e.node not in state.index.nodes}):
        yield job.name, f"there is no node {node!r}"


def _counts(state: State, job: Job, placed: PlacedJob) -> Iterator[Finding]:
    got: dict[str, int] = {}
    for entry in placed.pods:
        got[entry.podset] = got.get(entry.podset, 0) + entry.count
    for podset in job.podsets:
        least, most = state.index.to_place(job.name, podset)
        pods = got.get(podset.name, 0)
        if not least <= pods <= most:
            wanted = f"{most}" if least == most else f"{least} to {most}"
            yield f"{job.name}/{podset.name}", f"{pods} new pods placed, {wanted} wanted"


def _whole(state: State, group: JobGroup) -> Iterator[Finding]:
    placed = [name for name in group.jobs if name in state.placed]
    missing = [name for name in group.jobs if not state.is_admitted(state.index.jobs[name])]
    if placed and missing:
        yield group.name, f"{some(placed)} placed without {some(missing)}, all or none of the group may be"
