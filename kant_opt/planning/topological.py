"""Space node by node, under every rule of placement: the nodes free throughout a window, and the placer on them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kant_opt.backends import Failure, Placer, Taken
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.planning.holdings import Holdings, Row
from kant_opt.planning.profile import Profile
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.schema import Reservation
from kant_opt.view import NOT_COUNTED, Cluster, Free, Gang, Ints, Mask, Part, Quotas, open_nodes

T = TypeVar("T")


class TopologicalSpace(Space):
    """The nodes of `cluster`, whose request tells of reservations only through `reservations`.

    Only `after` and the times when something ends can be an earliest start. Most of these are ruled out by two
    necessary conditions, GPUs in all and whole GPUs per domain; on the rest the placer decides, exactly. With some
    thousand nodes and claims a question costs some milliseconds.
    """

    counts = False

    def __init__(self, cluster: Cluster, reservations: Iterable[Reservation] = (), work: int = 10_000_000) -> None:
        self.cluster, self.work = cluster, work
        self.reservations = tuple(reservations)
        self.holdings = Holdings(cluster)
        self.totals = Profile(int(cluster.gpus[cluster.schedulable].sum()))
        """Whole GPUs that are free at all, as a first look."""
        self.limited: set[str] = set()
        """Names of tickets for which the placer's search stopped at its limit."""
        self._held: dict[Claim, _Held] = {}
        self._known: dict[tuple[object, int, int], Any] = {}
        """Answers since the last change."""
        self._keys = 0
        self._empty: Free | None = None
        self._ends: list[int] = sorted(r.end_s for r in self.reservations if r.end_s is not None)
        self._reserved_ends = tuple(self._ends)
        self._closed = [(r, _mask(cluster, r.nodes)) for r in self.reservations]
        self._quotas = Quotas(cluster).unused()
        self._usage = [Profile(cap.cap) for cap in self._quotas.caps]
        self._needs: dict[Ticket, _Needs] = {}
        request = cluster.request
        self._others_matter = bool(
            cluster.keeping_away or cluster.exclusive or any(group.together_level for group in request.groups)
        )

    # -- questions ---------------------------------------------------------------------------------

    def at(self, ticket: Ticket, start: int) -> Claim | None:
        end = _end(start, ticket.needs)
        return self._place(ticket, start, end) if self._roomy(ticket, start, end) else None

    def on_nodes(self, ticket: Ticket, start: int, names: Iterable[str]) -> Claim | None:
        """Return room at `start` on these nodes alone, None where they do not hold the ticket or are unknown."""
        index = self.cluster.tree.index
        known = [name for name in names if name in index]
        end = _end(start, ticket.needs)
        return self._place(ticket, start, end, _mask(self.cluster, known)) if known else None

    def earliest(self, ticket: Ticket, after: int) -> Claim | None:
        gpus, needs = self._needs_of(ticket).gpus, ticket.needs
        start = after
        while True:
            found = self.totals.earliest(gpus, needs, start)
            if found is None:
                return None
            start = found
            end = _end(start, needs)
            if self._roomy(ticket, start, end):
                claim = self._place(ticket, start, end)
                if claim is not None:
                    return claim
            following = bisect_right(self._ends, start)
            if following == len(self._ends) or self._ends[following] >= FOREVER:
                return None
            start = self._ends[following]

    def hopeful(self, tickets: Iterable[Ticket], now: int) -> list[Ticket]:
        verdicts: dict[object, bool] = self._memo("verdicts", now, now, dict)
        free = self.totals.least(now, now + 1)
        found = []
        for ticket in tickets:
            needs = self._needs.get(ticket) or self._needs_of(ticket)
            if needs.gpus > free:
                continue
            alike = needs.alike
            if alike not in verdicts:
                verdicts[alike] = self._roomy(ticket, now, _end(now, ticket.needs))
            if verdicts[alike]:
                found.append(ticket)
        return found

    def times(self, after: int) -> list[int]:
        found = {time for claim in self._held for time in (claim.start, claim.end)}
        for reservation in self.reservations:
            found |= {reservation.start_s, FOREVER if reservation.end_s is None else reservation.end_s}
        return sorted(time for time in found if after < time < FOREVER)

    def comer(self, claim: Claim, at: int) -> str:
        nodes = [t.node for t in claim.taken or ()]
        coming = [(r, mask) for r, mask in self._closed if r.start_s == at and not _may_use(claim.ticket, r)]
        return next((reservation.name for reservation, mask in coming if mask[nodes].any()), "")

    def ends(self, after: int) -> int | None:
        following = bisect_right(self._reserved_ends, after)
        return self._reserved_ends[following] if following < len(self._reserved_ends) else None

    def open_all(self) -> None:
        """Forget all reservations: for a copy that is asked what would be without them."""
        self._closed, self._known = [], {}

    def ignore_quotas(self) -> None:
        """Forget all quotas: for a copy that is asked what would be without them."""
        self._quotas, self._usage, self._known = copy(self._quotas), [], {}
        self._quotas.caps = []

    # -- changes -----------------------------------------------------------------------------------

    def reserve(self, claim: Claim) -> None:
        assert claim.taken is not None, "a claim of this space says which GPUs it takes"
        rows = [self._row(t) for t in claim.taken]
        self.hold(claim, rows, self._whole_gpus(claim.taken), self._charges(claim.taken))

    def hold(self, claim: Claim, rows: list[Row], whole_gpus: int, charges: tuple[int, ...]) -> None:
        """Reserve rows for a claim, also for one that was not placed here, such as a job that runs already.

        `whole_gpus`: GPUs on schedulable nodes that nobody else can use in part meanwhile, `charges`: what it adds to
        each quota.
        """
        self._keys += 1
        self._held[claim] = _Held(self._keys, whole_gpus, charges)
        self.holdings.add(self._keys, claim.start, claim.end, rows)
        insort(self._ends, claim.end)
        self._count(claim, claim.start, 1)

    def cancel(self, claim: Claim) -> None:
        self._count(claim, claim.start, -1)
        self.holdings.drop(self._held.pop(claim).key)
        del self._ends[bisect_left(self._ends, claim.end)]

    def shorten(self, claim: Claim, end: int) -> None:
        self._count(claim, end, -1)
        self.holdings.end_at(self._held[claim].key, end)
        del self._ends[bisect_left(self._ends, claim.end)]
        insort(self._ends, end)
        claim.end = end

    def lengthen(self, claim: Claim, end: int) -> None:
        old, claim.end = claim.end, end
        self.holdings.end_at(self._held[claim].key, end)
        del self._ends[bisect_left(self._ends, old)]
        insort(self._ends, end)
        self._count(claim, old, 1)

    def free_until(self, claim: Claim) -> int:
        return self._until(claim, claim.end - 1)

    def claims(self) -> list[Claim]:
        """Return all claims reserved."""
        return list(self._held)

    def forget(self, now: int) -> None:
        self.totals.forget(now)
        for usage in self._usage:
            usage.forget(now)
        for claim in [claim for claim in self._held if claim.end <= now]:
            self.holdings.drop(self._held.pop(claim).key)
        del self._ends[: bisect_right(self._ends, now)]

    def _count(self, claim: Claim, start: int, times: int) -> None:
        self._known.clear()
        held = self._held[claim]
        self.totals.take(start, claim.end, times * held.whole_gpus)
        for usage, charge in zip(self._usage, held.charges, strict=True):
            usage.take(start, claim.end, times * charge)

    # -- one window --------------------------------------------------------------------------------

    def _roomy(self, ticket: Ticket, start: int, end: int) -> bool:
        """Return whether whole GPUs are free throughout the window in a domain that may hold each part."""
        needs = self._needs_of(ticket)
        if needs.gpus > self._memo("totals", start, end, lambda: self.totals.least(start, end)):
            return False
        closed = self._closed_to(ticket, start, end)
        return all(self._room_of(part, start, end, closed) >= part.least for part in needs.parts)

    def _room_of(self, part: Part, start: int, end: int, closed: tuple[int, ...]) -> int:
        """Return the most pods of a part that whole GPUs allow in a domain that may hold it."""

        def count() -> int:
            free = self._memo("free", start, end, lambda: self.holdings.free_gpus(start, end))
            usable = part.eligible & ~self._mask_of(closed) if closed else part.eligible
            slots = np.where(usable, free // part.shape.gpus, 0)
            return int(self.cluster.tree.sums(slots, part.required).max(initial=0))

        return self._memo((part.shape.gpus, id(part.eligible), part.required, closed), start, end, count)

    def _memo(self, what: object, start: int, end: int, find: Callable[[], T]) -> T:
        """Return what was found for this window since the last change, or find it."""
        key = (what, start, end)
        if key not in self._known:
            self._known[key] = find()
        found: T = self._known[key]
        return found

    def _place(self, ticket: Ticket, start: int, end: int, within: Mask | None = None) -> Claim | None:
        gang = ticket.gang
        assert gang is not None, "a ticket of this space has a gang"
        free, quotas = self.free(start, end), self.quotas(start, end)
        opened = self.open_nodes(ticket, start, end)
        if within is not None:
            opened = within if opened is None else opened & within
        taken = self.choose_nodes(gang, free, quotas, opened)
        if isinstance(taken, str):
            if taken == "limit":
                self.limited.add(ticket.name)
            return None
        if not taken:  # an elastic job that runs could grow by nothing: no start
            return None
        claim = Claim(ticket, start, _end(start, FOREVER if ticket.length is None else ticket.length), taken)
        if ticket.needs == 1 and ticket.length is None:
            claim.end = self._until(claim, start)
        return claim

    def choose_nodes(self, gang: Gang, free: Free, quotas: Quotas, within: Mask | None) -> list[Taken] | Failure:
        """Return where a gang goes on what is free throughout its window: for spaces that place otherwise."""
        return Placer(free, EBinpack(), quotas, self.work).place(gang, within)

    def _until(self, claim: Claim, after: int) -> int:
        """Return when the claim, which ends by then, could stay no more beside those who come after `after`."""
        reached = self._reached(claim, after)
        if not (self._usage or self._others_matter or self.holdings.counted):
            return reached
        coming = sorted({other.start for other in self._held if after < other.start < reached})
        return next((at for at in coming if not self._bears(claim, at)), reached)

    def _bears(self, claim: Claim, at: int) -> bool:
        """Return whether all that is used at `at` leaves CPU, memory and quota to a claim, and rules its nodes."""
        assert claim.ticket.gang is not None, "a ticket of this space has a gang"
        assert claim.taken is not None, "a claim of this space says which GPUs it takes"
        charges = self._charges(claim.taken)
        if any(
            charge and usage.least(at, at + 1) < charge for usage, charge in zip(self._usage, charges, strict=False)
        ):
            return False
        free = self.free(at, at + 1)
        rows = [self._row(t) for t in claim.taken]
        nodes = sorted({row.node for row in rows})
        for left, what in ((free.cpu, "cpu"), (free.memory, "memory"), (free.pods, "pods")):
            if any(left[n] < sum(getattr(row, what) for row in rows if row.node == n) for n in nodes):
                return False
        opened = open_nodes(free, claim.ticket.gang)
        return opened is None or bool(opened[nodes].all())

    def _reached(self, claim: Claim, after: int) -> int:
        """Return when somebody else, or a reservation, next comes to the GPUs of a claim after `after`."""
        units: dict[int, set[int]] = {}
        for t in claim.taken or ():
            units.setdefault(t.node, set()).update(gpu for gpus in t.gpus for gpu in gpus)
        came = self.holdings.next_use(after, units)
        times = [FOREVER if came is None else came]
        for reservation, mask in self._closed:
            comes = reservation.start_s > after and not _may_use(claim.ticket, reservation)
            if comes and mask[list(units)].any():
                times.append(reservation.start_s)
        return min(times)

    def free(self, start: int, end: int) -> Free:
        """Return what is free throughout [start, end), reservations apart."""
        cluster = self.cluster
        peak = self.holdings.peak(start, end)
        free = Free(cluster, empty=True)
        free.units = np.maximum(cluster.gpu_units - peak.units, 0)
        free.spare = free.units.sum(axis=1)
        free.whole = ((free.units == cluster.unit[:, None]) & (cluster.gpu_units > 0)).sum(axis=1, dtype=np.int64)
        for name in ("cpu", "memory", "pods"):
            capacity: Ints = getattr(cluster, name)
            left = np.maximum(capacity - getattr(peak, name), 0)
            setattr(free, name, np.where(capacity < NOT_COUNTED, left, capacity))
        if self._others_matter:
            for claim in self._held:
                if claim.start < end and start < claim.end:
                    held = free.pods_of[claim.ticket.name]
                    for node in self.holdings.nodes_of(self._held[claim].key):
                        held[node] = 1
        return free

    def quotas(self, start: int, end: int) -> Quotas:
        """Return the quotas with the most that is used at one instant of the window."""
        found = copy(self._quotas)
        found.caps = [
            replace(cap, usage=cap.cap - usage.least(start, end))
            for cap, usage in zip(self._quotas.caps, self._usage, strict=True)
        ]
        return found

    def deepest(self, ticket: Ticket) -> int:
        if self._empty is None:
            self._empty = Free(self.cluster, empty=True)
        placer = Placer(self._empty, EBinpack(), Quotas(self.cluster).unused(), self.work)
        assert ticket.gang is not None, "a ticket of this space has a gang"
        taken = placer.place(ticket.gang)
        if isinstance(taken, str):
            return 0
        placer.release(taken)
        return self.depth_of(Claim(ticket, 0, 1, taken))

    def depth_of(self, claim: Claim) -> int:
        nodes = [t.node for t in claim.taken or ()]
        tree = self.cluster.tree
        return max(d for d in range(tree.depths) if len(set(tree.of_node[d][nodes].tolist())) <= 1)

    def open_nodes(self, ticket: Ticket, start: int, end: int) -> Mask | None:
        """Return the nodes that reservations leave to the ticket in [start, end), (N,); None where they leave all."""
        closed = self._closed_to(ticket, start, end)
        return ~self._mask_of(closed) if closed else None

    def _closed_to(self, ticket: Ticket, start: int, end: int) -> tuple[int, ...]:
        """Return the indices of the reservations that overlap [start, end) and do not let the ticket in."""
        return tuple(
            i
            for i, (reservation, _) in enumerate(self._closed)
            if reservation.start_s < end
            and (reservation.end_s is None or start < reservation.end_s)
            and not _may_use(ticket, reservation)
        )

    def _mask_of(self, closed: tuple[int, ...]) -> Mask:
        mask: Mask = np.logical_or.reduce([self._closed[i][1] for i in closed])
        return mask

    # -- what claims take --------------------------------------------------------------------------

    def _row(self, t: Taken) -> Row:
        shape, unit = t.part.shape, int(self.cluster.unit[t.node])
        each = unit
        if shape.milli:
            each = shape.milli * unit // 1000
        elif shape.mib:
            each = 1000 * shape.mib
        units: dict[int, int] = {}
        for gpus in t.gpus:
            for gpu in gpus:
                units[gpu] = units.get(gpu, 0) + each
        return Row(t.node, units, t.pods * shape.cpu, t.pods * shape.memory, t.pods)

    def _whole_gpus(self, taken: list[Taken]) -> int:
        return sum(t.pods * t.part.shape.gpus for t in taken if self.cluster.schedulable[t.node])

    def _charges(self, taken: list[Taken]) -> tuple[int, ...]:
        if not self._usage:
            return ()
        counted = copy(self._quotas)
        counted.caps = [replace(cap, usage=0) for cap in self._quotas.caps]
        for t in taken:
            counted.charge(t.part, t.node, t.pods)
        return tuple(cap.usage for cap in counted.caps)

    def _needs_of(self, ticket: Ticket) -> _Needs:
        needs = self._needs.get(ticket)
        if needs is None:
            gang = ticket.gang
            assert gang is not None, "a ticket of this space has a gang"
            parts = tuple(part for part in gang.parts if part.shape.gpus and part.least)
            each = tuple((part.shape.gpus, part.least, part.required, id(part.eligible)) for part in parts)
            open_to_it = tuple(i for i, (held, _) in enumerate(self._closed) if _may_use(ticket, held))
            gpus = sum(part.shape.gpus * part.least for part in parts)
            needs = self._needs[ticket] = _Needs(gpus, parts, (ticket.needs, each, open_to_it))
        return needs


class _Held(NamedTuple):
    """What is remembered of a claim to take it back."""

    key: int
    whole_gpus: int
    charges: tuple[int, ...]


class _Needs(NamedTuple):
    """What a ticket needs before it may start: whole GPUs in all, the parts with whole GPUs.

    Tickets with the same `alike` meet or fail the quick conditions together.
    """

    gpus: int
    parts: tuple[Part, ...]
    alike: object


def _end(start: int, seconds: int) -> int:
    return FOREVER if seconds >= FOREVER else start + seconds


def _mask(cluster: Cluster, names: Iterable[str]) -> Mask:
    mask = np.zeros(len(cluster.nodes), dtype=bool)
    mask[[cluster.tree.index[name] for name in names]] = True
    return mask


def _may_use(ticket: Ticket, reservation: Reservation) -> bool:
    assert ticket.gang is not None, "a ticket of this space has a gang"
    return all(job.name in reservation.jobs for job in ticket.gang.jobs)
