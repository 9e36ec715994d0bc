"""Logs of the Parallel Workloads Archive as tickets on interchangeable processors, and what a policy makes of them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kant_opt.planning import ORDERS, make_policy
from kant_opt.planning.board import Board
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.ticket import Ticket
from kant_opt.planning.timeline import run_timeline

PROCESSORS = {"KTH-SP2": 100, "CTC-SP2": 338, "SDSC-SP2": 128, "SDSC-BLUE": 1152}


@dataclass(frozen=True)
class Recorded:
    """A job of a log with the wait that the published schedule gave it."""

    number: int
    submit: int
    wait: int
    run: int
    processors: int
    asked: int


def read_log(path: Path) -> list[Recorded]:
    """Return the jobs of a file in the standard workload format, in the order of submission."""
    found = []
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if line.strip() and not line.startswith(";"):
                f = [int(float(word)) for word in line.split()]
                found.append(Recorded(f[0], f[1], f[2], f[3], f[7] if f[7] > 0 else f[4], f[8]))
    return sorted(found, key=lambda job: (job.submit, job.number))


def tickets_of(jobs: Sequence[Recorded], *, clairvoyant: bool) -> list[Ticket]:
    """Return tickets that ask for the time they will run (clairvoyant), or for the time their users asked for."""
    return [
        Ticket(str(job.number), i, job.submit, job.run if clairvoyant else job.asked, job.processors, run=job.run)
        for i, job in enumerate(jobs)
    ]


def starts_under(policy: str, tickets: Sequence[Ticket], processors: int) -> list[int]:
    """Return each ticket's start; every one of them must have started once."""
    board = Board(CountingSpace(processors), ORDERS["fifo"]())
    run_timeline(board, make_policy(policy), tickets, start=min((t.submit for t in tickets), default=0))
    starts = {run.ticket.position: run.start for run in board.runs}
    assert len(board.runs) == len(starts) == len(tickets)
    return [starts[i] for i in range(len(tickets))]


def mean_wait(jobs: Sequence[Recorded], starts: Sequence[int]) -> float:
    """Return the mean of start less submission, seconds."""
    return sum(start - job.submit for job, start in zip(jobs, starts, strict=True)) / len(jobs)
