"""Fair share: who has used least goes first."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.registry import ORDERS, Key, Order
from kant_opt.planning.ticket import Ticket


@ORDERS.register("fair-share")
class FairShare(Order):
    """Highest priority first, then the tenant with the fewest GPU-seconds used since the timeline began.

    Runs count by what they have used so far. Ties by submission.
    """

    name = "fair-share"
    changes = True
    by_priority = True

    def key(self, ticket: Ticket, board: Board) -> Key:
        return -ticket.priority, board.used_by(ticket.tenant), ticket.submit, ticket.position
