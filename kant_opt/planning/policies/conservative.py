"""Conservative backfilling: everybody is promised a start on arrival, and no promise is ever broken.

Mu'alem and Feitelson, IEEE TPDS 12 (2001), doi:10.1109/71.932708.
"""

from __future__ import annotations

from collections.abc import Iterable

from kant_opt.planning.board import Board
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import Claim, Ticket


def lay(space: Space, tickets: Iterable[Ticket], after: int) -> list[Claim]:
    """Give each ticket in turn its earliest room and reserve it; return the claims of those that have one."""
    found = []
    for ticket in tickets:
        claim = space.earliest(ticket, after)
        if claim is not None:
            space.reserve(claim)
            found.append(claim)
    return found


def promise_earliest(board: Board, tickets: Iterable[Ticket]) -> None:
    """Promise each ticket its earliest start, or start it where that is now; what it was promised stays if as early.

    A ticket ahead of one that it comes after has its turn right behind it, before all others.
    """
    behind: dict[str, list[Ticket]] = {}
    for ticket in tickets:
        turns = [ticket]
        while turns:
            following = turns.pop(0)
            if following in board.running:
                continue
            ready = board.ready_at(following)
            if ready is None:
                for name in following.after:
                    behind.setdefault(name, []).append(following)
                continue
            _promise_from(board, following, ready)
            turns += [other for name in following.jobs for other in behind.pop(name, ())]


def _promise_from(board: Board, ticket: Ticket, ready: int) -> None:
    promised = board.promises.get(ticket)
    if promised is not None:
        board.space.cancel(promised)
    claim = board.space.earliest(ticket, ready)
    if promised is not None:
        board.space.reserve(promised)
        if claim is None or claim.start >= promised.start:
            return
    if claim is None:
        return
    if claim.start == board.now:
        board.start(claim, backfilled=ticket is not board.waiting[0])
    else:
        board.promise(claim)


@POLICIES.register("conservative")
class Conservative(Policy):
    """Promises on arrival; where room comes free early, all promises are pulled forward in the queue's order."""

    name = "conservative"

    def decide(self, board: Board) -> None:
        board.start_due()
        if board.freed:
            promise_earliest(board, board.still_waiting())
        else:
            promise_earliest(board, [t for t in board.still_waiting() if t not in board.promises])
