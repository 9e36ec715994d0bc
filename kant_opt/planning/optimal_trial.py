"""Plans tried out on a space that is left as it was: by other policies, and by laying tickets in an order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kant_opt.planning.board import Board
from kant_opt.planning.registry import make_policy
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.planning.timeline import run_timeline


class Trial(Space):
    """Another space, seen through: what is reserved here is given back by `undo`."""

    def __init__(self, space: Space) -> None:
        self.space, self.counts = space, space.counts
        self.claims: dict[Claim, None] = {}
        """What is reserved, in order."""

    def undo(self, keep: int = 0) -> None:
        """Give back everything reserved but the first `keep` claims."""
        for claim in reversed(list(self.claims)[keep:]):
            self.cancel(claim)

    def at(self, ticket: Ticket, start: int) -> Claim | None:
        return self.space.at(ticket, start)

    def earliest(self, ticket: Ticket, after: int) -> Claim | None:
        return self.space.earliest(ticket, after)

    def reserve(self, claim: Claim) -> None:
        self.space.reserve(claim)
        self.claims[claim] = None

    def cancel(self, claim: Claim) -> None:
        self.space.cancel(claim)
        del self.claims[claim]

    def shorten(self, claim: Claim, end: int) -> None:
        self.space.shorten(claim, end)

    def lengthen(self, claim: Claim, end: int) -> None:
        self.space.lengthen(claim, end)

    def free_until(self, claim: Claim) -> int:
        return self.space.free_until(claim)

    def hopeful(self, tickets: Iterable[Ticket], now: int) -> list[Ticket]:
        return self.space.hopeful(tickets, now)

    def times(self, after: int) -> list[int]:
        return self.space.times(after)

    def forget(self, now: int) -> None:
        """Nothing is forgotten: it will be asked for again."""

    def comer(self, claim: Claim, at: int) -> str:
        return self.space.comer(claim, at)

    def ends(self, after: int) -> int | None:
        return self.space.ends(after)

    def deepest(self, ticket: Ticket) -> int:
        return self.space.deepest(ticket)

    def depth_of(self, claim: Claim) -> int:
        return self.space.depth_of(claim)


def ends_of(board: Board, claims: Iterable[Claim] = ()) -> dict[str, int]:
    """Return when what runs, and what has these claims, ends, by name; FOREVER where unknown."""
    running = {run.ticket.name: run.claim.end for run in board.running.values()}
    return running | {claim.ticket.name: claim.end for claim in claims}


def lay_in_order(board: Board, trial: Trial, tickets: Sequence[Ticket]) -> list[Claim]:
    """Give each ticket that has no room yet its earliest, behind the jobs that it comes after; reserve and return it.

    A ticket whose predecessor comes later in the order waits for it; one whose predecessor gets no room has none.
    """
    ends = ends_of(board, trial.claims)
    waiting = {ticket.name for ticket in board.still_waiting()} - ends.keys()
    laid = {claim.ticket for claim in trial.claims}
    found: list[Claim] = []
    left, before = [ticket for ticket in tickets if ticket not in laid], 0
    while left and len(left) != before:
        before, behind = len(left), []
        for ticket in left:
            if any(name in waiting for name in ticket.after):
                behind.append(ticket)
                continue
            ready = max([board.now, *(ends[name] for name in ticket.after if name in ends)])
            claim = trial.earliest(ticket, ready) if ready < FOREVER else None
            if claim is not None:
                trial.reserve(claim)
                found.append(claim)
                ends[ticket.name] = claim.end
                waiting.discard(ticket.name)
        left = behind
    return found


def played(board: Board, trial: Trial, tickets: Sequence[Ticket], policy: str) -> list[Claim]:
    """Reserve and return what another policy comes to for `tickets`, all of known length, if nobody else arrives and
    all run as long as they may.
    """
    original = {replace(ticket, run=None): ticket for ticket in tickets}
    shown = Board(trial, board.order, [_as_promised(run.claim) for run in board.running.values()])
    shown.ended |= board.ended
    run_timeline(shown, make_policy(policy), original, start=board.now)
    claims = [run.claim for run in shown.runs if run.ticket in original]
    for claim in claims:
        claim.ticket = original[claim.ticket]
    return claims


def _as_promised(claim: Claim) -> Claim:
    """Return the claim of what runs, with a ticket that knows no other end than the claim's."""
    length = None if claim.end >= FOREVER else claim.end - claim.start
    return replace(claim, ticket=replace(claim.ticket, run=None, length=length))
