"""A request as it stands once a placement runs, and what running jobs hold of it without some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kant_opt.schema import Allocation, Hold, Job, PlacedPods, Placement, PodSet, Request


def after(request: Request, placement: Placement) -> Request:
    """Return the request with the placement's pods as holds of their jobs, which go on being listed.

    The free room is the same to the last GPU: pods that name their GPUs keep them, others take what is free.
    """
    jobs = {job.name: job for job in request.jobs}
    running = {alloc.job: alloc for alloc in request.allocations}
    for placed in placement.jobs:
        job = jobs[placed.job]
        podsets = {podset.name: podset for podset in job.podsets}
        holds = tuple(hold for pods in placed.pods for hold in _holds(podsets[pods.podset], pods))
        if not holds:
            continue
        alloc = running.get(job.name) or _started(job, request.now_s)
        running[job.name] = alloc.model_copy(update={"holds": (*alloc.holds, *holds)})
    return request.model_copy(update={"allocations": tuple(running.values())})


def without(allocations: tuple[Allocation, ...], jobs: Collection[str]) -> tuple[Allocation, ...]:
    """Return the allocations of the other jobs."""
    return tuple(alloc for alloc in allocations if alloc.job not in jobs)


def without_on(
    allocations: tuple[Allocation, ...], nodes: Collection[str], *, keep: Collection[str]
) -> tuple[Allocation, ...]:
    """Return the allocations less what all jobs but those of `keep` hold on some nodes."""
    return tuple(
        alloc
        if alloc.job in keep or all(hold.node not in nodes for hold in alloc.holds)
        else alloc.model_copy(update={"holds": tuple(h for h in alloc.holds if h.node not in nodes)})
        for alloc in allocations
    )


def _started(job: Job, now_s: int) -> Allocation:
    return Allocation(
        job=job.name,
        holds=(),
        queue=job.queue,
        tenant=job.tenant,
        priority=job.priority,
        since_s=now_s,
        until_s=None if job.walltime_s is None else now_s + job.walltime_s,
        preemptible=job.preemptible,
        exclusive_level=job.exclusive_level,
    )


def _holds(podset: PodSet, pods: PlacedPods) -> Iterator[Hold]:
    """Yield the pods as holds: shares one by one, since each names its GPU."""
    if not podset.has_share:
        indices = tuple(i for pod in pods.gpus for i in pod)
        yield _hold(podset, pods.node, pods.count).model_copy(
            update={"gpus": podset.gpus * pods.count, "gpu_indices": indices}
        )
        return
    for pod in pods.gpus:
        share = {"gpu_milli": podset.gpu_milli, "gpu_memory_mib": podset.gpu_memory_mib, "gpu_indices": pod}
        yield _hold(podset, pods.node, 1).model_copy(update=share)


def _hold(podset: PodSet, node: str, count: int) -> Hold:
    cpu, memory = podset.cpu_milli * count, podset.memory_bytes * count
    return Hold(node=node, pods=count, podset=podset.name, cpu_milli=cpu, memory_bytes=memory)
