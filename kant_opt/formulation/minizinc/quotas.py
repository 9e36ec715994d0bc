"""Quotas of queues and cohorts as caps: who is charged to each, and how much it allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kant_opt.formulation.minizinc.nodes import Resource, charge, pool_of_pod
from kant_opt.schema import Job, Node, PodSet, Queue, Quota, Request


@dataclass(frozen=True)
class Cap:
    """Together the queues may use so much of a resource in a pool (in all pools where empty); GPUs in thousandths."""

    queues: frozenset[str]
    resource: Resource
    pool: str
    amount: int

    def charge_of_pod(self, job: Job, podset: PodSet, node: Node) -> int:
        """Return what one new pod on `node` adds to the usage."""
        counts = job.queue in self.queues and self.pool in ("", pool_of_pod(podset, node))
        return charge(self.resource, podset, node) if counts else 0


def caps_of(request: Request) -> Iterator[Cap]:
    """Yield what each queue, then each cohort may use."""
    cohorts: dict[str, list[Queue]] = {}
    for queue in request.queues:
        if queue.cohort:
            cohorts.setdefault(queue.cohort, []).append(queue)
        for quota in queue.quotas:
            amount = quota.limit if queue.cohort else quota.guaranteed
            if amount is not None:
                yield _cap([queue], quota, amount)
    for queues in cohorts.values():
        shared: dict[tuple[Resource, str], list[Quota]] = {}
        for queue in queues:
            for quota in queue.quotas:
                shared.setdefault((quota.resource, quota.pool), []).append(quota)
        for quotas in shared.values():
            yield _cap(queues, quotas[0], sum(quota.guaranteed for quota in quotas))


def running_usage(request: Request, cap: Cap) -> int:
    """Return what running jobs use of `cap`, each in the queue of its allocation, else in its job's."""
    queue_of_job = {job.name: job.queue for job in request.jobs}
    node_of = {node.name: node for node in request.nodes}
    return sum(
        charge(cap.resource, hold, node_of[hold.node])
        for allocation in request.allocations
        if (allocation.queue or queue_of_job.get(allocation.job, "")) in cap.queues
        for hold in allocation.holds
        if cap.pool in ("", node_of[hold.node].pools[0])
    )


def _cap(queues: Sequence[Queue], quota: Quota, amount: int) -> Cap:
    names = frozenset(queue.name for queue in queues)
    return Cap(names, quota.resource, quota.pool, amount * (1000 if quota.resource == "gpu" else 1))
