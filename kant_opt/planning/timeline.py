"""The one event loop: ends, then arrivals, then the policy decides; used for plans and for replays.

In a plan jobs run as long as they may; in a replay they run as long as they did, and the policy knows only what was
asked for. At one instant all ends come before all arrivals, arrivals in the order of submission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kant_opt.planning.board import Board
from kant_opt.planning.registry import Policy
from kant_opt.planning.ticket import FOREVER, Ticket


def run_timeline(board: Board, policy: Policy, tickets: Iterable[Ticket], *, start: int, until: int = FOREVER) -> None:
    """Run the loop from `start` on, over tickets that join at their submission (at `start` if that is before).

    Stops when nothing can happen any more, or before `until`; then `board.waiting` never started.
    """
    for _ in instants(board, tickets, start=start, until=until):
        policy.decide(board)


def instants(board: Board, tickets: Iterable[Ticket], *, start: int, until: int = FOREVER) -> Iterator[int]:
    """Yield each instant at which something happens, the board ready for decisions: the loop, for who decides outside.

    What was started meanwhile leaves the queue when the next instant is asked for. A loop may be left after any
    decision: settle the board, and one over the tickets that have not come, from the next instant on, goes on alike.
    """
    coming = sorted(tickets, key=lambda t: (t.submit, t.position))
    board.queued |= frozenset(name for ticket in coming for name in ticket.jobs)
    at, now = 0, start
    while now < until:
        first = at
        while at < len(coming) and coming[at].submit <= now:
            at += 1
        board.advance(now, coming[first:at])
        yield now
        board.settle()
        times = [coming[at].submit] if at < len(coming) else []
        following = board.next_event()
        if following is not None:
            times.append(following)
        if board.waiting and (freed := board.space.ends(now)) is not None:
            times.append(freed)
        if not times or (at == len(coming) and not board.waiting and not board.running):
            return
        now = max(now + 1, min(times)) if min(times) <= now else min(times)
