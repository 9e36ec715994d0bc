"""Asking and reading answers, the same for all cases."""

from __future__ import annotations

from collections import Counter

from kant_opt.backends import Order
from kant_opt.engine import place
from kant_opt.schema import Outcome, Reason, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.verify import verify


def solve(request: Request, order: Order = "batch") -> Outcome:
    """Return the answer, which the verifier accepts."""
    outcome = place(request, order=order)
    assert outcome.placement is not None
    assert verify(request, outcome.placement) == ()
    return outcome


def solve_best(request: Request, order: Order = "batch") -> Outcome:
    """Return the answer, which no placement at all beats: each was tried."""
    outcome = solve(request, order)
    assert tuple((level.name, level.value) for level in outcome.levels) == brute_force(request).values
    return outcome


def refused(outcome: Outcome) -> Reason:
    """Return the one reason of an answer that places nothing."""
    assert outcome.placement is not None
    assert outcome.placement.jobs == ()
    (reason,) = outcome.reasons
    return reason


def pods(outcome: Outcome, job: str, podset_name: str | None = None) -> dict[str, int]:
    """Return node -> pods of a job, or of one of its podsets; empty where it is not placed."""
    placed = outcome.placement.of(job) if outcome.placement else None
    found: Counter[str] = Counter()
    for p in placed.pods if placed else ():
        if podset_name in (None, p.podset):
            found[p.node] += p.count
    return dict(found)
