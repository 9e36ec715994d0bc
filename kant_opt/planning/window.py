"""Earliest topological windows: the choice between a start now and a better place later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kant_opt.backends.traffic import traffic_of
from kant_opt.errors import InputError
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.schema import Reservation
from kant_opt.view import Cluster


class Offer(NamedTuple):
    """A start, and the traffic of the placement it comes with."""

    claim: Claim
    traffic: int


@dataclass(frozen=True)
class Patience:
    """A job that could start waits up to `wait_s` where that lowers its traffic by `saving` or more."""

    wait_s: int
    saving: int = 1

    def __post_init__(self) -> None:
        if self.wait_s < 0 or self.saving < 1:
            raise InputError(
                f"patience of {self.wait_s} s for a saving of {self.saving}",
                way_out="give 0 s and a saving of 1 at least",
            )


def offers(space: TopologicalSpace, ticket: Ticket, after: int, until: int) -> list[Offer]:
    """Return the starts in [after, until] that no other beats in both start and traffic, earliest first.

    "Now on 3 leaves, or in 40 minutes on 1". Looks at `after` and at the times when something ends; one placement each.
    """
    found: list[Offer] = []
    claim = TopologicalSpace.earliest(space, ticket, after)
    while claim is not None and claim.start <= until:
        offer = Offer(claim, _traffic(space.cluster, claim))
        if not found or offer.traffic < found[-1].traffic:
            found.append(offer)
        if not offer.traffic:
            break
        following = next(iter(space.times(claim.start)), None)
        claim = None if following is None else TopologicalSpace.earliest(space, ticket, following)
    return found


class PatientSpace(TopologicalSpace):
    """A space in which a ticket passes over room that a little patience betters.

    Patience is counted from the first time at which the ticket could have started, so that it ends.
    """

    def __init__(self, cluster: Cluster, reservations: tuple[Reservation, ...], work: int, patience: Patience) -> None:
        super().__init__(cluster, reservations, work)
        self.patience = patience
        self._since: dict[Ticket, int] = {}

    def at(self, ticket: Ticket, start: int) -> Claim | None:
        claim = super().at(ticket, start)
        return claim if claim is None or self._best(claim) is claim else None

    def earliest(self, ticket: Ticket, after: int) -> Claim | None:
        claim = super().earliest(ticket, after)
        return None if claim is None else self._best(claim)

    def _best(self, first: Claim) -> Claim:
        """Return the claim to wait for: the least traffic, then the earliest; `first` where nothing saves enough."""
        since = self._since.setdefault(first.ticket, first.start)
        latest = since + self.patience.wait_s
        if latest <= first.start or not (cost := _traffic(self.cluster, first)):
            return first
        later = offers(self, first.ticket, first.start + 1, latest)
        return later[-1].claim if later and cost - later[-1].traffic >= self.patience.saving else first


def _traffic(cluster: Cluster, claim: Claim) -> int:
    gang = claim.ticket.gang
    assert gang is not None, "a claim on nodes has a gang"
    assert claim.taken is not None, "a claim on nodes says which"
    return traffic_of(cluster, gang, claim.taken)
