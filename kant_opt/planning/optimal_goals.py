"""What `optimal` minimises: the wait, the makespan or the bounded slowdown, as goals of a scheduling program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kant_opt.formulation.schedule import Goal
from kant_opt.planning.ticket import Ticket

MOST_CLASSES = 3
"""Priority classes that have a goal of their own; the last takes all lower ones along."""
SLOWDOWN_SCALE = 1_000_000_000
"""Units of a slowdown of 1: weights are whole, and a run of a week still weighs within 1 in a thousand."""
SLOWDOWN_BOUND_S = 10
"""Runs shorter than this count as this long."""

Goals = Callable[[Sequence[Ticket], int], tuple[Goal, ...]]
"""Tickets of known length and the time that is 0 in the program -> goals."""


def waits(tickets: Sequence[Ticket], now: int) -> tuple[Goal, ...]:
    """The sum of start - submit, of the highest priority class first, then of the next: classes are never traded.

    At last the makespan, among plans of equal waits.
    """
    classes = sorted({t.priority for t in tickets}, reverse=True)[:MOST_CLASSES]
    if len(classes) == 1:
        return _total_wait("total_wait", tickets, tickets, now), Goal("makespan")
    goals = []
    for c in classes:
        rest = c == classes[-1]
        members = [t for t in tickets if t.priority == c or (rest and t.priority < c)]
        goals.append(_total_wait(f"total_wait[{c}]", tickets, members, now))
    return *goals, Goal("makespan")


def makespan(tickets: Sequence[Ticket], now: int) -> tuple[Goal, ...]:
    """The last end, from now on; then the sum of the waits."""
    return Goal("makespan"), _total_wait("total_wait", tickets, tickets, now)


def bounded_slowdown(tickets: Sequence[Ticket], now: int) -> tuple[Goal, ...]:
    """The sum over jobs of max(1, (wait + run) / max(run, 10 s)) - 1, in billionths.

    Feitelson et al., "Theory and practice in parallel job scheduling", JSSPP 1997, doi:10.1007/3-540-63574-2_14.
    With a run of at least 10 s it is wait / run; a shorter one may wait until wait + run is 10 s.
    """
    costs = []
    for t in tickets:
        assert t.length is not None
        grace = max(0, SLOWDOWN_BOUND_S - t.length)
        costs.append((SLOWDOWN_SCALE // max(t.length, SLOWDOWN_BOUND_S), t.submit + grace - now))
    return (Goal("bounded_slowdown", tuple(costs)),)


def _total_wait(name: str, tickets: Sequence[Ticket], members: Sequence[Ticket], now: int) -> Goal:
    counted = set(members)
    return Goal(name, tuple((int(t in counted), t.submit - now) for t in tickets))
