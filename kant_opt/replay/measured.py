"""What one policy came to, measured from its runs alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kant_opt.metrics import JobStretch, Placed, job_stretch
from kant_opt.metrics.over_time import Held, OverTime, Queued
from kant_opt.metrics.sizes import SIZE_CLASSES, size_class
from kant_opt.metrics.waits import ALL_SIZES, Waited, bounded_slowdown, wait_classes
from kant_opt.planning.ticket import Ticket
from kant_opt.replay.course import Course, Span
from kant_opt.replay.outages import Outage
from kant_opt.replay.result import JobRow, PolicyRun, StretchClass
from kant_opt.replay.stage import Stage
from kant_opt.replay.workload import ReplayJob
from kant_opt.schema import NODE_LEVEL, PlacedJob, PlacedPods, Placement


@dataclass(frozen=True)
class Named:
    """How one policy is called, and what it is made of."""

    name: str
    policy: str
    order: str
    backend: str


def measured(
    named: Named,
    stage: Stage,
    course: Course,
    window: tuple[int, int] | None,
    outages: Sequence[Outage] = (),
) -> PolicyRun:
    """Return the measures over `window`, else from the first submission to the last end."""
    rows = _rows(stage, course)
    first = min((row.submit_s for row in rows), default=0)
    last = max((span.end_s for span in course.spans), default=first + 1)
    start, end = window or (first, max(last, first + 1))
    rows = [replace(row, counted=False) if not start <= row.submit_s < end else row for row in rows]
    counted = [row for row in rows if row.counted]
    waited = [_waited(row, end) for row in counted if row.fate != "impossible"]
    gpus_of = {node.name: node.gpus for node in stage.nodes}
    over_time = OverTime(
        held=[Held(s.start_s, s.end_s, stage.jobs[s.position].gpus, s.where) for s in course.spans],
        queued=list(_queued(stage, course, last)),
        gpus=stage.gpus,
        node_gpus=[node.gpus for node in stage.nodes] or None,
        out=[(outage.start_s, outage.end_s, gpus_of[outage.node]) for outage in outages],
    )
    return PolicyRun(
        name=named.name,
        policy=named.policy,
        order=named.order,
        backend=named.backend,
        shares=over_time.shares(start, end),
        series=over_time.series(start, end),
        waits=wait_classes(waited),
        stretch=stretch_classes(counted),
        bounded_slowdown=bounded_slowdown(waited),
        makespan_s=last - first,
        backfilled=sum(row.backfilled for row in counted),
        evictions=sum(row.evictions for row in counted),
        seconds=round(course.seconds, 3),
        jobs=tuple(rows),
    )


def stretch_classes(rows: Iterable[JobRow]) -> tuple[StretchClass, ...]:
    """Return JTTED of all jobs that were placed, then of each size class that has any, small first."""
    members: dict[str, list[JobRow]] = {}
    for row in rows:
        if row.stretch is not None:
            for sizes in (ALL_SIZES, size_class(row.gpus)):
                members.setdefault(sizes, []).append(row)
    return tuple(_stretch_class(sizes, members[sizes]) for sizes in (ALL_SIZES, *SIZE_CLASSES) if sizes in members)


def _stretch_class(sizes: str, rows: Sequence[JobRow]) -> StretchClass:
    slow = sorted(row.stretch for row in rows if row.stretch is not None)
    leaves = [row.leaves / row.least_leaves for row in rows if row.leaves is not None and row.least_leaves]
    return StretchClass(
        sizes=sizes,
        jobs=len(rows),
        nodes_ratio=sum((row.nodes or 0) / (row.least_nodes or 1) for row in rows) / len(rows),
        leaves_ratio=sum(leaves) / len(leaves) if leaves else None,
        slowdown=sum(slow) / len(slow),
        slowdown_p99=slow[max(0, -(-len(slow) * 99 // 100) - 1)],
        slowdown_max=slow[-1],
    )


def _rows(stage: Stage, course: Course) -> list[JobRow]:
    """Return a row per job of the stage, in order of submission."""
    runs: dict[int, list[Span]] = {}
    for span in course.spans:
        runs.setdefault(span.position, []).append(span)
    stretches = _stretches(stage, {stage.jobs[i].name: spans[-1] for i, spans in runs.items()})
    leaf = stage.levels[-1] if stage.levels else None
    rows = [
        _row(job, ticket, runs.get(i, []), stretches.get(job.name), leaf)
        for i, (job, ticket) in enumerate(zip(stage.jobs, stage.tickets, strict=True))
    ]
    rows += [replace(_row(job, None, [], None, None), fate="impossible") for job in stage.too_large]
    return sorted(rows, key=lambda row: row.submit_s) if stage.too_large else rows


def _row(
    job: ReplayJob, ticket: Ticket | None, runs: Sequence[Span], stretch: JobStretch | None, leaf: str | None
) -> JobRow:
    gang = ticket.gang if ticket else None
    last = runs[-1] if runs and not runs[-1].evicted else None
    return JobRow(
        job=job.name,
        submit_s=job.submit_s,
        run_s=job.run_s,
        walltime_s=job.walltime_s,
        gpus=job.gpus,
        pods=gang.parts[0].target if gang else job.trace.pods or 1,
        fate="ended" if last else "waiting",
        start_s=last.start_s if last else None,
        end_s=last.end_s if last else None,
        user=job.trace.user,
        queue=job.trace.queue,
        backfilled=last.backfilled if last else False,
        evictions=sum(run.evicted for run in runs),
        where=last.where if last else (),
        nodes=stretch.used[NODE_LEVEL] if stretch else None,
        least_nodes=stretch.least[NODE_LEVEL] if stretch else None,
        leaves=stretch.used[leaf] if stretch and leaf else None,
        least_leaves=stretch.least[leaf] if stretch and leaf else None,
        stretch=stretch.slowdown if stretch else None,
    )


def _stretches(stage: Stage, spans: Mapping[str, Span]) -> dict[str, JobStretch]:
    """Return the stretch of each job that ran, all of them in one placement: they are measured one by one."""
    if stage.queue is None or not spans:
        return {}
    request, nodes = stage.queue.request, stage.nodes
    each = {job.name: job.podsets[0] for job in request.jobs}
    placed = []
    for name, span in spans.items():
        podset = each[name]
        size = podset.gpu_milli or 1000 * podset.gpus
        pods = [
            PlacedPods(node=nodes[node].name, count=milli // size, gpus=((0,),) if podset.gpu_milli else ())
            for node, milli in span.where
        ]
        placed.append(PlacedJob(job=name, pods=tuple(pods)))
    found = job_stretch(Placed(request, Placement(jobs=tuple(placed)), stage.queue.fabric))
    return {stretch.job: stretch for stretch in found}


def _waited(row: JobRow, end: int) -> Waited:
    wait = row.wait_s
    return Waited(row.gpus, max(0, end - row.submit_s) if wait is None else wait, row.run_s, started=wait is not None)


def _queued(stage: Stage, course: Course, last: int) -> Iterable[Queued]:
    """Yield when jobs waited: from submission to the first start, from an eviction to the next, or to the last end."""
    since = {i: job.submit_s for i, job in enumerate(stage.jobs)}
    for span in course.spans:
        yield Queued(since.pop(span.position), span.start_s, stage.jobs[span.position].gpus)
        if span.evicted:
            since[span.position] = span.end_s
    for i, start in since.items():
        yield Queued(start, max(start, last), stage.jobs[i].gpus)
