"""Kant's backfill preemption: backfilled jobs leave for a head that has waited too long.

The cheapest set that really lets the head start is evicted, or nobody; whoever is keeps its submission time and with
it its place in the queue. Cost is work lost: GPU-seconds run so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from kant_opt.planning.board import Board, Run
from kant_opt.planning.registry import Policy
from kant_opt.planning.ticket import Claim, Ticket

_TRIES = 256
"""Sets tried in the order of their costs before the cheapest is sought greedily."""


class Evicting(Policy):
    """Another policy, and evictions for a head that has waited `timeout` seconds.

    Preemptible runs may be evicted if they were backfilled, or ran before the plan began with no higher priority.
    """

    def __init__(self, policy: Policy, timeout: int) -> None:
        self.policy, self.timeout, self.name = policy, timeout, policy.name
        self.keeps_order = policy.keeps_order

    def decide(self, board: Board) -> None:
        head = board.head()
        if head is not None:
            due = head.submit + self.timeout
            if due <= board.now:
                self._make_room(board, head)
            else:
                board.wake(due)
        self.policy.decide(board)

    def _make_room(self, board: Board, head: Ticket) -> None:
        runs = [run for run in board.running.values() if self._may_leave(run, head)]
        if not runs or head in board.running:
            return
        promised = board.promises.get(head)
        board.withdraw(head)
        if board.space.at(head, board.now) is None and (chosen := _cheapest(board, head, runs)):
            for run in chosen:
                board.evict(run, head)
            claim = board.space.at(head, board.now)
            assert claim is not None, "the set was tried"
            board.start(claim)
        elif promised is not None:
            board.promise(promised)

    def _may_leave(self, run: Run, head: Ticket) -> bool:
        ticket = run.ticket
        return ticket.preemptible and (run.backfilled or (ticket.gang is None and ticket.priority <= head.priority))


def _cheapest(board: Board, head: Ticket, runs: Sequence[Run]) -> list[Run]:
    """Return the cheapest runs without which the head fits now; empty where not even leaving all helps."""

    def cost(run: Run) -> int:
        since = run.start if run.ticket.gang is not None else run.ticket.submit  # what ran before has no gang
        return run.ticket.gpus * (board.now - since)

    ordered = sorted(runs, key=lambda run: (cost(run), run.ticket.position))
    if not _fits_without(board, head, ordered):
        return []
    costs = [cost(run) for run in ordered]
    for chosen in _sets_by_cost(costs, _TRIES):
        found = [ordered[i] for i in chosen]
        if _fits_without(board, head, found):
            return found
    kept = list(ordered)  # drop the dearest first, as long as the rest is enough: no run is evicted for nothing
    for run in reversed(ordered):
        fewer = [other for other in kept if other is not run]
        if _fits_without(board, head, fewer):
            kept = fewer
    return kept


def _sets_by_cost(costs: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    """Yield the first `most` non-empty sets of indices in the order of their sum, then of their size.

    `costs` rise. Each set has two successors: its last index moved on, or the next one added.
    """
    heap: list[tuple[int, int, tuple[int, ...]]] = [(costs[0], 1, (0,))] if costs else []
    for _ in range(most):
        if not heap:
            return
        total, size, chosen = heappop(heap)
        yield chosen
        following = chosen[-1] + 1
        if following < len(costs):
            heappush(heap, (total + costs[following], size + 1, (*chosen, following)))
            heappush(heap, (total + costs[following] - costs[chosen[-1]], size, (*chosen[:-1], following)))


def _fits_without(board: Board, head: Ticket, runs: Sequence[Run]) -> bool:
    """Return whether the head would fit now if the runs left."""
    ends: list[tuple[Claim, int]] = [(run.claim, run.claim.end) for run in runs]
    for claim, _ in ends:
        board.space.shorten(claim, board.now)
    fits = board.space.at(head, board.now) is not None
    for claim, end in reversed(ends):
        board.space.lengthen(claim, end)
    return fits
