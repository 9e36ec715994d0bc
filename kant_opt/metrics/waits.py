"""JWTD: how long jobs waited, by size class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kant_opt.metrics.sizes import SIZE_CLASSES, size_class

ALL_SIZES = "all"
SHORT_S = 10
"""Runs shorter than this count as this long in the bounded slowdown, as is usual."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What one job went through, as far as waits are concerned."""

    gpus: int
    wait_s: int
    """Start - submission; so far, where it has not started: a lower bound of what it will be."""
    run_s: int
    started: bool = True


@dataclass(frozen=True, slots=True)
class WaitClass:
    """The waits of the jobs of one size class. Percentiles are waits that some job had (nearest rank)."""

    sizes: str
    """One of SIZE_CLASSES, or `all`."""
    jobs: int
    waiting: int
    """Jobs among them that never started; they count with their wait so far, which is less than the true one."""
    mean_s: float
    p50_s: int
    p90_s: int
    p99_s: int
    max_s: int


def wait_classes(jobs: Iterable[Waited]) -> tuple[WaitClass, ...]:
    """Return the waits of all jobs, then of each size class that has any, small first.

    >>> [(c.sizes, c.jobs, c.mean_s, c.p90_s) for c in wait_classes([Waited(1, 10, 5), Waited(8, 30, 5)])]
    [('all', 2, 20.0, 30), ('1', 1, 10.0, 10), ('8', 1, 30.0, 30)]
    """
    members: dict[str, list[Waited]] = {ALL_SIZES: list(jobs)}
    for job in members[ALL_SIZES]:
        members.setdefault(size_class(job.gpus), []).append(job)
    return tuple(_class(sizes, members[sizes]) for sizes in (ALL_SIZES, *SIZE_CLASSES) if members.get(sizes))


def bounded_slowdown(jobs: Iterable[Waited], short_s: int = SHORT_S) -> float | None:
    """Return the mean of max(1, (wait + run) / max(run, short_s)) over the jobs that started, None where none did.

    Feitelson and Rudolph, JSSPP 1998, doi:10.1007/BFb0053978.
    """
    slow = [max(1.0, (job.wait_s + job.run_s) / max(job.run_s, short_s)) for job in jobs if job.started]
    return sum(slow) / len(slow) if slow else None


def nearest_rank(rising: Sequence[int], percent: int) -> int:
    """Return the least value with at least `percent` of all values at or below it."""
    return rising[max(0, -(-len(rising) * percent // 100) - 1)]


def _class(sizes: str, jobs: Sequence[Waited]) -> WaitClass:
    waits = sorted(job.wait_s for job in jobs)
    return WaitClass(
        sizes=sizes,
        jobs=len(jobs),
        waiting=sum(not job.started for job in jobs),
        mean_s=sum(waits) / len(waits),
        p50_s=nearest_rank(waits, 50),
        p90_s=nearest_rank(waits, 90),
        p99_s=nearest_rank(waits, 99),
        max_s=waits[-1],
    )
