"""The search for the best plan of a queue: plans laid in one order or another, and the order that a solver chooses."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic

from kant_opt.backends import Deadline
from kant_opt.backends.cpsat_schedule import CpSatSchedule
from kant_opt.backends.schedule import Scheduled, solve_schedule
from kant_opt.backends.worker import give_back, hire
from kant_opt.formulation.schedule import Schedule
from kant_opt.formulation.schedule_bounds import ScheduleBound, schedule_bound, tails_of
from kant_opt.planning.board import Board
from kant_opt.planning.optimal_goals import Goals
from kant_opt.planning.optimal_program import QueueProgram, queue_program, with_known_end
from kant_opt.planning.optimal_trial import Trial, ends_of, lay_in_order, played
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.schema import LevelValue

log = logging.getLogger("kant_opt")

WINDOW = 120
"""Tickets that the solver orders at a time; a longer queue is planned window by window, half of one kept each time."""
_ROUNDS = 8
"""Times that the tickets are laid near a schedule of the solver's, where it cannot be met at once."""
_MANY = 30
"""Tickets for which trying plans takes long enough to load the solver meanwhile."""
_FOR_THE_SOLVER = 0.9
"""Share of the time left that goes to the solver, less what trying took: placing and verifying take about as long."""
_LEAST_S = 2.0
"""Seconds that a window is worth at least: rather fewer windows get these than all get too little."""


@dataclass(frozen=True)
class _Plan:
    """A plan of all that waits; the least `rank` is the best: tickets left without a start, then the goals."""

    source: str
    claims: list[Claim]
    rank: tuple[int, ...]


class PlanSearch:
    """One planning of the queue as it is at `board.now`."""

    def __init__(self, board: Board, goals: Goals, *, keeps_head: bool = True) -> None:
        self.board, self.goals = board, goals
        self.started = monotonic()
        self.queue = board.still_waiting()
        self.trial = Trial(board.space)
        if len(self.queue) > _MANY:
            give_back(hire(CpSatSchedule.loads))  # the solver loads while plans are tried
        # a head of unknown length goes first, as under any other policy
        lay_in_order(board, self.trial, [ticket for ticket in self.queue[:1] if ticket.length is None])
        self.fixed = len(self.trial.claims)
        self.tickets = with_known_end(board)
        known = set(self.tickets)
        self.others = [ticket for ticket in self.queue if ticket not in known]
        """Those of which no end is known: they are laid last."""
        easy = played(board, self.trial, self.tickets, "easy")
        self.trial.undo(self.fixed)
        self.latest = {c.ticket: c.start for c in easy if keeps_head and c.ticket is self.queue[0]}
        """The head of the queue with its start under EASY, where it is to be kept."""
        self.whole = queue_program(board, self.tickets, goals, ends_of(board), self.latest)
        self.plans: list[_Plan] = []
        self.levels: tuple[LevelValue, ...] = ()
        self.notes: list[str] = []
        self.limit_hit = ""
        self.spent = 0.0
        """Seconds before the solver was first asked."""
        for claim in easy:
            self.trial.reserve(claim)
        self._lay("easy", self.others)

    def best(self) -> list[Claim]:
        """Return the best plan's claims, none of them reserved."""
        self._lay("conservative", self.queue)
        for source, key in _ORDERS.items():
            if not self.board.deadline.passed:
                self._lay(source, [*sorted(self.tickets, key=key), *self.others])
        if any(ticket.after for ticket in self.tickets) and not self.board.deadline.passed:
            self._lay("longest chain first", [*self._by_chain(), *self.others])
        bounds = [schedule_bound(self.whole.program, goal) for goal in self.whole.program.goals]
        if self.tickets and self.chosen.rank[1:] != tuple(bound.value for bound in bounds):
            if len(self.tickets) > WINDOW:
                self._roll()
            else:
                bounds = self._solve(bounds)
        self.trial.undo()
        self._report(bounds)
        return self.chosen.claims

    @property
    def chosen(self) -> _Plan:
        """The best plan so far; the first of equals."""
        return min(self.plans, key=lambda plan: plan.rank)

    # -- plans -----------------------------------------------------------------------------------

    def _lay(self, source: str, order: Sequence[Ticket]) -> _Plan:
        """Add what laying the tickets in this order comes to, behind what is reserved in the trial, and undo all.

        A head that comes later than under EASY goes first; a plan in which it still does is returned, but not added.
        """
        lay_in_order(self.board, self.trial, order)
        claims = list(self.trial.claims)
        self.trial.undo(self.fixed)
        starts = {claim.ticket: claim.start for claim in claims}
        late = [ticket for ticket, latest in self.latest.items() if starts.get(ticket, FOREVER) > latest]
        if late and order[0] not in late:
            return self._lay(source, [*late, *(ticket for ticket in order if ticket not in late)])
        plan = _Plan(source, claims, (len(self.queue) - len(claims), *self._values(starts)))
        if not late:
            self.plans.append(plan)
        return plan

    def _by_chain(self) -> list[Ticket]:
        """Return the tickets, those first that have the longest chain of others behind them."""
        tails = tails_of(self.whole.program)
        chains = [-(ticket.length or 0) - tail for ticket, tail in zip(self.tickets, tails, strict=True)]
        return [self.tickets[i] for i in sorted(range(len(chains)), key=lambda i: (chains[i], i))]

    def _values(self, starts: dict[Ticket, int]) -> list[int]:
        """Return what the goals come to, over the tickets of known length that have a start."""
        rows = [(i, starts[ticket] - self.board.now) for i, ticket in enumerate(self.tickets) if ticket in starts]
        values = []
        for goal in self.whole.program.goals:
            if goal.costs is None:
                values.append(max((start + self.whole.program.activities[i].duration for i, start in rows), default=0))
            else:
                values.append(sum(goal.costs[i][0] * max(0, start - goal.costs[i][1]) for i, start in rows))
        return values

    # -- the solver ------------------------------------------------------------------------------

    def _solve(self, bounds: list[ScheduleBound]) -> list[ScheduleBound]:
        """Add the plan by the solver's order of the whole queue; return the better of its bounds and `bounds`."""
        found = self._ask(self.whole, self.chosen.claims, 1)
        if found.schedule is None:
            return bounds
        self._lay_near(found.schedule)
        values = self.chosen.rank[1:]
        # what was solved holds among plans that are as good on the goals before as the solver's schedule was
        holds = [all(v <= w for v, w in zip(values[:i], found.values, strict=False)) for i in range(len(bounds))]
        return [new if ok else own for ok, new, own in zip(holds, found.bounds, bounds, strict=True)]

    def _lay_near(self, schedule: Schedule) -> None:
        """Add plans laid in the order of a schedule; who starts later than there goes ahead in the next one.

        Squeaky wheel optimisation: Joslin and Clements, JAIR 10 (1999), doi:10.1613/jair.561.
        """
        wanted = dict(zip(self.tickets, schedule.starts, strict=True))
        before = {later: earlier for earlier, later in pairwise([-1, *sorted(set(schedule.starts))])}
        place = list(schedule.starts)
        for _ in range(_ROUNDS):
            order = self.whole.in_order_of(replace(schedule, starts=tuple(place)))
            plan = self._lay(CpSatSchedule.name, [*order, *self.others])
            starts = {claim.ticket: claim.start - self.board.now for claim in plan.claims}
            late = [i for i, t in enumerate(self.tickets) if starts.get(t, FOREVER) > wanted[t]]
            if not late or self.board.deadline.passed:
                return
            for i in late:
                place[i] = before.get(place[i], -1)

    def _roll(self) -> None:
        """Add a plan made window by window: the solver orders the next tickets, and the first half of them stay."""
        known = set(self.tickets)
        by_start = sorted(self.chosen.claims, key=lambda claim: claim.start)
        ahead = [claim.ticket for claim in by_start if claim.ticket in known]
        while ahead and self._seconds_left() != 0:
            windows = 1 + max(0, -((WINDOW - len(ahead)) // (WINDOW // 2)))
            window, ahead = ahead[:WINDOW], ahead[WINDOW:]
            reserved = len(self.trial.claims)
            ends = ends_of(self.board, self.trial.claims)
            part = queue_program(self.board, window, self.goals, ends, self.latest, throughout=True)
            claims = lay_in_order(self.board, self.trial, window)
            self.trial.undo(reserved)
            found = self._ask(part, claims, windows)
            if found.schedule is not None:
                window = part.in_order_of(found.schedule)
            if ahead:
                window, ahead = window[: WINDOW // 2], [*window[WINDOW // 2 :], *ahead]
            lay_in_order(self.board, self.trial, window)
        self._lay(f"{CpSatSchedule.name} by windows", [*ahead, *self.others])

    def _ask(self, part: QueueProgram, claims: Sequence[Claim], windows: int) -> Scheduled:
        """Return the solver's schedule of a part, from `claims` on, with an even share of the effort."""
        deadline, limits = self.board.deadline, self.board.limits
        left = self._seconds_left()
        share = None if left is None else max(1, int(1000 * max(left / windows, min(left, _LEAST_S))))
        limits = limits.model_copy(update={"search_states": max(1, limits.search_states // windows)})
        start = part.schedule_of(claims)
        if part is not self.whole and start is not None and any(part.program.broken(start)):
            start = None  # a window's program knows of less room than there is
        try:
            found = solve_schedule(part.program, start, CpSatSchedule(), limits, Deadline(share, deadline.stop))
        except ValueError as error:  # for the same reason
            found = Scheduled(None, notes=[str(error)])
        self.limit_hit = self.limit_hit or found.limit_hit
        self.notes += [note for note in found.notes if note not in self.notes]
        return found

    def _seconds_left(self) -> float | None:
        """Return the seconds left for solving, None without a deadline."""
        left = self.board.deadline.seconds_left
        self.spent = self.spent or monotonic() - self.started
        return None if left is None else max(0.0, _FOR_THE_SOLVER * left - self.spent)

    def _report(self, bounds: Sequence[ScheduleBound]) -> None:
        goals, values = self.whole.program.goals, self.chosen.rank[1:]
        levels = []
        for goal, value, bound in zip(goals, values, bounds, strict=True):
            if wrong := self.chosen.rank[0] == 0 and bound.value > value:
                log.error("%s bounds %s by %d, and %d was found", bound.source, goal.name, bound.value, value)
            proven, source = (None, "") if wrong else (bound.value, bound.source)
            levels.append(LevelValue(name=goal.name, sense="min", value=value, bound=proven, bound_source=source))
        self.levels = tuple(levels)
        self.notes.append(f"the plan is by {self.chosen.source}")
        if self.others:
            self.notes.append(f"{len(self.others)} jobs of which no end is known take what room the others leave")


def _area(ticket: Ticket) -> int:
    return (ticket.length or 0) * ticket.gpus


_ORDERS: dict[str, Callable[[Ticket], tuple[int, ...]]] = {
    "shortest first": lambda t: (-t.priority, t.length or 0, t.position),
    "smallest first": lambda t: (-t.priority, _area(t), t.position),
    "largest first": lambda t: (-t.priority, -_area(t), t.position),
}
"""Orders that are tried along with that of the queue."""
