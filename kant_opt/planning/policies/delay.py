"""Delay scheduling: a gang that could start in pieces waits a while for a place in fewer domains.

Zaharia et al., EuroSys 2010, doi:10.1145/1755913.1755940, for data; here the levels of the fabric take the place of
node and rack, with a timer per level.
"""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import Claim, Ticket

TIMER_S = 600
"""Seconds to wait for each level further in."""


class Delay(Policy):
    """Starts what fits in the queue's order, but only inside one domain as far in as the gang could ever be, until
    `timer_s` per level given up has run out since it could first have started.
    """

    name = "delay"
    looks_at_places = True

    def __init__(self, timer_s: int = TIMER_S) -> None:
        self.timer_s = timer_s
        self._since: dict[Ticket, int] = {}
        self._deepest: dict[Ticket, int] = {}

    def decide(self, board: Board) -> None:
        for ticket in board.space.hopeful(board.queue(), board.now):
            claim = board.space.at(ticket, board.now)
            if claim is None:
                continue
            since = self._since.setdefault(ticket, board.now)
            due = since + self.timer_s * self._levels_given_up(board, claim)
            if due <= board.now:
                board.start(claim, backfilled=True)
            else:
                board.wake(due)

    def _levels_given_up(self, board: Board, claim: Claim) -> int:
        ticket = claim.ticket
        if ticket not in self._deepest:
            self._deepest[ticket] = board.space.deepest(ticket)
        return max(0, self._deepest[ticket] - board.space.depth_of(claim))


POLICIES.add("delay", Delay)
POLICIES.add("delay-k", Delay)
