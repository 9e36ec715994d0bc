"""The queue as a scheduling program: exact where only numbers count, else a relaxation that no plan can beat.

Time 0 of the program is the board's `now`. Tickets without a known end are left out: those of unknown length, those
that fit at no time, and those that come after one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kant_opt.formulation.schedule import Activity, Busy, Resource, Schedule, ScheduleProgram
from kant_opt.planning.board import Board
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.optimal_goals import Goals
from kant_opt.planning.optimal_relaxed import Relaxed, mode_of, relax
from kant_opt.planning.optimal_trial import ends_of
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace


@dataclass(frozen=True)
class QueueProgram:
    """A program whose activities are `tickets`."""

    program: ScheduleProgram
    tickets: tuple[Ticket, ...]
    now: int
    modes: Callable[[int, Claim], int]
    """The mode that a claim of a ticket, given by its index, is in."""

    def schedule_of(self, claims: Sequence[Claim]) -> Schedule | None:
        """Return the claims as a schedule; None where a ticket has none, or starts too late."""
        of = {claim.ticket: claim for claim in claims}
        starts, modes = [], []
        for i, (ticket, activity) in enumerate(zip(self.tickets, self.program.activities, strict=True)):
            if ticket not in of:
                return None
            starts.append(of[ticket].start - self.now)
            modes.append(self.modes(i, of[ticket]))
            if activity.latest is not None and starts[-1] > activity.latest:
                return None
        return Schedule(tuple(starts), tuple(modes))

    def in_order_of(self, schedule: Schedule) -> list[Ticket]:
        """Return the tickets by their start; among equals the one with the largest pods, then the largest, first.

        Where the program is exact, each finds its earliest room no later than its start there when they are laid in
        this order: those before it, moved forward, take nothing away behind their own starts.
        """

        def place(i: int) -> tuple[int, ...]:
            ticket = self.tickets[i]
            pods = [part.shape.gpus for part in ticket.gang.parts] if ticket.gang else []
            return schedule.starts[i], -max(pods, default=0), -ticket.gpus, i

        return [self.tickets[i] for i in sorted(range(len(self.tickets)), key=place)]


def with_known_end(board: Board) -> list[Ticket]:
    """Return the waiting tickets that the program can hold: each would start and end if it were alone."""
    waiting = {t.name: t for t in board.still_waiting()}
    ends = ends_of(board)
    known: dict[str, bool] = {}

    def is_known(ticket: Ticket) -> bool:
        if ticket.name not in known:
            known[ticket.name] = False  # should it come after itself
            known[ticket.name] = (
                ticket.length is not None
                and all(ends.get(name, 0) < FOREVER for name in ticket.after)
                and all(is_known(waiting[name]) for name in ticket.after if name in waiting)
                and board.space.earliest(ticket, board.now) is not None
            )
        return known[ticket.name]

    return [t for t in waiting.values() if is_known(t)]


def queue_program(
    board: Board,
    tickets: Sequence[Ticket],
    goals: Goals,
    ends: dict[str, int],
    latest: dict[Ticket, int],
    *,
    throughout: bool = False,
) -> QueueProgram:
    """Return the program of `tickets` beside all that is reserved in the board's space.

    `ends` are those of what runs and of what has been laid before, `latest` the latest starts of some tickets, for
    `throughout` see `relax`.
    """
    now, index, space = board.now, {t.name: i for i, t in enumerate(tickets)}, board.space
    if isinstance(space, TopologicalSpace):
        relaxed = relax(space, tickets, now, throughout=throughout)
        tree = space.cluster.tree
    else:
        assert isinstance(space, CountingSpace)
        tree, relaxed = None, _counted(space, tickets, now)

    def mode(i: int, claim: Claim) -> int:
        return 0 if tree is None else mode_of(tree, claim, relaxed.domains[i])

    activities = []
    for ticket, modes in zip(tickets, relaxed.modes, strict=True):
        assert ticket.length is not None
        behind = [ends[name] - now for name in ticket.after if name in ends]
        activities.append(
            Activity(
                ticket.name,
                ticket.length,
                modes,
                release=max([0, ticket.submit - now, *behind]),
                latest=latest[ticket] - now if ticket in latest else None,
                after=tuple(index[name] for name in ticket.after if name in index),
            )
        )
    program = ScheduleProgram(tuple(relaxed.resources), tuple(activities), goals(tickets, now))
    return QueueProgram(program, tuple(tickets), now, mode)


def _counted(space: CountingSpace, tickets: Sequence[Ticket], now: int) -> Relaxed:
    times, free = space.profile.times, space.profile.free
    most = max(free)
    busy = tuple(
        Busy(max(0, time - now), None if end is None else end - now, most - units)
        for time, units, end in zip(times, free, [*times[1:], None], strict=True)
        if units < most and (end is None or end > now)
    )
    return Relaxed([Resource("units", most, busy)], [({0: t.gpus},) for t in tickets], [() for _ in tickets])
