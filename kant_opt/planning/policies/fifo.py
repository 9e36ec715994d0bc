"""Strict FIFO: nobody starts before the head of the queue."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import Ticket


def start_in_order(board: Board, queue: list[Ticket]) -> int:
    """Start tickets one after another while they fit now; return how many did."""
    for n, ticket in enumerate(queue):
        claim = board.space.at(ticket, board.now)
        if claim is None:
            return n
        board.start(claim)
    return len(queue)


@POLICIES.register("fifo")
class Fifo(Policy):
    """Starts the queue in its order and stops at the first that does not fit."""

    name = "fifo"
    keeps_order = True

    def decide(self, board: Board) -> None:
        start_in_order(board, board.queue())
