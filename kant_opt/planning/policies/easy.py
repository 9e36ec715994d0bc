"""Backfilling with a few promises: EASY promises a start to the head alone, depth-k to the first k that are blocked.

EASY: Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995, doi:10.1007/3-540-60153-8_35. Shortest first among the
backfilled: Tsafrir, Etsion and Feitelson, IEEE TPDS 18 (2007), doi:10.1109/TPDS.2007.70606.
"""

from __future__ import annotations

from kant_opt.errors import InputError
from kant_opt.planning.board import Board
from kant_opt.planning.policies.best_effort import start_what_fits
from kant_opt.planning.policies.fifo import start_in_order
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import FOREVER, Ticket


class DepthK(Policy):
    """The first `depth` tickets that do not fit now are promised their earliest start; the rest start where they do
    not delay these.

    Promises are made anew where room came free that they did not count on; else they are the earliest still.
    """

    def __init__(self, depth: int = 4, name: str = "") -> None:
        if depth < 1:
            raise InputError(f"a depth of {depth}", way_out="give at least 1")
        self.depth, self.name = depth, name or f"depth-{depth}"

    def decide(self, board: Board) -> None:
        if board.freed or not self._still_first(board):
            for ticket in list(board.promises):
                board.withdraw(ticket)
        elif len(board.promises) == self.depth and not board.left:  # nothing came free: who was blocked is blocked
            start_what_fits(board, self._sorted([t for t in board.arrived if board.is_ready(t)]))
            return
        board.start_due()
        if not board.promises:
            start_in_order(board)
        queue, at = board.queue(), 0
        while at < len(queue) and len(board.promises) < self.depth:
            self._promise_or_start(board, queue[at])
            at += 1
        rest = [ticket for ticket in queue[at:] if ticket not in board.promises]
        start_what_fits(board, self._sorted(rest))

    def _promise_or_start(self, board: Board, ticket: Ticket) -> None:
        if ticket in board.promises:
            return
        claim = board.space.earliest(ticket, board.now)
        if claim is None:
            return
        if claim.start == board.now:
            board.start(claim, backfilled=True)
        else:
            board.promise(claim)

    def _still_first(self, board: Board) -> bool:
        """Return whether the tickets promised are the first that wait: no new one came in ahead."""
        if all(ticket in board.promises for ticket in board.waiting[: len(board.promises)]):
            return True
        return all(ticket in board.promises for ticket in board.queue()[: len(board.promises)])

    def _sorted(self, tickets: list[Ticket]) -> list[Ticket]:
        """Return the tickets to backfill in the order in which they are tried."""
        return tickets


class ShortestFirst(DepthK):
    """Backfills the shortest first."""

    def _sorted(self, tickets: list[Ticket]) -> list[Ticket]:
        return sorted(tickets, key=lambda t: (FOREVER if t.length is None else t.length, t.submit, t.position))


POLICIES.add("easy", lambda: DepthK(1, "easy"))
POLICIES.add("easy-sjbf", lambda: ShortestFirst(1, "easy-sjbf"))
POLICIES.add("depth-k", DepthK)
