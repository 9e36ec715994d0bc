"""What room is free and when: the questions that policies ask, answered by numbers alone or node by node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from kant_opt.planning.ticket import Claim, Ticket


class Space(ABC):
    """Room over time in whole seconds and half-open windows, less what is claimed. Both kinds obey the same laws:

    - a claim returned fits beside all claims reserved, and `reserve` then `cancel` changes no later answer;
    - `earliest(t, a)` is the least start at which `at` succeeds, among `a` and the times when something ends.

    A preemptible ticket of unknown length needs one second; its claim ends where somebody else's begins.
    """

    counts: bool
    """True: claims are numbers of interchangeable units, and get their nodes when they start."""

    @abstractmethod
    def at(self, ticket: Ticket, start: int) -> Claim | None:
        """Return room for the ticket at `start`, nothing reserved; None where it does not fit."""

    @abstractmethod
    def earliest(self, ticket: Ticket, after: int) -> Claim | None:
        """Return the first room at or after `after`, nothing reserved; None where it fits at no time."""

    @abstractmethod
    def reserve(self, claim: Claim) -> None:
        """Keep the room of a claim returned by `at` or `earliest` with nothing reserved in between."""

    @abstractmethod
    def cancel(self, claim: Claim) -> None:
        """Give back the room of a reserved claim."""

    @abstractmethod
    def shorten(self, claim: Claim, end: int) -> None:
        """Let a reserved claim end at `end`, start <= end < claim.end, and give back the rest."""

    @abstractmethod
    def lengthen(self, claim: Claim, end: int) -> None:
        """Undo `shorten`: let a reserved claim end at `end` again, or later, where its room is free until then."""

    @abstractmethod
    def free_until(self, claim: Claim) -> int:
        """Return until when a reserved claim could stay where it is, claim.end where others come then."""

    def deepest(self, ticket: Ticket) -> int:
        """Return how far in one domain can hold the whole ticket on the empty fabric, as a depth; 0: not known."""
        return 0

    def depth_of(self, claim: Claim) -> int:
        """Return how far in one domain holds the whole claim, as a depth."""
        return 0

    def hopeful(self, tickets: Iterable[Ticket], now: int) -> list[Ticket]:
        """Return the tickets that might fit at `now`, by a quick look; none that does is left out."""
        return list(tickets)

    @abstractmethod
    def times(self, after: int) -> list[int]:
        """Return the times after `after` when room is taken or comes free, rising."""

    @abstractmethod
    def forget(self, now: int) -> None:
        """Drop what lies before `now`: nobody will ask for it again."""

    def comer(self, claim: Claim, at: int) -> str:
        """Return the name of a reservation that starts at `at` where the claim lies, empty where none does."""
        return ""

    def ends(self, after: int) -> int | None:
        """Return when fixed reservations next let go of room after `after`, None where none does."""
        return None
