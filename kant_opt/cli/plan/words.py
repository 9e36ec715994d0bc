"""A plan in words, run by run and reason by reason: what the terminal and the page both tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from kant_opt.cli.plan.clock import Clock, span
from kant_opt.cli.text import fold, gpus, many, percent, some
from kant_opt.metrics.admitted import pod_gpu_milli
from kant_opt.metrics.occupancy import Occupancy, occupancy
from kant_opt.schema import Plan, PlannedJob, Request, UnplannedJob, Wait

WITHOUT_START = {
    "impossible": "impossible: no room even on the empty fabric",
    "quota": "over quota: the queue may not use that much",
    "reserved": "closed off: reservations are in the way",
    "unknown_end": "in use without end: a job in the way has no walltime",
    "after": "to start after jobs of which no end is known",
    "order": "behind a job that has no start, in an order that nobody leaves",
    "held": "kept for a job that comes first",
    "choice": "waiting for a better place",
    "room": "no room comes free",
    "horizon": "not within the plan's time",
    "not_found": "not found within the limit, which is no proof that there is no room",
}
"""Why a job has no start, as the heading over the jobs it befell; the most final one first."""

_WAITS = {
    "room": "room in use by {jobs}",
    "held": "free now, but held for {first}",
    "order": "not before {jobs}",
    "after": "after {jobs}",
    "unknown_end": "in the way, end unknown: {jobs}",
    "reserved": "closed by a reservation",
    "quota": "quota in use by {jobs}",
    "choice": "the place is better then",
    "horizon": "beyond the plan's time",
    "impossible": "impossible before",
    "not_found": "nothing earlier found within the limit",
}
"""Why a job starts when it does, short enough for a table; the plan itself has whole sentences."""


@dataclass(frozen=True)
class RunWords:
    """One run as the cells of a table."""

    job: str
    gpus: str
    start: str
    stamp: str
    length: str
    nodes: str
    where: str
    why: str
    """Why it waits, and what is special about it."""


class PlanWords:
    """A plan beside its request."""

    def __init__(self, request: Request, plan: Plan) -> None:
        self.request, self.plan, self.clock = request, plan, Clock(plan.now_s)
        self.nodes = {node.name: node for node in request.nodes}
        self._podsets = {(job.name, podset.name): podset for job in request.jobs for podset in job.podsets}
        self._told: dict[tuple[str, int], RunWords] = {}
        self._starts: dict[str, int] = {}
        for run in plan.jobs:
            self._starts.setdefault(run.job, run.start_s)

    # -- all of it ---------------------------------------------------------------------------------

    def summary(self) -> str:
        """Return how many jobs start now, later or not at all."""
        now = sum(start == self.plan.now_s for start in self._starts.values())
        told = [f"{now:,} of {many(len(self.request.jobs), 'gang')} start now", f"{len(self._starts) - now:,} later"]
        if self.plan.unplanned:
            told.append(f"{len(self.plan.unplanned):,} have no start")
        return ", ".join(told)

    @property
    def policy(self) -> str:
        """Return the names of policy and order."""
        return f"{self.plan.policy}, by {self.plan.order}"

    @cached_property
    def occupancy(self) -> Occupancy:
        """What is in use over time."""
        return occupancy(self.request, self.plan)

    @property
    def window(self) -> tuple[int, int]:
        """From now to the last end that is known of what the plan starts, at least an instant."""
        ends = [run.end_s or run.start_s for run in self.plan.jobs]
        if not ends:
            ends = [alloc.until_s for alloc in self.request.allocations if alloc.until_s is not None]
        return self.plan.now_s, max([self.plan.now_s + 1, *ends])

    def use(self, used: Occupancy) -> str:
        """Return the allocation ratio now and over the plan's time."""
        now, end = self.window
        ratio = used.used_milli[0] / used.healthy_milli if used.healthy_milli else None
        return f"{percent(ratio)} now, {percent(used.mean(now, end))} over {span(end - now)}"

    # -- runs --------------------------------------------------------------------------------------

    def milli_on(self, run: PlannedJob) -> dict[str, int]:
        """Return node -> thousandths of a GPU that a run takes there."""
        found: dict[str, int] = {}
        for entry in run.pods:
            each = pod_gpu_milli(self._podsets[run.job, entry.podset], self.nodes[entry.node])
            found[entry.node] = found.get(entry.node, 0) + entry.count * each
        return found

    def run(self, run: PlannedJob) -> RunWords:
        """Return a run's cells."""
        key = run.job, run.start_s
        if key not in self._told:
            self._told[key] = self._words_of(run)
        return self._told[key]

    def _words_of(self, run: PlannedJob) -> RunWords:
        return RunWords(
            job=run.job,
            gpus=gpus(sum(self.milli_on(run).values())),
            start=self.clock.away(run.start_s),
            stamp=self.clock.stamp(run.start_s),
            length="unknown" if run.end_s is None else span(run.end_s - run.start_s),
            nodes=f"{len(run.nodes):,}",
            where=fold(run.nodes),
            why="; ".join(self._special(run)),
        )

    def _special(self, run: PlannedJob) -> Iterator[str]:
        if run.wait is not None:
            yield self.wait(run.wait)
        if run.backfilled:
            yield "backfilled"
        if run.evicted_for:
            yield f"has to leave for {run.evicted_for}"

    def wait(self, wait: Wait) -> str:
        """Return why a run does not start earlier."""
        text = _WAITS[wait.kind]
        if not wait.jobs and "{" in text:
            return "no room earlier" if wait.kind == "room" else text.split(" {")[0].removesuffix(" by")
        first = wait.jobs[0] if wait.jobs else ""
        start = self._starts.get(first)
        away = "" if start is None else f" ({self.clock.away(start)})"
        return text.replace("{first}", first + away).replace("{jobs}", some(wait.jobs, 3))

    # -- jobs without a start ----------------------------------------------------------------------

    def without_start(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a heading and its items; jobs whose reasons differ in their name only share an item."""
        for kind, meaning in WITHOUT_START.items():
            of_kind = [entry for entry in self.plan.unplanned if entry.wait.kind == kind]
            if of_kind:
                alike: dict[str, list[str]] = {}
                for entry in of_kind:
                    alike.setdefault(self._reason(entry), []).append(entry.job)
                yield f"No start ({len(of_kind)}), {meaning}", [f"{_jobs(js)}: {text}" for text, js in alike.items()]

    def _reason(self, entry: UnplannedJob) -> str:
        wait = entry.wait
        if wait.kind == "horizon":  # its sentence tells seconds of the clock
            return "does not start in time" if wait.until_s is None else f"would start {self.clock.away(wait.until_s)}"
        return wait.sentence.removeprefix(f"job {entry.job!r} ").removeprefix("waits: ")


def _jobs(names: Sequence[str]) -> str:
    return some(names, 8)
