"""The stage of a replay: the cluster, by number or node by node, and a ticket for every job that fits on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kant_opt.errors import InputError
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.queue import Queue, read_queue
from kant_opt.planning.space import Space
from kant_opt.planning.ticket import Ticket
from kant_opt.replay.result import NodeRow
from kant_opt.replay.spaces import BackendSpace, placing_backend
from kant_opt.replay.workload import ReplayJob, Workload, as_job
from kant_opt.schema import FabricSpec, Node, Request, Zone


@dataclass(frozen=True, eq=False)
class Stage:
    """Everything that all policies of one replay share."""

    jobs: tuple[ReplayJob, ...]
    """Those that ask for no more than there is, `tickets[i]` stands for `jobs[i]`."""
    tickets: tuple[Ticket, ...]
    too_large: tuple[ReplayJob, ...]
    """They fit at no time."""
    gpus: int
    queue: Queue | None = None
    """Nodes, gangs and rules; None where only numbers are looked at."""

    @property
    def nodes(self) -> tuple[NodeRow, ...]:
        """The nodes in the order of the view; empty without."""
        if self.queue is None:
            return ()
        cluster = self.queue.cluster
        paths = self.queue.fabric.paths
        return tuple(
            NodeRow(node.name, paths[node.name][:-1], int(gpus))
            for node, gpus in zip(cluster.nodes, cluster.gpus, strict=True)
        )

    @property
    def levels(self) -> tuple[str, ...]:
        """Levels above the node, outermost first."""
        return () if self.queue is None else self.queue.cluster.tree.levels[:-1]

    def space(self, backend: str, seed: int) -> Space:
        """Return the empty cluster."""
        if self.queue is None:
            return CountingSpace(self.gpus)
        return BackendSpace(self.queue.cluster, placing_backend(backend), seed)


def counting_stage(work: Workload, gpus: int) -> Stage:
    """Return `gpus` interchangeable GPUs."""
    if gpus < 1:
        raise InputError(f"a capacity of {gpus} GPUs", way_out="give at least 1")
    jobs = tuple(job for job in work.jobs if job.gpus <= gpus)
    tickets = tuple(
        Ticket(job.name, i, job.submit_s, job.walltime_s, job.gpus, run=job.run_s, tenant=job.trace.user)
        for i, job in enumerate(jobs)
    )
    return Stage(jobs, tickets, tuple(job for job in work.jobs if job.gpus > gpus), gpus)


def fabric_stage(work: Workload, spec: FabricSpec, nodes: Sequence[Node], inference_zone: Zone | None = None) -> Stage:
    """Return nodes in a fabric. Jobs whose pods the trace does not tell are split for the most common size of node.

    Costs what reading a request of all jobs costs, and one placement on the empty fabric per size of job.
    """
    sizes = [node.healthy_gpus for node in nodes if node.schedulable and node.healthy_gpus]
    if not sizes:
        raise InputError("no node of the fabric has a GPU to use", way_out="name a fabric with GPUs")
    usual = max(sorted(set(sizes), reverse=True), key=sizes.count)
    request = Request(
        fabric=spec,
        nodes=tuple(nodes),
        jobs=tuple(as_job(job, usual) for job in work.jobs),
        inference_zone=inference_zone,
    )
    queue = read_queue(request)
    possible: dict[object, bool] = {}
    jobs: list[ReplayJob] = []
    tickets: list[Ticket] = []
    too_large: list[ReplayJob] = []
    for job, ticket in zip(work.jobs, queue.tickets, strict=True):
        podset = request.jobs[ticket.position].podsets[0]
        alike = (podset.count, podset.gpus, podset.gpu_milli)
        if alike not in possible:
            possible[alike] = queue.is_possible(ticket) is not False
        if possible[alike]:
            tickets.append(replace(ticket, run=job.run_s))
            jobs.append(job)
        else:
            too_large.append(job)
    return Stage(tuple(jobs), tuple(tickets), tuple(too_large), sum(sizes), queue)
