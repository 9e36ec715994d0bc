"""The course of one policy over the jobs: the loop with its checkpoints, and what it came to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import process_time

from kant_opt.planning import ORDERS, Policy
from kant_opt.planning.board import Board, Run
from kant_opt.planning.ticket import Ticket
from kant_opt.planning.timeline import instants
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.replay.checkpoint import Kept, keep, resume
from kant_opt.replay.outages import Outage, striker
from kant_opt.replay.spaces import nodes_used
from kant_opt.replay.stage import Stage

_LOOK_EVERY = 64
"""Instants between looks at the clock."""


@dataclass(frozen=True, slots=True)
class Span:
    """One run of one job in [start_s, end_s)."""

    position: int
    """Of its ticket."""
    start_s: int
    end_s: int
    backfilled: bool = False
    evicted: bool = False
    """It was ended for another job, and queued again."""
    where: tuple[tuple[int, int], ...] = ()
    """(node index, GPU thousandths) pairs."""


@dataclass(frozen=True)
class Course:
    """All runs in order of start, and the CPU seconds that the loop took."""

    spans: tuple[Span, ...]
    seconds: float


OnTick = Callable[[int, int], None]
"""Told (jobs that have come, jobs that have ended) some times a second."""


def run_course(
    stage: Stage,
    policy: Policy,
    order: str,
    *,
    backend: str,
    seed: int,
    outages: Sequence[Outage] = (),
    kept: Kept | None = None,
    on_tick: OnTick | None = None,
    due: Callable[[], bool] | None = None,
    save: Callable[[Kept], None] | None = None,
) -> Course:
    """Run the loop to its end, from `kept` on where given; the state is saved whenever `due` says so.

    It is that between two instants, so that going on from it is what would have happened.
    """
    begun = process_time() - (kept.seconds if kept else 0.0)
    space = stage.space(backend, seed)
    board = Board(space, ORDERS[order]())
    tickets = stage.tickets
    start, come = min((ticket.submit for ticket in tickets), default=0), 0
    if kept is not None:
        resume(kept, board, policy, tickets)
        start, come = kept.next_s, kept.come
    strike = None
    if outages:
        assert isinstance(space, TopologicalSpace), "only nodes fail"
        strike = striker(outages, board, space, start - 1 if kept is None else kept.now_s)
    submits = [ticket.submit for ticket in tickets]
    by_position = {ticket: i for i, ticket in enumerate(tickets)}
    state: Kept | None = None
    for number, now in enumerate(instants(board, tickets[come:], start=start)):
        if state is not None and save is not None:  # only now is it known when it goes on
            save(state.going_on_at(now))
            state = None
        if strike is not None:
            strike(now)
        policy.decide(board)
        if number % _LOOK_EVERY == 0:
            at = bisect_right(submits, now)
            if on_tick is not None:
                on_tick(at, len(board.ended))
            if due is not None and due():
                board.settle()
                state = keep(board, policy, by_position, come=at, seconds=process_time() - begun)
    return Course(tuple(_spans(board.runs, by_position)), process_time() - begun)


def _spans(runs: list[Run], position: dict[Ticket, int]) -> Iterator[Span]:
    for run in runs:
        where = nodes_used(run.claim.taken) if run.claim.taken is not None else ()
        yield Span(position[run.ticket], run.start, run.end, run.backfilled, bool(run.evicted_for), where)
