"""Cuts told as they came about: who was to come may have lost its promise in that very instant."""

from __future__ import annotations

from kant_opt.planning.board import Board, Run
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.view import GpuIndices


def settle_cuts(board: Board, reserved: frozenset[str]) -> None:
    """Join the runs of unknown length that went on at once in their place, and say for whom the others were cut.

    A run is cut for who is promised its room then. If the ticket is ahead in the queue, a policy may take that promise
    back and start the ticket again. `reserved`: names of reservations, which do come.
    """
    last: dict[Ticket, Run] = {}
    for run in list(board.runs):
        before = last.get(run.ticket)
        if before is not None and before.end == run.start and run.ticket.length is None and _same(before, run):
            before.end, before.evicted_for = run.end, run.evicted_for
            board.runs.remove(run)
        else:
            last[run.ticket] = run
    latest = {run.ticket.name: run.start for run in board.runs}  # runs are in order of start
    for run in board.runs:
        if run.evicted_for and run.evicted_for not in reserved and latest.get(run.evicted_for, run.end - 1) < run.end:
            then = (r.ticket.name for r in board.runs if r.start >= run.end and r.ticket is not run.ticket)
            run.evicted_for = next(then, run.ticket.name)  # nobody else came: it moved


def _same(run: Run, other: Run) -> bool:
    """Return whether two runs of a ticket hold the same GPUs; by number alone they do."""
    return _where(run.claim) == _where(other.claim)


def _where(claim: Claim) -> set[tuple[str, str, int, int, tuple[GpuIndices, ...]]]:
    return {(t.part.job.name, t.part.podset.name, t.node, t.pods, t.gpus) for t in claim.taken or ()}
