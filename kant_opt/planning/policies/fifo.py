"""Strict FIFO: nobody starts before the head of the queue."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.registry import POLICIES, Policy


def start_in_order(board: Board) -> None:
    """Start the head of the queue while it fits now."""
    while (head := board.head()) is not None and (claim := board.space.at(head, board.now)) is not None:
        board.start(claim)


@POLICIES.register("fifo")
class Fifo(Policy):
    """Starts the queue in its order and stops at the first that does not fit."""

    name = "fifo"
    keeps_order = True

    def decide(self, board: Board) -> None:
        start_in_order(board)
