"""Best effort: whatever fits now starts now; large jobs may starve."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import Ticket


def start_what_fits(board: Board, tickets: list[Ticket]) -> None:
    """Start each of the tickets that fits beside what runs and what is promised."""
    rest, at = board.space.hopeful(tickets, board.now), 0
    while at < len(rest):
        claim = board.space.at(rest[at], board.now)
        at += 1
        if claim is not None:
            board.start(claim, backfilled=True)
            rest, at = board.space.hopeful(rest[at:], board.now), 0


@POLICIES.register("best-effort")
class BestEffort(Policy):
    """Tries the whole queue in its order."""

    name = "best-effort"

    def decide(self, board: Board) -> None:
        start_what_fits(board, board.queue())
