"""Policies side by side: every measure of each, and what one differs from another by, over the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import atan, cos, pi, sin, sqrt
from statistics import fmean, stdev
from typing import Literal

from kant_opt.errors import InputError, UnknownName
from kant_opt.replay.result import PolicyRun, ReplayResult

CONFIDENCE = 0.95

Unit = Literal["share", "seconds", "ratio", "count"]


@dataclass(frozen=True)
class Compared:
    """One measure of a policy beside that of the base, means over the seeds."""

    measure: str
    unit: Unit
    base: float
    value: float
    half_width: float | None
    """Half of the interval of the difference at CONFIDENCE: Student's t over the differences seed by seed.

    None for one seed: the jobs of one replay are no independent sample, so nothing can be said.
    """

    @property
    def difference(self) -> float:
        """value - base."""
        return self.value - self.base

    @property
    def is_clear(self) -> bool:
        """Whether the interval is known and 0 lies outside it."""
        return self.half_width is not None and abs(self.difference) > self.half_width


@dataclass(frozen=True)
class Measure:
    """A number that one run of a policy comes to; None where it has none."""

    name: str
    unit: Unit
    of: Callable[[PolicyRun], float | None]


MEASURES = (
    Measure("jobs", "count", lambda run: run.waits[0].jobs if run.waits else 0),
    Measure("never started", "count", lambda run: run.waits[0].waiting if run.waits else 0),
    Measure("GAR, mean", "share", lambda run: run.shares.gar_mean),
    Measure("SOR", "share", lambda run: run.shares.sor),
    Measure("GFR, mean", "share", lambda run: run.shares.gfr_mean),
    Measure("wait, mean", "seconds", lambda run: run.mean_wait_s),
    Measure("wait, 99 %", "seconds", lambda run: run.waits[0].p99_s if run.waits else None),
    Measure("bounded slowdown", "ratio", lambda run: run.bounded_slowdown),
    Measure("step time / least", "ratio", lambda run: run.stretch[0].slowdown if run.stretch else None),
    Measure("leaves / least", "ratio", lambda run: run.stretch[0].leaves_ratio if run.stretch else None),
    Measure("makespan", "seconds", lambda run: run.makespan_s),
    Measure("backfilled", "count", lambda run: run.backfilled),
    Measure("evictions", "count", lambda run: run.evictions),
)


class SideBySide:
    """Results of the same policies over several seeds."""

    def __init__(self, results: ReplayResult | Sequence[ReplayResult]) -> None:
        """Raises InputError where there is nothing, a seed comes twice, or the policies are not the same."""
        self.results = (results,) if isinstance(results, ReplayResult) else tuple(results)
        if not self.results or not self.results[0].runs:
            raise InputError("no replay to report", way_out="give at least one result with at least one policy")
        self.policies = tuple(run.name for run in self.results[0].runs)
        self.seeds = tuple(result.seed for result in self.results)
        if len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"results with equal seeds, {list(self.seeds)}", way_out="give one result a seed")
        for result in self.results:
            names = tuple(run.name for run in result.runs)
            if names != self.policies:
                raise InputError(
                    f"policies {list(names)} with seed {result.seed}, but {list(self.policies)} with {self.seeds[0]}",
                    way_out="replay the same policies with each seed",
                )
        if len(set(self.policies)) < len(self.policies):
            raise InputError(f"equal names of policies, {list(self.policies)}", way_out="name each differently")

    def runs(self, policy: str) -> list[PolicyRun]:
        """Return a policy's runs, one a seed."""
        if policy not in self.policies:
            raise UnknownName("policy", policy, self.policies)
        at = self.policies.index(policy)
        return [result.runs[at] for result in self.results]

    def mean(self, policy: str, measure: Measure) -> float | None:
        """Return a measure's mean over the seeds; None where a seed has none."""
        values = self._values(policy, measure)
        return fmean(values) if values else None

    def differences(self, policy: str, base: str) -> Iterator[Compared]:
        """Yield every measure that both policies have with each seed."""
        for measure in MEASURES:
            mine, theirs = self._values(policy, measure), self._values(base, measure)
            if mine and theirs:
                by = [a - b for a, b in zip(mine, theirs, strict=True)]
                yield Compared(measure.name, measure.unit, fmean(theirs), fmean(mine), half_width(by))

    def _values(self, policy: str, measure: Measure) -> list[float]:
        found = [measure.of(run) for run in self.runs(policy)]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else []


def half_width(values: Sequence[float], confidence: float = CONFIDENCE) -> float | None:
    """Return half of the t interval of the mean of values that are independent; None for fewer than two.

    >>> round(half_width([1, 2, 3, 4, 5]), 3)
    1.963
    """
    if len(values) < 2:
        return None
    return student_t(len(values) - 1, confidence) * stdev(values) / sqrt(len(values))


def student_t(degrees: int, confidence: float) -> float:
    """Return the t that Student's distribution stays within, on both sides, with this probability below 1.

    >>> round(student_t(4, 0.95), 4)
    2.7764
    """
    low, high = 0.0, 1.0
    while _within(high, degrees) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < confidence else (low, middle)
    return high


def _within(t: float, degrees: int) -> float:
    """Return P(|T| <= t): Abramowitz and Stegun 26.7.3 and 26.7.4, exact for whole degrees of freedom."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    term, total = (cos(angle) if odd else 1.0), 0.0
    for k in range(odd + 1, degrees, 2):
        total += term
        term *= cos(angle) ** 2 * k / (k + 1)
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
