"""The request as planning sees it: tickets of what waits, claims of what runs, and the space they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kant_opt.backends import Placer
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.fabric import Fabric, build_fabric, check_levels
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.running import hold_running, running_claims
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.planning.window import Patience, PatientSpace
from kant_opt.schema import Allocation, Request
from kant_opt.view import NOT_COUNTED, Cluster, Free, Gang, Quotas, compile_gangs


@dataclass(eq=False)
class Queue:
    """One request ready for planning.

    `cluster` knows neither reservations nor predecessors: these depend on the time of the start.
    """

    request: Request
    fabric: Fabric
    cluster: Cluster
    tickets: list[Ticket]
    running: list[tuple[Claim, Allocation]]

    @cached_property
    def unit(self) -> int | None:
        """GPUs of every pod, where a number of pods says it all; None where nodes have to be looked at."""
        return _unit(self)

    def topological(self, patience: Patience | None = None) -> TopologicalSpace:
        """Return a space of nodes with the running jobs in it."""
        parts = self.cluster, self.request.reservations, self.request.limits.search_states
        space = TopologicalSpace(*parts) if patience is None else PatientSpace(*parts, patience)
        hold_running(space, self.running)
        return space

    def space(self, patience: Patience | None = None, *, by_number: bool = True) -> Space:
        """Return a space with the running jobs in it: of numbers where that is exact (and wanted), else of nodes."""
        if patience is not None or not by_number or self.unit is None:
            return self.topological(patience)
        cluster = self.cluster
        space = CountingSpace(int(cluster.gpus[cluster.schedulable].sum()))
        open_nodes = {node.name for node in self.request.nodes if node.schedulable}
        for claim, alloc in self.running:
            held = sum(hold.gpus for hold in alloc.holds if hold.node in open_nodes)
            space.profile.take(claim.start, claim.end, held)
        return space

    def is_possible(self, ticket: Ticket) -> bool | None:
        """Return whether any pods of the ticket fit on the empty fabric; None: the search stopped at its limit."""
        gang = ticket.gang
        assert gang is not None, "tickets of a request have gangs"
        first = gang.open_parts[0]
        part = gang.parts[first]
        if len(gang.open_parts) == 1 and not part.living and not self._placer.quotas:
            room = self._placer.room_of(gang, first)[part.required]
            if int(room.max(initial=0)) >= part.target:
                return True
        taken = self._placer.place(gang)
        if isinstance(taken, str):
            return None if taken == "limit" else False
        self._placer.release(taken)
        return bool(taken)

    def fits_with_all_nodes(self, ticket: Ticket) -> bool:
        """Return whether a ticket would fit on the empty fabric if every node were in service."""
        same = next(other for other in self._in_service.tickets if other.name == ticket.name)
        return bool(self._in_service.is_possible(same))

    @cached_property
    def _in_service(self) -> Queue:
        nodes = tuple(node.model_copy(update={"schedulable": True}) for node in self.request.nodes)
        return read_queue(self.request.model_copy(update={"nodes": nodes}))

    @cached_property
    def _placer(self) -> Placer:
        free = Free(self.cluster, empty=True)
        return Placer(free, EBinpack(), Quotas(self.cluster).unused(), self.request.limits.search_states)


def read_queue(request: Request) -> Queue:
    """Return the request's queue. Jobs with nothing left to place get no ticket. Costs what `place` costs to begin."""
    fabric = build_fabric(request.fabric, request.nodes)
    check_levels(request, fabric)
    jobs = tuple(job.model_copy(update={"after": ()}) if job.after else job for job in request.jobs)
    cluster = Cluster(request.model_copy(update={"jobs": jobs, "reservations": ()}), fabric)
    after = {job.name: job.after for job in request.jobs}
    gangs = [gang for gang in compile_gangs(cluster) if gang.open_parts]
    tickets = [_ticket(gang, after) for gang in gangs]
    growing = {name for ticket in tickets for name in ticket.jobs}
    return Queue(request, fabric, cluster, tickets, list(running_claims(cluster, growing)))


def _ticket(gang: Gang, after: dict[str, tuple[str, ...]]) -> Ticket:
    """Return the ticket of a gang: submitted when its last job is, and as long as the longest of them."""
    lengths = [None if job.walltime_s is None else max(1, job.walltime_s) for job in gang.jobs]
    return Ticket(
        name=gang.name,
        position=gang.position,
        submit=max(job.submit_s for job in gang.jobs),
        length=None if None in lengths else max(length for length in lengths if length is not None),
        gpus=-(-gang.gpu_milli // 1000),
        priority=gang.priority,
        tenant=gang.jobs[0].tenant,
        preemptible=len(gang.jobs) == 1 and gang.jobs[0].preemptible,  # of a group some may have ended before
        after=tuple(dict.fromkeys(name for job in gang.jobs for name in after[job.name])),  # one of its own: never
        gang=gang,
    )


def _unit(queue: Queue) -> int | None:
    """Return the GPUs per pod if all pods want equally many and nothing else counts: see `CountingSpace`.

    Then every node has a whole number of slots, before and after, and a slot is as good as any other.
    """
    request, cluster = queue.request, queue.cluster
    parts = [part for ticket in queue.tickets if ticket.gang for part in ticket.gang.parts]
    sizes = {part.shape.gpus for part in parts}
    plain = not (request.reservations or request.queues or request.groups or cluster.keeping_away or cluster.exclusive)
    if not plain or len(sizes) != 1 or len(parts) != len(queue.tickets):
        return None
    (unit,) = sizes
    asked = [(any(p.shape.cpu for p in parts), cluster.cpu), (any(p.shape.memory for p in parts), cluster.memory)]
    counted = any((array < NOT_COUNTED).any() for ask, array in [*asked, (True, cluster.pods)] if ask)
    if not unit or counted or (cluster.gpus[cluster.schedulable] % unit).any():
        return None
    for ticket in queue.tickets:
        gang = ticket.gang
        assert gang is not None, "tickets of a request have gangs"
        part = gang.parts[0]
        ruled = gang.scopes or gang.apart or part.slices or part.spread or part.living or part.least != part.target
        if ruled or not np.array_equal(part.eligible, cluster.schedulable):
            return None
    holds = [hold for _, alloc in queue.running for hold in alloc.holds]
    if any(hold.gpu_milli or hold.gpu_memory_mib or hold.gpus % unit for hold in holds) or Free(cluster).flags:
        return None
    return unit
