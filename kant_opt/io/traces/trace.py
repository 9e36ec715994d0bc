"""A recorded workload: jobs with the time they came and the time they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from kant_opt.errors import UnknownName

JobState = Literal["done", "failed", "cancelled", "waiting", "running", "unknown"]
"""How it ended in the recording. waiting and running: it had not ended when the recording did."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job of a trace. For logs of processors, read processors where it says GPUs."""

    name: str
    submit_s: int
    run_s: int | None
    """How long it ran, rounded up; None: it never did, or nobody knows."""
    gpus: int
    """In all; a share of one GPU counts as 1."""
    asked_s: int | None = None
    """How long its user said it may run; None where users say nothing."""
    pods: int | None = None
    """Pods of equal size, which divides `gpus`; None: not recorded."""
    gpu_milli: int | None = None
    """A share of one GPU, thousandths; then there is one pod."""
    user: str = ""
    queue: str = ""
    state: JobState = "unknown"
    wait_s: int | None = None
    """How long it waited in the recording."""
    inference: bool = False
    """A service, not training."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that could not be read."""

    line: int
    """From 1."""
    reason: str


@dataclass(frozen=True)
class Trace:
    """The jobs of one recording in order of submission, equals in the order of the file."""

    name: str
    format: str
    jobs: tuple[TraceJob, ...]
    capacity: int | None = None
    """GPUs (processors) of the cluster it was recorded on, where the file says so."""
    bad_lines: tuple[BadLine, ...] = ()
    """Lines left out."""
    notes: tuple[str, ...] = ()

    @property
    def span_s(self) -> int:
        """Seconds from the first submission to the last."""
        return self.jobs[-1].submit_s - self.jobs[0].submit_s if self.jobs else 0

    def states(self) -> Counter[str]:
        """Return how many jobs ended how."""
        return Counter(job.state for job in self.jobs)

    def of_queue(self, queue: str) -> Trace:
        """Return the jobs of one queue; raises UnknownName with the queues there are."""
        jobs = tuple(job for job in self.jobs if job.queue == queue)
        if not jobs:
            raise UnknownName("queue", queue, {job.queue for job in self.jobs}, place=self.name)
        return replace(self, jobs=jobs, name=f"{self.name}, queue {queue}", capacity=None)

    def first(self, number: int) -> Trace:
        """Return the first jobs alone."""
        return replace(self, jobs=self.jobs[:number])

    def __iter__(self) -> Iterator[TraceJob]:
        return iter(self.jobs)
