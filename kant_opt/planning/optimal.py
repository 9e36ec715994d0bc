"""The policy `optimal`: the best plan of the whole queue that the limits allow, and how good it can be proven to be.

A solver chooses an order of starts, and the tickets are laid in it: each gets its earliest room, all rules kept. What
EASY and conservative backfilling come to is tried as well and the best of all is promised, so the plan is never worse
than theirs. The head of the queue starts no later than under EASY.
"""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.optimal_goals import Goals, bounded_slowdown, makespan, waits
from kant_opt.planning.optimal_search import PlanSearch
from kant_opt.planning.registry import POLICIES, Policy
from kant_opt.planning.ticket import Ticket


class Optimal(Policy):
    """Plans everything that waits whenever something new arrives or room comes free early; then keeps its promises."""

    def __init__(self, name: str, goals: Goals, *, keeps_head: bool = True) -> None:
        """Without `keeps_head` the head of the queue may start later than under EASY, if that serves the goals."""
        self.name, self.goals, self.keeps_head = name, goals, keeps_head
        self._seen: set[Ticket] = set()

    def decide(self, board: Board) -> None:
        waiting = board.still_waiting()
        if board.freed or not self._seen.issuperset(waiting):
            self._seen.update(waiting)
            for ticket in waiting:
                board.withdraw(ticket)
            search = PlanSearch(board, self.goals, keeps_head=self.keeps_head)
            for claim in search.best():
                board.promise(claim)
            self.levels, self.notes, self.limit_hit = search.levels, tuple(search.notes), search.limit_hit
        board.start_due()


POLICIES.add("optimal", lambda: Optimal("optimal", waits))
POLICIES.add("optimal-makespan", lambda: Optimal("optimal-makespan", makespan))
POLICIES.add("optimal-slowdown", lambda: Optimal("optimal-slowdown", bounded_slowdown))
POLICIES.add("optimal-batch", lambda: Optimal("optimal-batch", makespan, keeps_head=False))
