"""The state of the queue at one instant: who waits, who runs, who is promised what."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from kant_opt.backends import Deadline
from kant_opt.planning.registry import Order
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.schema import Limits


@dataclass(eq=False, slots=True)
class Run:
    """One run of one ticket, `end` as it came about."""

    ticket: Ticket
    claim: Claim
    start: int
    end: int
    backfilled: bool = False
    evicted_for: str = ""


class Board:
    """The state of the queue that policies read and change, at `now`."""

    def __init__(
        self,
        space: Space,
        order: Order,
        running: Iterable[Claim] = (),
        *,
        limits: Limits | None = None,
        deadline: Deadline | None = None,
    ) -> None:
        self.space, self.order = space, order
        self.limits = limits or Limits()
        self.deadline = deadline or Deadline(None)
        """Limits and deadline are for policies that search."""
        self.now = 0
        self.waiting: list[Ticket] = []
        """In the queue's order; those started at this instant stay listed until the policy is done."""
        self.arrived: list[Ticket] = []
        self.running: dict[Ticket, Run] = {}
        self.promises: dict[Ticket, Claim] = {}
        self.freed = False
        """Room came free at this instant that earlier promises did not count on."""
        self.left = False
        """Any room came free at this instant, or somebody asked to be woken."""
        self.usage: dict[str, int] = {}
        """GPU-seconds per tenant of runs that have ended."""
        self.runs: list[Run] = []
        """All runs, in order of start."""
        self.ended: set[str] = set()
        """Names of the jobs that ran to their end."""
        self._ends: list[tuple[int, int, Run]] = []
        self._pushed = count()
        self._wakes: list[int] = []
        self._begun = False
        for claim in running:
            self._run(claim)
        self.queued: frozenset[str] = frozenset()
        """Names of all jobs that queue at some time: living pods of theirs do not end them."""
        self.ran_before = frozenset(self.running)
        """Tickets of the jobs that ran when all this began."""

    # -- what policies do --------------------------------------------------------------------------

    def start(self, claim: Claim, *, backfilled: bool = False) -> None:
        """Let a claim of `now` begin to run."""
        assert claim.start == self.now, "only claims of this instant start"
        promised = self.promises.pop(claim.ticket, None)
        if promised is not claim:
            if promised is not None:
                self.space.cancel(promised)
            self.space.reserve(claim)
        self._run(claim).backfilled = backfilled
        self._begun = True

    def promise(self, claim: Claim) -> None:
        """Reserve a claim for later, instead of any that its ticket has; the policy is asked again at its start."""
        self.withdraw(claim.ticket)
        self.space.reserve(claim)
        self.promises[claim.ticket] = claim
        self.wake(claim.start)

    def withdraw(self, ticket: Ticket) -> None:
        """Take back the promise to a ticket, if it has one."""
        claim = self.promises.pop(ticket, None)
        if claim is not None:
            self.space.cancel(claim)

    def start_due(self) -> None:
        """Start every promise that is due, in the queue's order; one to a job whose predecessors still run falls."""
        due = {ticket for ticket, claim in self.promises.items() if claim.start <= self.now}
        for ticket in [t for t in self.waiting if t in due] if due else ():
            if self.is_ready(ticket):
                self.start(self.promises[ticket])
            else:
                self.withdraw(ticket)

    def evict(self, run: Run, for_ticket: Ticket) -> None:
        """End a run now for another ticket; it goes back to its place in the queue, unless it ran before all this."""
        run.evicted_for = for_ticket.name
        self._finish(run)
        if run.ticket not in self.ran_before:
            self._join(run.ticket)
        self.freed = True

    def wake(self, at: int) -> None:
        """Ask for a decision at `at`, should nothing else happen then."""
        if at > self.now:
            heappush(self._wakes, at)

    @property
    def wakes(self) -> list[int]:
        """The times at which somebody asked to be woken, rising."""
        return sorted(self._wakes)

    def used_by(self, tenant: str) -> int:
        """Return the GPU-seconds that a tenant has used up to now."""
        now = [run for run in self.running.values() if run.ticket.tenant == tenant]
        return self.usage.get(tenant, 0) + sum(run.ticket.gpus * (self.now - run.start) for run in now)

    # -- what policies ask -------------------------------------------------------------------------

    def is_ready(self, ticket: Ticket) -> bool:
        """Return whether all jobs that the ticket is to start after have ended."""
        return self.ended.issuperset(ticket.after)

    def ready_at(self, ticket: Ticket) -> int | None:
        """Return from when on the ticket may start, as its predecessors run or are promised; None: not known yet."""
        if self.is_ready(ticket):
            return self.now
        claims = [*(run.claim for run in self.running.values()), *self.promises.values()]
        ends = {
            name: FOREVER if claim.ticket.length is None else claim.end  # cut is not ended
            for claim in claims
            for name in claim.ticket.jobs
            if claim.ticket not in self.ran_before or name not in self.queued
        }
        known = [ends.get(name, FOREVER) for name in ticket.after if name not in self.ended]
        return None if max(known) >= FOREVER else max(self.now, *known)

    def queue(self) -> list[Ticket]:
        """Return in the queue's order who waits and may start now: all predecessors ended, not started just now."""
        running, ended = self.running, self.ended
        return [t for t in self.waiting if t not in running and (not t.after or ended.issuperset(t.after))]

    def head(self) -> Ticket | None:
        """Return the first of `queue()`, None where it is empty, without listing the others."""
        return next((t for t in self.waiting if t not in self.running and self.is_ready(t)), None)

    def still_waiting(self) -> list[Ticket]:
        """Return `waiting` without those started at this instant."""
        return [ticket for ticket in self.waiting if ticket not in self.running]

    # -- what the loop does ------------------------------------------------------------------------

    def next_event(self) -> int | None:
        """Return the time of the next end or wake, None where there is none."""
        times = [heap[0] for heap in (self._wakes,) if heap] + ([self._ends[0][0]] if self._ends else [])
        return min(times, default=None)

    def advance(self, now: int, arrivals: list[Ticket]) -> None:
        """Go on to `now`: end what ends, let arrivals join the queue."""
        self.now = now
        self.freed = self.left = False
        while self._wakes and self._wakes[0] <= now:
            heappop(self._wakes)
            self.left = True
        cut: list[Run] = []
        while self._ends and self._ends[0][0] <= now:
            run = heappop(self._ends)[2]
            if self.running.get(run.ticket) is not run:
                continue
            if run.ticket.length is None and run.ticket.run is None:
                cut.append(run)
            else:
                self._finish(run)
                if run.ticket not in self.ran_before or run.ticket.name not in self.queued:
                    self.ended.update(run.ticket.jobs)
        if cut:
            self._withdraw_overtaken()
        for run in cut:
            self._cut(run)
        self.space.forget(now)
        self.arrived = arrivals
        for ticket in arrivals:
            self._join(ticket)
        if self.order.changes:
            self.waiting.sort(key=lambda ticket: self.order.key(ticket, self))

    def settle(self) -> None:
        """Drop from the queue what has started."""
        if self._begun:
            self.waiting = self.still_waiting()
            self._begun = False

    def _withdraw_overtaken(self) -> None:
        """Take back the promises that are due to jobs whose predecessors have not ended after all: nobody comes."""
        for ticket in [t for t, claim in self.promises.items() if claim.start <= self.now and not self.is_ready(t)]:
            self.withdraw(ticket)

    def _cut(self, run: Run) -> None:
        """Let a run of unknown length go on if its room is free still, else evict it for whoever comes."""
        until = self.space.free_until(run.claim)
        if until > self.now:
            self.space.lengthen(run.claim, until)
            run.end = until
            if until < FOREVER:
                heappush(self._ends, (until, next(self._pushed), run))
            return
        due = [t.name for t, claim in self.promises.items() if claim.start <= self.now]
        run.evicted_for = self.space.comer(run.claim, self.now) or (due[0] if due else "")
        self._finish(run)
        self._join(run.ticket)

    def _join(self, ticket: Ticket) -> None:
        if self.waiting and self.order.key(ticket, self) < self.order.key(self.waiting[-1], self):
            insort(self.waiting, ticket, key=lambda other: self.order.key(other, self))
        else:
            self.waiting.append(ticket)

    def _run(self, claim: Claim) -> Run:
        ticket = claim.ticket
        length = ticket.run if ticket.run is not None else ticket.length
        end = claim.end if length is None else min(claim.end, claim.start + length)
        run = Run(ticket, claim, claim.start, end)
        self.running[ticket] = run
        self.runs.append(run)
        if end < FOREVER:
            heappush(self._ends, (end, next(self._pushed), run))
        return run

    def _finish(self, run: Run) -> None:
        del self.running[run.ticket]
        if self.now < run.claim.end:
            self.space.shorten(run.claim, self.now)
            self.freed = True
        run.end = self.now
        self.left = True
        tenant = run.ticket.tenant
        self.usage[tenant] = self.usage.get(tenant, 0) + run.ticket.gpus * (run.end - run.start)
