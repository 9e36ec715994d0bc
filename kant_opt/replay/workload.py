"""From a trace to what is replayed: which jobs, how fast they come, how long they may run, in how many pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from kant_opt.errors import InputError
from kant_opt.io.traces import Trace, TraceJob
from kant_opt.replay.predict import predicted_lengths
from kant_opt.schema import Job, PodSet

Walltimes = Literal["asked", "exact", "predicted"]
"""What the policy is told: what users asked for (their run time where they asked for nothing), how long the job will
really run, or a prediction from the user's last jobs, never below the run time (see `predict`)."""


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """One job ready to be replayed."""

    name: str
    """Unique."""
    trace: TraceJob
    submit_s: int
    run_s: int
    walltime_s: int
    """What the policy knows, at least run_s."""

    @property
    def gpus(self) -> int:
        """GPUs in all, a share as 1."""
        return self.trace.gpus


@dataclass(frozen=True)
class Workload:
    """The jobs replayed, in order of submission, and what became of the others."""

    jobs: tuple[ReplayJob, ...]
    counts: dict[str, int]
    """replayed; cancelled (before they ran), no_time (they never ran, or nobody knows how long), no_gpus."""
    notes: tuple[str, ...]

    @property
    def span(self) -> tuple[int, int]:
        """First and last submission."""
        return (self.jobs[0].submit_s, self.jobs[-1].submit_s) if self.jobs else (0, 0)

    def load(self, gpus: int) -> float:
        """Return GPU-seconds of all jobs / (GPUs x span of submissions)."""
        first, last = self.span
        work = sum(job.run_s * job.gpus for job in self.jobs)
        return work / (gpus * max(1, last - first)) if gpus else 0.0


def workload(trace: Trace, *, walltimes: Walltimes = "asked", arrivals: float = 1.0) -> Workload:
    """Return the jobs of a trace that ran and asked for GPUs; times between submissions are divided by `arrivals`.

    A run longer than what was asked for is cut to it, as a cluster that keeps to walltimes would. Raises InputError
    for a speed of arrivals that is not positive.
    """
    if not (isfinite(arrivals) and arrivals > 0):
        raise InputError(f"arrivals {arrivals} times as fast", way_out="give a positive number; 1 is as recorded")
    counts: Counter[str] = Counter(replayed=0)
    kept: list[TraceJob] = []
    for job in trace:
        why = _why_left_out(job)
        counts[why or "replayed"] += 1
        if not why:
            kept.append(job)
    cut = unasked = 0
    lengths = predicted_lengths(kept) if walltimes == "predicted" else None
    seen: Counter[str] = Counter()
    jobs = []
    first = kept[0].submit_s if kept else 0
    for i, job in enumerate(kept):
        run = job.run_s or 0
        if walltimes == "asked" and job.asked_s is None:
            unasked += 1
        if walltimes != "exact" and job.asked_s is not None and run > job.asked_s:
            run, cut = job.asked_s, cut + 1
        length = run if walltimes == "exact" or job.asked_s is None else job.asked_s
        if lengths is not None:
            length = max(run, lengths[i])
        submit = job.submit_s if arrivals == 1 else first + round((job.submit_s - first) / arrivals)
        seen[job.name] += 1
        name = job.name if seen[job.name] == 1 else f"{job.name}#{seen[job.name]}"
        jobs.append(ReplayJob(name, job, submit, run, length))
    return Workload(tuple(jobs), dict(counts), (*trace.notes, *_notes(cut, unasked, len(kept))))


def as_job(job: ReplayJob, node_gpus: int) -> Job:
    """Return the gang of a job on nodes of `node_gpus`: a podset of equal pods.

    Where the trace does not tell the pods: one, if it fits on a node; else whole nodes where they come out even, else
    pods of the largest size that divides its GPUs.
    """
    trace = job.trace
    if trace.gpu_milli is not None:
        podset = PodSet(count=1, gpu_milli=trace.gpu_milli)
    else:
        pods = trace.pods if trace.pods is not None else default_pods(trace.gpus, node_gpus)
        podset = PodSet(count=pods, gpus=trace.gpus // pods)
    return Job(
        name=job.name,
        podsets=(podset,),
        submit_s=job.submit_s,
        walltime_s=job.walltime_s,
        tenant=trace.user,
        kind="inference" if trace.inference else "training",
    )


def default_pods(gpus: int, node_gpus: int) -> int:
    """Return how many equal pods a job of so many GPUs has on such nodes.

    >>> [default_pods(gpus, 8) for gpus in (4, 16, 12, 13)]
    [1, 2, 2, 13]
    """
    if gpus <= node_gpus:
        return 1
    return gpus // next(size for size in range(node_gpus, 0, -1) if gpus % size == 0)


def _why_left_out(job: TraceJob) -> str:
    if job.gpus == 0:
        return "no_gpus"
    if not job.run_s:
        return "cancelled" if job.state == "cancelled" else "no_time"
    return ""


def _notes(cut: int, unasked: int, jobs: int) -> list[str]:
    notes = []
    if cut:
        notes.append(f"{cut:,} of {jobs:,} jobs ran longer than they asked for; cut to what they asked for")
    if unasked:
        notes.append(f"{unasked:,} of {jobs:,} jobs asked for no time; their real run time stands for it")
    return notes
