"""The independent judge of plans: it walks the timeline once more and knows nothing of how a plan was made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from kant_opt.fabric import Fabric, build_fabric
from kant_opt.schema import Allocation, Eviction, Hold, Job, PlacedJob, Placement, Plan, PlannedJob, Request
from kant_opt.verify.gpus import GpuLedger
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.verifier import check
from kant_opt.verify.violation import Violation

PLAN_RULES = ("known", "once", "start", "length", "after", "evicted", "reserved")
"""Rules of time; at every start all rules of a placement count too, beside the jobs that run then.

known: jobs of the queue, each with a run or a reason, not both. once: runs of a job do not overlap, and only the last
is uncut. start: not before now or its submission, and before the horizon. length: the end is the start plus the
walltime (at least a second), unknown where that is, earlier only where the job is evicted. after: the jobs to start
after have ended. evicted: only preemptible jobs are, none of a group, while they run, for a job or a reservation that
starts then or later. reserved: no run lasts into a reservation of others.
"""


def verify_plan(request: Request, plan: Plan, fabric: Fabric | None = None) -> tuple[Violation, ...]:
    """Return every rule that `plan` breaks; empty means valid.

    Running jobs are taken to end when the request says, overdue ones a second from now, and to keep their GPUs; pods
    of jobs that wait for more stay as long as it takes.
    Costs a verification of a placement per time at which jobs start, of the nodes in question where no rule reaches
    further.
    """
    fabric = build_fabric(request.fabric, request.nodes) if fabric is None else fabric
    walk = _Walk(request, plan, fabric)
    return (*walk.times(), *walk.placements())


@dataclass(frozen=True)
class _Running:
    """What a job holds in [start, end); `end` None: for ever."""

    job: str
    holds: tuple[Hold, ...]
    start: int
    end: int | None
    source: Allocation | None = None

    def is_on(self, time: int) -> bool:
        return self.start <= time and (self.end is None or time < self.end)


class _Walk:
    def __init__(self, request: Request, plan: Plan, fabric: Fabric) -> None:
        self.request, self.plan, self.fabric = request, plan, fabric
        self.index = RequestIndex(request, fabric)
        self.jobs = self.index.jobs
        self.runs: dict[str, list[PlannedJob]] = defaultdict(list)
        for run in sorted(plan.jobs, key=lambda r: r.start_s):
            self.runs[run.job].append(run)
        self.evictions = {eviction.job: eviction for eviction in plan.evictions}
        self.on_node: dict[str, list[_Running]] = defaultdict(list)
        self.of_job: dict[str, list[_Running]] = defaultdict(list)
        self.running = [self._still(alloc) for alloc in _named(request, self.index)]

    # -- rules of time -----------------------------------------------------------------------------

    def times(self) -> Iterator[Violation]:
        """Yield what is wrong with the starts and ends."""
        yield from self._known()
        for job, runs in self.runs.items():
            if job in self.jobs:
                yield from self._once(job, runs)
                for run in runs:
                    yield from self._start(self.jobs[job], run)
                    yield from self._length(self.jobs[job], run)
                    yield from self._after(self.jobs[job], run)
                    yield from self._reserved(run)
        for eviction in self.plan.evictions:
            yield from self._runs_till(eviction)
            yield from self._evicted(eviction.job, eviction.for_job, eviction.at_s)
        for run in self.plan.jobs:
            if run.evicted_for and run.end_s is not None and run.job in self.jobs:
                yield from self._evicted(run.job, run.evicted_for, run.end_s)

    def _known(self) -> Iterator[Violation]:
        unplanned = {entry.job for entry in self.plan.unplanned}
        for stranger in sorted({*self.runs, *unplanned} - self.jobs.keys()):
            yield Violation("known", stranger, "no job of the request has this name")
        for name, job in self.jobs.items():
            done = any(not run.evicted_for for run in self.runs.get(name, ()))
            if done and name in unplanned:
                yield Violation("known", name, "it has a start and a reason for having none")
            if not done and name not in unplanned and not self.index.needs_nothing(job):
                yield Violation("known", name, "it has neither a start nor a reason")

    def _once(self, job: str, runs: list[PlannedJob]) -> Iterator[Violation]:
        for run, following in pairwise(runs):
            if not run.evicted_for:
                yield Violation("once", job, f"it starts again at {following.start_s}, though its run is not cut short")
            elif run.end_s is None or following.start_s < run.end_s:
                yield Violation("once", job, f"it starts at {following.start_s}, before its run before has ended")

    def _start(self, job: Job, run: PlannedJob) -> Iterator[Violation]:
        earliest = max(self.request.now_s, self.plan.now_s, job.submit_s)
        if run.start_s < earliest:
            yield Violation("start", job.name, f"it starts at {run.start_s}, before {earliest}")
        if self.plan.horizon_s is not None and run.start_s >= self.plan.horizon_s:
            yield Violation("start", job.name, f"it starts at {run.start_s}, the plan ends at {self.plan.horizon_s}")

    def _length(self, job: Job, run: PlannedJob) -> Iterator[Violation]:
        full = None if job.walltime_s is None else run.start_s + max(1, job.walltime_s)
        if run.evicted_for:
            if run.end_s is None or (full is not None and run.end_s >= full):
                yield Violation("length", job.name, f"it is evicted at {run.end_s}, its run ends at {full}")
        elif run.end_s != full:
            yield Violation("length", job.name, f"its run ends at {run.end_s}, by its walltime at {full}")

    def _after(self, job: Job, run: PlannedJob) -> Iterator[Violation]:
        ends = {held.job: held.end for held in self.running if held.source is not None}
        for other in job.after:
            runs = self.runs.get(other, [])
            if other in self.jobs and not self.index.needs_nothing(self.jobs[other]):
                end = runs[-1].end_s if runs and not runs[-1].evicted_for else None
            else:
                end = ends.get(other)
            if end is None or end > run.start_s:
                yield Violation("after", job.name, f"it starts at {run.start_s}, {other!r} ends at {end}")

    def _reserved(self, run: PlannedJob) -> Iterator[Violation]:
        for node in run.nodes:
            for held in self.index.reservations.get(node, ()):
                into = run.end_s is None or held.start_s < run.end_s
                if run.end_s is None and self.jobs[run.job].preemptible:
                    into = held.start_s <= run.start_s  # it can leave at any time, and the plan does not say when
                if run.job not in held.jobs and into and (held.end_s is None or run.start_s < held.end_s):
                    yield Violation("reserved", run.job, f"its run on {node!r} lasts into reservation {held.name!r}")

    def _runs_till(self, eviction: Eviction) -> Iterator[Violation]:
        """Yield what is wrong with the time at which a running job leaves."""
        job, at, alloc = eviction.job, eviction.at_s, self.index.allocations.get(eviction.job)
        now = max(self.request.now_s, self.plan.now_s)
        if self._grows(job):
            yield Violation("evicted", job, "it waits for more pods, those that run stay")
        elif at < now:
            yield Violation("evicted", job, f"it leaves at {at}, before {now}")
        elif alloc is not None and alloc.until_s is not None and at >= max(alloc.until_s, self.request.now_s + 1):
            yield Violation("evicted", job, f"it leaves at {at}, it ends at {alloc.until_s}")

    def _evicted(self, job: str, other: str, at: int) -> Iterator[Violation]:
        known = self.jobs.get(job)
        alloc = self.index.allocations.get(job)
        held = known if known is not None else alloc
        if held is None:
            yield Violation("evicted", job, "no running or queued job has this name")
        elif not (held.preemptible or (alloc is not None and alloc.preemptible)):
            yield Violation("evicted", job, "it is not preemptible")
        elif job in self._bound:
            yield Violation("evicted", job, "its group runs as a whole")
        elif not self._begins(other, at):
            yield Violation("evicted", job, f"it leaves at {at} for {other!r}, which does not start then or later")

    @cached_property
    def _bound(self) -> set[str]:
        """Queued jobs of all-or-none groups with others that are queued too."""
        waiting = {name for name, job in self.jobs.items() if not self.index.needs_nothing(job)}
        groups = [waiting.intersection(group.jobs) for group in self.request.groups if group.all_or_none]
        return {name for group in groups if len(group) > 1 for name in group}

    def _begins(self, name: str, at: int) -> bool:
        """Return whether a run of the job, or the reservation, of this name starts at `at` or later."""
        if any(run.start_s >= at for run in self.runs.get(name, ())):
            return True
        return any(held.name == name and held.start_s >= at for held in self.request.reservations)

    # -- rules of places ---------------------------------------------------------------------------

    def placements(self) -> Iterator[Violation]:
        """Yield what is wrong with the places, start by start in the order of time."""
        starting: dict[int, list[PlannedJob]] = defaultdict(list)
        for run in self.plan.jobs:
            if run.job in self.jobs:
                starting[run.start_s].append(run)
        for held in self.running:
            self._enter(held)
        for time in sorted(starting):
            yield from self._at(time, starting[time])
            for run in starting[time]:
                self._enter(self._begun(run))

    def _enter(self, held: _Running) -> None:
        """Take note of what begins to run, by node."""
        for node in {hold.node for hold in held.holds}:
            self.on_node[node].append(held)
        self.of_job[held.job].append(held)

    def _on(self, time: int, nodes: Iterable[str]) -> list[_Running]:
        """Return what runs at `time` on the nodes, and forget there what has ended."""
        found: dict[int, _Running] = {}
        for node in sorted(nodes):
            self.on_node[node] = [held for held in self.on_node[node] if held.is_on(time)]
            found |= {id(held): held for held in self.on_node[node]}
        return list(found.values())

    def _at(self, time: int, starting: list[PlannedJob]) -> Iterator[Violation]:
        """Yield what the rules of a placement say of the jobs that start at one time."""
        nodes = {node for run in starting for node in run.nodes if node in self.index.nodes}
        nodes |= {h.node for run in starting for held in self.of_job[run.job] if held.is_on(time) for h in held.holds}
        wide = self._reaches_further
        running = self._on(time, self.index.nodes if wide else nodes)
        starts = {run.job for run in starting}
        jobs = tuple(
            _free_of_time(job, over=job.name not in starts and self._is_over(job.name, time))
            for job in (self.request.jobs if wide else [self.jobs[run.job] for run in starting])
        )
        request = self.request.model_copy(
            update={
                "now_s": time,
                "nodes": self.request.nodes if wide else tuple(self.index.nodes[name] for name in sorted(nodes)),
                "jobs": jobs,
                "allocations": tuple(_allocations(running, None if wide else nodes)),
                "reservations": tuple(r for r in self.request.reservations if wide or not nodes.isdisjoint(r.nodes)),
                "groups": self.request.groups if wide else (),
            }
        )
        placement = Placement.model_construct(jobs=tuple(PlacedJob(job=run.job, pods=run.pods) for run in starting))
        for broken in check(RequestIndex(request, self.fabric), placement):
            yield Violation(broken.rule, broken.subject, f"at {time}: {broken.text}")

    def _is_over(self, job: str, time: int) -> bool:
        """Return whether a job has run and does so no more."""
        held = self.of_job[job]
        return bool(held) and not any(one.is_on(time) for one in held)

    @cached_property
    def _reaches_further(self) -> bool:
        """Whether a rule may look at nodes beyond those of the jobs that start."""
        request = self.request
        return bool(
            request.groups
            or request.queues
            or any(job.exclusive_level or any(rule.jobs for rule in job.apart) for job in request.jobs)
            or any(alloc.exclusive_level for alloc in request.allocations)
        )

    def _still(self, alloc: Allocation) -> _Running:
        now = self.request.now_s
        end = None if alloc.until_s is None or self._grows(alloc.job) else max(alloc.until_s, now + 1)
        if alloc.job in self.evictions:
            at = self.evictions[alloc.job].at_s
            end = at if end is None else min(end, at)
        return _Running(alloc.job, alloc.holds, now, end, alloc)

    def _grows(self, job: str) -> bool:
        """Return whether a running job waits for more pods: those that run stay as long as it takes."""
        return job in self.jobs and not self.index.needs_nothing(self.jobs[job])

    def _begun(self, run: PlannedJob) -> _Running:
        job = self.jobs[run.job]
        holds = []
        for entry in run.pods:
            podset = self.index.podsets.get((job.name, entry.podset))
            if podset is None or entry.node not in self.index.nodes:
                continue
            for gpus in entry.gpus or ((),):
                pods = 1 if entry.gpus else entry.count
                holds.append(
                    Hold.model_construct(
                        node=entry.node,
                        pods=pods,
                        podset=podset.name,
                        gpus=pods * podset.gpus,
                        gpu_indices=gpus,
                        gpu_milli=podset.gpu_milli,
                        gpu_memory_mib=podset.gpu_memory_mib,
                        cpu_milli=pods * podset.cpu_milli,
                        memory_bytes=pods * podset.memory_bytes,
                    )
                )
        return _Running(job.name, tuple(holds), run.start_s, run.end_s)


def _free_of_time(job: Job, *, over: bool) -> Job:
    """Return the job as the rules of a placement see it: predecessors are looked at elsewhere, what is over is done."""
    podsets = tuple(p.model_copy(update={"finished": p.count}) for p in job.podsets) if over else job.podsets
    return job.model_copy(update={"after": (), "podsets": podsets})


def _allocations(running: Iterable[_Running], nodes: set[str] | None) -> Iterator[Allocation]:
    """Yield one allocation per job, of its holds on `nodes` (None: all)."""
    holds: dict[str, list[Hold]] = {}
    sources: dict[str, Allocation | None] = {}
    for held in running:
        here = [hold for hold in held.holds if nodes is None or hold.node in nodes]
        if here:
            holds.setdefault(held.job, []).extend(here)
            sources[held.job] = sources.get(held.job) or held.source
    for job, found in holds.items():
        source = sources[job]
        if source is not None:
            yield source.model_copy(update={"holds": tuple(found)})
        else:
            yield Allocation.model_construct(job=job, holds=tuple(found), queue="", exclusive_level=None)


def _named(request: Request, index: RequestIndex) -> Iterator[Allocation]:
    """Yield the running jobs with GPUs named in all holds: those without take the lowest free ones now, and keep them.

    Holds beyond the free GPUs stay as they are: they close the node while they last.
    """
    taken: dict[str, GpuLedger] = {}
    for alloc in request.allocations:
        for hold in alloc.holds:
            if hold.node not in taken:
                node = index.nodes[hold.node]
                taken[hold.node] = GpuLedger.of(node, [h for h in index.holds[hold.node] if h.gpu_indices])
    for alloc in request.allocations:
        holds = []
        for hold in alloc.holds:
            ledger = taken[hold.node]
            free = ledger.free[: hold.gpus]
            if hold.gpu_indices or not hold.gpus or len(free) < hold.gpus:
                holds.append(hold)
                continue
            ledger.used.update(dict.fromkeys(free, ledger.full))
            holds.append(hold.model_copy(update={"gpu_indices": tuple(free)}))
        yield alloc.model_copy(update={"holds": tuple(holds)})
