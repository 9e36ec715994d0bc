"""Slack-based backfilling: promises may slip, but only so far, if that lets somebody start now.

Talby and Feitelson, IPPS 1999, doi:10.1109/IPPS.1999.760531, simplified: the slack of a job is a share of its
walltime, not of priorities and queue lengths.
"""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.policies.conservative import promise_earliest
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import Claim, Ticket


class Slack(Policy):
    """Everybody is promised a start as under conservative backfilling, and none comes later than its first promise
    plus `percent` of its walltime. Within that, whoever fits now but for later promises may start.

    Each try lays all promises anew: meant for queues of some hundred jobs.
    """

    def __init__(self, percent: int = 50, name: str = "slack") -> None:
        self.percent, self.name = percent, name
        self._latest: dict[Ticket, int] = {}

    def decide(self, board: Board) -> None:
        board.start_due()
        waiting = board.still_waiting()
        promise_earliest(board, waiting if board.freed else [t for t in waiting if t not in board.promises])
        for ticket, claim in board.promises.items():
            self._latest.setdefault(ticket, claim.start + self.percent * (ticket.length or 0) // 100)
        for ticket in board.space.hopeful(board.queue(), board.now) if self.percent else ():
            self._push_in(board, ticket)

    def _push_in(self, board: Board, ticket: Ticket) -> None:
        """Start the ticket now if all others keep within their slack when laid anew behind it; else change nothing."""
        before = dict(board.promises)
        for promised in before.values():
            board.space.cancel(promised)
        claim = board.space.at(ticket, board.now)
        laid = None if claim is None else self._lay(board, claim, [t for t in before if t is not ticket])
        if claim is None or laid is None:
            for promised in before.values():
                board.space.reserve(promised)
            return
        board.promises.clear()
        board.start(claim, backfilled=True)
        for promised in laid:
            board.promise(promised)

    def _lay(self, board: Board, first: Claim, others: list[Ticket]) -> list[Claim] | None:
        """Return new claims for `others` behind `first`, none too late, nothing reserved; None: not possible."""
        space, laid = board.space, [first]
        space.reserve(first)
        for ticket in others:
            ready = board.ready_at(ticket)
            claim = None if ready is None else space.earliest(ticket, ready)
            if claim is None or claim.start > self._latest[ticket]:
                break
            space.reserve(claim)
            laid.append(claim)
        for claim in laid:
            space.cancel(claim)
        return laid[1:] if len(laid) == len(others) + 1 else None


POLICIES.add("slack", Slack)
POLICIES.add("slack-k", lambda percent: Slack(percent, f"slack-{percent}"))
