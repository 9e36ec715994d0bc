"""The event loop stopped and gone on with: nothing changes."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from kant_opt.planning import ORDERS, make_policy
from kant_opt.planning.board import Board
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.ticket import Ticket
from kant_opt.planning.timeline import instants


@pytest.mark.parametrize("policy", ["fifo", "best-effort", "easy", "easy-sjbf", "depth-3", "conservative", "slack"])
def test_a_loop_in_pieces_starts_everybody_when_one_loop_does(policy: str) -> None:
    """Left after every 7th decision, and gone on with at the next instant over the tickets that have not come."""
    draw = Random(5)
    tickets = [
        Ticket(str(i), i, draw.randint(0, 300), run + draw.choice([0, 0, 9]), draw.randint(1, 8), run)
        for i, run in enumerate(draw.choices([1, 5, 20, 60], k=60))
    ]

    def starts(board: Board) -> list[tuple[str, int, int, bool]]:
        return [(run.ticket.name, run.start, run.end, run.backfilled) for run in board.runs]

    whole, chosen = Board(CountingSpace(8), ORDERS["fifo"]()), make_policy(policy)
    times = []
    for now in instants(whole, tickets, start=0):
        times.append(now)
        chosen.decide(whole)
    board, chosen = Board(CountingSpace(8), ORDERS["fifo"]()), make_policy(policy)
    last = -1
    for first in range(0, len(times), 7):
        loop = instants(board, [t for t in tickets if t.submit > last], start=times[first])
        for _ in islice(loop, 7):
            chosen.decide(board)
        board.settle()
        last = board.now
    assert starts(board) == starts(whole)
    assert len(board.runs) == len(tickets)
