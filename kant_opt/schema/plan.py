"""The plan: when and where each queued job starts, or why it has no start."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from kant_opt.schema.base import Frozen, Integer, Name, Seconds, check_unique
from kant_opt.schema.outcome import Flag, LevelValue, RunRecord, Status
from kant_opt.schema.placement import PlacedPods

WaitKind = Literal[
    "room",
    "held",
    "order",
    "after",
    "unknown_end",
    "reserved",
    "quota",
    "choice",
    "horizon",
    "impossible",
    "not_found",
]
"""room: taken by jobs that run or start earlier. held: there is room now, but it is kept for a job that comes first.
order: the policy starts nobody before the jobs ahead. after: jobs that it is to start after have not ended.
unknown_end: a job in the way has no known end.
reserved: reservations or maintenance close the nodes. quota: its queue's. choice: it could start now, a better place
later is worth the wait. horizon: nothing found before the plan's end. impossible: not even on the empty fabric.
not_found: the search's limit was reached; no proof that it cannot."""


class Wait(Frozen):
    """Why a job does not start at once."""

    kind: WaitKind
    until_s: Seconds | None = None
    """When the cause ends, where that is known."""
    jobs: tuple[Name, ...] = ()
    """The jobs that it waits for, a handful at most."""
    nodes: tuple[Name, ...] = ()
    """The nodes in question, a handful at most."""
    sentence: str


class PlannedJob(Frozen):
    """One run of one job: on these nodes and GPUs in [start_s, end_s)."""

    job: Name
    start_s: Seconds
    end_s: Seconds | None
    """Start plus walltime, or when it is evicted; None: unknown."""
    pods: tuple[PlacedPods, ...] = ()
    evicted_for: str = ""
    """The job for which this one has to leave at `end_s`, before its time; empty: it runs to its end."""
    backfilled: bool = False
    """It starts before a job that was ahead of it in the queue."""
    wait: Wait | None = None
    """Why it does not start earlier; None: it starts at once."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes used, in order of first use."""
        return tuple(dict.fromkeys(p.node for p in self.pods))

    @model_validator(mode="after")
    def _window_is_forward(self) -> Self:
        if self.end_s is not None and self.end_s < self.start_s:
            raise ValueError(f"job {self.job!r} ends at {self.end_s}, before its start at {self.start_s}")
        return self


class UnplannedJob(Frozen):
    """A queued job without a start."""

    job: Name
    wait: Wait


class Eviction(Frozen):
    """A running job that has to leave, so that another can start."""

    job: Name
    at_s: Seconds
    for_job: Name
    lost_gpu_s: Integer = 0
    """GPU-seconds of its work that are lost, as far as its start is known."""


class Plan(Frozen):
    """A start and a place, or a reason, for every job of the queue. Times are of the request's clock."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    status: Status
    """OPTIMAL: every level is proven. FEASIBLE: jobs have starts. INFEASIBLE: no job can ever start."""
    policy: str
    order: str
    now_s: Seconds
    horizon_s: Seconds | None = None
    """No job starts at or after it; None: no such limit."""
    jobs: tuple[PlannedJob, ...] = ()
    """By start, then in the order of the queue. A job has several runs where it is evicted and starts again."""
    unplanned: tuple[UnplannedJob, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    """Of jobs that run at `now_s`; those of the plan's own jobs stand in their runs."""
    levels: tuple[LevelValue, ...] = ()
    """What the plan comes to, with what is proven possible."""
    flags: tuple[Flag, ...] = ()
    run: RunRecord

    def of(self, job: str) -> PlannedJob | None:
        """Return the run of `job` that is not cut short, None where it has none. Costs one pass over the jobs."""
        return next((run for run in reversed(self.jobs) if run.job == job and not run.evicted_for), None)

    @model_validator(mode="after")
    def _jobs_once(self) -> Self:
        runs = [(run.job, run.start_s) for run in self.jobs]
        check_unique("planned run", (f"{job} at {start}" for job, start in runs))
        check_unique("unplanned job", (u.job for u in self.unplanned))
        check_unique("evicted job", (e.job for e in self.evictions))
        return self


ChangeKind = Literal["new", "gone", "earlier", "later", "moved", "lost", "won"]
"""new, gone: it is in one queue only. earlier, later: its start. moved: same start, other pods.
lost, won: it has no start any more, or has one now."""


class PlanChange(Frozen):
    """What became of one job between two plans."""

    job: Name
    kind: ChangeKind
    before_s: Seconds | None = None
    after_s: Seconds | None = None
    why: str = ""


class PlanDiff(Frozen):
    """The changes from one plan to the next, in the order of the new plan; jobs unchanged are counted only."""

    changes: tuple[PlanChange, ...] = ()
    unchanged: int = 0
