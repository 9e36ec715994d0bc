"""Replay a trace under several policies, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.fabric import load_topology
from kant_opt.io.traces import Trace, read_trace
from kant_opt.planning import ORDERS, make_policy
from kant_opt.replay.course import Course, run_course
from kant_opt.replay.keeper import Keeper, digest
from kant_opt.replay.measured import Named, measured
from kant_opt.replay.outages import Outage, check_outages
from kant_opt.replay.result import ReplayResult, Scaling
from kant_opt.replay.spaces import placing_backend
from kant_opt.replay.stage import Stage, counting_stage, fabric_stage
from kant_opt.replay.workload import Walltimes, Workload, workload
from kant_opt.schema import FabricSpec, Node, Zone

Cluster = int | str | Path | tuple[FabricSpec, Sequence[Node]]
"""GPUs that are all alike; or a topology by name or path; or a fabric and its nodes."""

OnProgress = Callable[[str, int, int, int], None]
"""Told (policy, jobs that have come, jobs that have ended, all jobs) some times a second."""

_SPEC = re.compile(r"([^/@]+)(?:/([^/@]+))?(?:@([^/@]+))?\Z")


def replay(
    trace: Trace | str | Path,
    cluster: Cluster | None = None,
    *,
    policies: Sequence[str] = ("fifo", "easy"),
    order: str = "fifo",
    backend: str = "e-binpack",
    walltimes: Walltimes = "asked",
    arrivals: float = 1.0,
    warm_up: float = 0.0,
    cool_down: float = 0.0,
    seed: int = 0,
    inference_zone: Zone | None = None,
    outages: Sequence[Outage] = (),
    checkpoint: str | Path | None = None,
    checkpoint_every_s: float = 60.0,
    on_progress: OnProgress | None = None,
) -> ReplayResult:
    """Replay a trace on a cluster (the one the trace names, by default) and return what became of every job.

    A policy is a name in POLICIES, with `/` and a backend that places gang by gang, with `@` and a name in ORDERS where
    they differ from `backend` and `order`: "easy", "fifo/binpack", "easy@shortest-first". On a number of GPUs only
    their number is looked at. `arrivals` brings jobs so many times as fast. `warm_up` and `cool_down` are shares of the
    span of submissions that no measure looks at; without them the window ends with the last job. `outages` befall nodes
    of a fabric: what runs there is lost, and runs again from its beginning. With `checkpoint` a replay that was killed
    goes on, from that file, to the same result.

    Raises InputError or UnknownName for what cannot be meant. Time without nodes: some microseconds per job and its
    queue; with nodes: some milliseconds per question that the policy asks.

    >>> from kant_opt.io.traces import Trace, TraceJob
    >>> jobs = (TraceJob("a", 0, 60, 4), TraceJob("b", 1, 60, 8), TraceJob("c", 2, 30, 4))
    >>> found = replay(Trace("three", "jsonl", jobs), 8, policies=["fifo", "easy"])
    >>> [(run.name, run.mean_wait_s) for run in found.runs]
    [('fifo', 59.0), ('easy', 19.666666666666668)]
    """
    if not isinstance(trace, Trace):
        trace = read_trace(trace)
    named = [_named(spec, order, backend) for spec in policies]
    if not named:
        raise InputError("no policy", way_out="name at least one, such as easy")
    if twice := [n.name for i, n in enumerate(named) if n in named[:i]]:
        raise InputError(f"policy {twice[0]!r} is named twice", way_out="leave one out")
    if min(warm_up, cool_down) < 0 or not warm_up + cool_down < 1:
        raise InputError(f"a warm-up of {warm_up} and a cool-down of {cool_down}", way_out="shares that leave a window")
    work = workload(trace, walltimes=walltimes, arrivals=arrivals)
    stage = _stage(trace, work, cluster, inference_zone)
    if not stage.tickets:
        raise InputError("no job of it can be replayed", place=trace.name, way_out=f"its jobs: {work.counts}")
    if stage.queue is None:
        named = [Named(n.name, n.policy, n.order, "") for n in named]
    if outages and stage.queue is None:
        raise InputError("outages without nodes", way_out="give a fabric")
    check_outages(outages, [node.name for node in stage.nodes])
    outages = tuple(sorted(outages, key=lambda outage: (outage.start_s, outage.node)))
    window = _window(work, warm_up, cool_down)
    keeper = Keeper(None, "")
    if checkpoint is not None:
        options = (walltimes, arrivals, seed, inference_zone, outages)
        of = digest(trace.jobs, stage.gpus, stage.nodes, stage.levels, named, *options)
        keeper = Keeper(Path(checkpoint), of, checkpoint_every_s)
    runs = []
    for one in named:
        runs.append(measured(one, stage, _course(one, stage, seed, outages, keeper, on_progress), window, outages))
    jobs = runs[0].jobs
    counts = {**work.counts, "too_large": len(stage.too_large)}
    return ReplayResult(
        trace=trace.name,
        seed=seed,
        levels=stage.levels,
        nodes=stage.nodes,
        scaling=Scaling(arrivals, stage.gpus, walltimes, work.load(stage.gpus)),
        window=window or (min(job.submit_s for job in jobs), max(max(j.end_s or 0 for j in run.jobs) for run in runs)),
        counts=counts,
        notes=(*work.notes, *_too_large(stage), *_failed(outages)),
        runs=tuple(runs),
    )


def _course(
    one: Named, stage: Stage, seed: int, outages: Sequence[Outage], keeper: Keeper, on_progress: OnProgress | None
) -> Course:
    if one.name in keeper.done:
        return keeper.done[one.name]

    def tick(come: int, ended: int) -> None:
        if on_progress is not None:
            on_progress(one.name, come, ended, len(stage.tickets))

    course = run_course(
        stage,
        make_policy(one.policy),
        one.order,
        backend=one.backend,
        seed=seed,
        outages=outages,
        kept=keeper.under_way(one.name),
        on_tick=tick,
        due=lambda: keeper.due,
        save=lambda kept: keeper.save(one.name, kept),
    )
    keeper.finish(one.name, course)
    return course


def _named(spec: str, order: str, backend: str) -> Named:
    match = _SPEC.match(spec.strip())
    if match is None:
        raise InputError(f"policy {spec!r}", way_out="write policy, policy/backend or policy/backend@order")
    chosen = Named(spec.strip(), match[1], match[3] or order, match[2] or backend)
    make_policy(chosen.policy)
    placing_backend(chosen.backend)
    ORDERS[chosen.order]  # raises UnknownName as the others do
    return chosen


def _stage(trace: Trace, work: Workload, cluster: Cluster | None, zone: Zone | None) -> Stage:
    if cluster is None:
        if trace.capacity is None:
            raise InputError("it does not say how large its cluster was", place=trace.name, way_out="give a cluster")
        cluster = trace.capacity
    if isinstance(cluster, int):
        return counting_stage(work, cluster)
    spec, nodes = cluster if isinstance(cluster, tuple) else load_topology(cluster)
    return fabric_stage(work, spec, nodes, zone)


def _window(work: Workload, warm_up: float, cool_down: float) -> tuple[int, int] | None:
    if not warm_up and not cool_down:
        return None
    first, last = work.span
    start, end = first + round(warm_up * (last - first)), last - round(cool_down * (last - first))
    return start, max(end, start + 1)


def _too_large(stage: Stage) -> list[str]:
    large = stage.too_large
    if not large:
        return []
    return [
        f"{len(large):,} jobs never fit on {stage.gpus:,} GPUs (the largest asks for {max(j.gpus for j in large):,})"
    ]


def _failed(outages: Sequence[Outage]) -> list[str]:
    return [f"{len(outages):,} failures of {len({o.node for o in outages}):,} nodes"] if outages else []
