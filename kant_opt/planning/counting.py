"""Space where only a number matters: units of one kind, no levels, no rules between jobs."""

from __future__ import annotations

from collections.abc import Iterable

from kant_opt.planning.profile import Profile
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import FOREVER, Claim, Ticket


class CountingSpace(Space):
    """`units` interchangeable GPUs. A question costs the steps of the profile that it passes.

    At every instant the claims fit by number; as any free unit will do, each can then be given its units when it
    starts, and keep them: intervals that overlap at most `units` deep need no more than so many units.

    >>> space = CountingSpace(4)
    >>> space.reserve(space.at(Ticket("wide", 0, length=10, gpus=3), 0))
    >>> space.earliest(Ticket("next", 1, length=5, gpus=2), 0).start
    10
    """

    counts = True

    def __init__(self, units: int) -> None:
        self.profile = Profile(units)

    def at(self, ticket: Ticket, start: int) -> Claim | None:
        needs = ticket.needs
        until = self.profile.until(start, ticket.gpus)
        if until is not None and (until == start or until < start + needs):
            return None
        return self._claim(ticket, start, until)

    def earliest(self, ticket: Ticket, after: int) -> Claim | None:
        start = self.profile.earliest(ticket.gpus, ticket.needs, after)
        if start is None:
            return None
        return self._claim(ticket, start, None if ticket.length is not None else self.profile.until(start, ticket.gpus))

    def reserve(self, claim: Claim) -> None:
        self.profile.take(claim.start, claim.end, claim.ticket.gpus)

    def cancel(self, claim: Claim) -> None:
        self.profile.take(claim.start, claim.end, -claim.ticket.gpus)

    def shorten(self, claim: Claim, end: int) -> None:
        self.profile.take(end, claim.end, -claim.ticket.gpus)
        claim.end = end

    def lengthen(self, claim: Claim, end: int) -> None:
        self.profile.take(claim.end, end, claim.ticket.gpus)
        claim.end = end

    def free_until(self, claim: Claim) -> int:
        until = self.profile.until(claim.end, claim.ticket.gpus)
        return FOREVER if until is None else until

    def hopeful(self, tickets: Iterable[Ticket], now: int) -> list[Ticket]:
        free = self.profile.least(now, now + 1)
        return [ticket for ticket in tickets if ticket.gpus <= free]

    def times(self, after: int) -> list[int]:
        return [time for time in self.profile.times if after < time < FOREVER]

    def forget(self, now: int) -> None:
        self.profile.forget(now)

    def _claim(self, ticket: Ticket, start: int, until: int | None) -> Claim:
        if ticket.length is not None:
            return Claim(ticket, start, start + ticket.length)
        return Claim(ticket, start, FOREVER if until is None else until)
