"""What a replay comes to: what became of every job, the measures of each policy, and tidy tables of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from kant_opt.metrics.over_time import Series, Shares
from kant_opt.metrics.waits import WaitClass

JobFate = Literal["ended", "running", "waiting", "impossible"]
"""At the end of the replay. impossible: it never fits, not even alone, and held up nobody."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """What became of one job under one policy. Jobs of the trace that were not replayed are not here."""

    job: str
    submit_s: int
    run_s: int
    """How long it ran, or would have run."""
    walltime_s: int | None
    """What the policy was told it may take at most."""
    gpus: int
    pods: int
    fate: JobFate
    start_s: int | None = None
    """Its last start."""
    end_s: int | None = None
    user: str = ""
    queue: str = ""
    backfilled: bool = False
    evictions: int = 0
    """Runs that were ended for another job before this one."""
    where: tuple[tuple[int, int], ...] = ()
    """(index into `ReplayResult.nodes`, GPU thousandths) pairs; empty where only numbers were looked at."""
    nodes: int | None = None
    """Nodes used; None where only numbers were looked at."""
    least_nodes: int | None = None
    """The fewest nodes it could use on the empty fabric (a bound, never above the true least)."""
    leaves: int | None = None
    """Domains of the innermost level above the node that it used; None where there is none."""
    least_leaves: int | None = None
    stretch: float | None = None
    """Estimated step time / step time of the least possible placement, at least 1: see metrics.jtted."""
    counted: bool = True
    """Submitted within the window that is measured, not in the warm-up or cool-down."""

    @property
    def wait_s(self) -> int | None:
        """Start - submission; None where it never started."""
        return None if self.start_s is None else self.start_s - self.submit_s


@dataclass(frozen=True, slots=True)
class StretchClass:
    """JTTED of one size class: how much further than necessary its jobs were stretched. Means over jobs."""

    sizes: str
    """As in WaitClass."""
    jobs: int
    nodes_ratio: float
    """Nodes used / fewest possible."""
    leaves_ratio: float | None
    """Leaves used / fewest possible; None in a flat fabric."""
    slowdown: float
    """Estimated step time / least possible."""
    slowdown_p99: float
    slowdown_max: float


@dataclass(frozen=True)
class PolicyRun:
    """One policy on one trace: all measures over the window, and every job."""

    name: str
    """What tables call it: "easy", "easy, binpack", ..."""
    policy: str
    order: str
    backend: str
    """Who placed the gangs; empty where only numbers were looked at."""
    shares: Shares
    series: Series
    waits: tuple[WaitClass, ...]
    """JWTD: all jobs first, then by size class."""
    stretch: tuple[StretchClass, ...]
    """JTTED: all jobs first, then by size class; empty where only numbers were looked at."""
    bounded_slowdown: float | None
    """Mean over the jobs of the window that started, with at least 10 s of run time."""
    makespan_s: int
    """From the first submission to the last end."""
    backfilled: int
    evictions: int
    seconds: float
    """CPU seconds that the loop took; not part of the answer."""
    jobs: tuple[JobRow, ...]
    """In order of submission."""

    @property
    def mean_wait_s(self) -> float | None:
        """Mean wait of all jobs of the window; None where it has none."""
        return self.waits[0].mean_s if self.waits else None

    def used_at(self, time_s: int) -> dict[int, int]:
        """Return GPU thousandths in use at one instant by node index; for a heat map."""
        found: dict[int, int] = {}
        for job in self.jobs:
            if job.start_s is not None and job.start_s <= time_s and (job.end_s is None or time_s < job.end_s):
                for node, milli in job.where:
                    found[node] = found.get(node, 0) + milli
        return found


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node of the fabric: its path, outermost domain first, and its GPUs."""

    name: str
    path: tuple[str, ...]
    gpus: int


@dataclass(frozen=True)
class Scaling:
    """What was changed between the trace and the replay. A ratio of 1 is as recorded."""

    arrivals: float = 1.0
    """Times between submissions were divided by this: 4 brings the jobs four times as fast."""
    gpus: int = 0
    """GPUs of the replay."""
    walltimes: str = "asked"
    """asked, exact or predicted."""
    load: float = 0.0
    """GPU-seconds of all jobs / (GPUs x span of submissions), after scaling."""


@dataclass(frozen=True)
class ReplayResult:
    """One trace under several policies. Equal inputs give equal results, `seconds` apart."""

    trace: str
    seed: int
    levels: tuple[str, ...]
    """Of the fabric, outermost first, without `node`; empty where only numbers were looked at."""
    nodes: tuple[NodeRow, ...]
    """Empty where only numbers were looked at."""
    scaling: Scaling
    window: tuple[int, int]
    """[start, end) that is measured, seconds.

    Without warm-up and cool-down every policy is measured to its own last end; then this is the latest.
    """
    counts: dict[str, int]
    """Jobs of the trace by what was done with them: replayed, cancelled, no_time, no_gpus, too_large, ..."""
    notes: tuple[str, ...]
    runs: tuple[PolicyRun, ...]

    def tables(self) -> dict[str, Table]:
        """Return all as tidy tables: `policies`, `waits`, `stretch`, `series`, `jobs`."""
        return {
            "policies": Table.of(self._policies()),
            "waits": Table.of({"policy": run.name, **_flat(row)} for run in self.runs for row in run.waits),
            "stretch": Table.of({"policy": run.name, **_flat(row)} for run in self.runs for row in run.stretch),
            "series": Table.of(self._series()),
            "jobs": Table.of({"policy": run.name, **_flat(row)} for run in self.runs for row in run.jobs),
        }

    def _policies(self) -> Iterator[dict[str, Any]]:
        for run in self.runs:
            yield {
                "policy": run.name,
                "seed": self.seed,
                "jobs": run.waits[0].jobs if run.waits else 0,
                "waiting": run.waits[0].waiting if run.waits else 0,
                **_flat(run.shares),
                "mean_wait_s": run.mean_wait_s,
                "p99_wait_s": run.waits[0].p99_s if run.waits else None,
                "bounded_slowdown": run.bounded_slowdown,
                "makespan_s": run.makespan_s,
                "mean_slowdown": run.stretch[0].slowdown if run.stretch else None,
                "backfilled": run.backfilled,
                "evictions": run.evictions,
            }

    def _series(self) -> Iterator[dict[str, Any]]:
        for run in self.runs:
            s = run.series
            for i, start in enumerate(s.start_s):
                yield {
                    "policy": run.name,
                    "start_s": start,
                    "gar": s.gar[i],
                    "sor": s.sor[i],
                    "gfr": None if s.gfr is None else s.gfr[i],
                    "running_jobs": s.running_jobs[i],
                    "waiting_jobs": s.waiting_jobs[i],
                    "waiting_gpus": s.waiting_gpus[i],
                }


@dataclass(frozen=True)
class Table:
    """Rows of one kind: every column has one meaning and one type, None where a value is unknown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, rows: Any) -> Table:
        """Return the table of dictionaries with equal keys."""
        listed = list(rows)
        columns = tuple(listed[0]) if listed else ()
        return cls(columns, tuple(tuple(row.values()) for row in listed))


def _flat(row: Any) -> dict[str, Any]:
    """Return the plain fields of a dataclass."""
    return {f.name: getattr(row, f.name) for f in fields(row) if f.name != "where"}
