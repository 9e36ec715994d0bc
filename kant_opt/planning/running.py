"""Jobs that run already, as claims: which GPUs they hold and until when."""

from __future__ import annotations

from collections.abc import Container, Iterator

from kant_opt.planning.holdings import Row
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.schema import Allocation, Flag, Hold
from kant_opt.view import Cluster, Quotas


def running_claims(cluster: Cluster, growing: Container[str]) -> Iterator[tuple[Claim, Allocation]]:
    """Yield a claim per running job, from now on: until its known end, for one more second where that is over, for
    ever where it is unknown.

    Jobs in `growing` run and wait for more pods: those that run stay as long as it takes.
    """
    now = cluster.request.now_s
    for position, alloc in enumerate(cluster.request.allocations):
        grows = alloc.job in growing
        until = FOREVER if alloc.until_s is None or grows else max(alloc.until_s, now + 1)
        ticket = Ticket(
            name=alloc.job,
            position=position,
            submit=now if alloc.since_s is None else alloc.since_s,
            length=None if until == FOREVER else until - now,
            gpus=sum(hold.gpus or len(hold.gpu_indices) for hold in alloc.holds),
            priority=alloc.priority,
            tenant=alloc.tenant,
            preemptible=alloc.preemptible and not grows,
        )
        yield Claim(ticket, now, until), alloc


def overdue(cluster: Cluster) -> tuple[Flag, ...]:
    """Return a flag for each running job that should have ended by now."""
    now = cluster.request.now_s
    return tuple(
        Flag(subject=a.job, text=f"runs {now - a.until_s} s beyond its end; planned as if it ended in a second")
        for a in cluster.request.allocations
        if a.until_s is not None and a.until_s <= now
    )


def hold_running(space: TopologicalSpace, claims: list[tuple[Claim, Allocation]]) -> None:
    """Let running jobs hold their room in a space: GPUs they name, else the lowest that are free, as `view.Free`."""
    cluster = space.cluster
    indices = held_gpus(cluster, [alloc for _, alloc in claims])
    counted: set[tuple[int, int]] = set()  # over-committed GPUs count once, else too little would seem free later
    for claim, alloc in claims:
        rows, whole = [], 0
        for i, hold in enumerate(alloc.holds):
            node = cluster.tree.index[hold.node]
            units = {gpu: _units(cluster, hold, node) for gpu in indices[alloc.job, i]}
            rows.append(Row(node, units, hold.cpu_milli, hold.memory_bytes, hold.pods))
            new = {(node, gpu) for gpu, used in units.items() if used == cluster.unit[node]} - counted
            counted |= new
            whole += len(new) if cluster.schedulable[node] else 0
        space.hold(claim, rows, whole, _charges(cluster, alloc))


def held_gpus(cluster: Cluster, allocations: list[Allocation]) -> dict[tuple[str, int], list[int]]:
    """Return the healthy GPUs of each hold by (job, position): first those named, then for the others the lowest free.

    Holds beyond the free GPUs take all of the node's.
    """
    found: dict[tuple[str, int], list[int]] = {}
    used: dict[int, set[int]] = {}
    unnamed: list[tuple[str, int, Hold, int]] = []
    for alloc in allocations:
        for i, hold in enumerate(alloc.holds):
            node = cluster.tree.index[hold.node]
            healthy = cluster.gpu_units[node]
            found[alloc.job, i] = [gpu for gpu in hold.gpu_indices if gpu < len(healthy) and healthy[gpu]]
            used.setdefault(node, set()).update(found[alloc.job, i])
            if hold.gpus and not hold.gpu_indices:
                unnamed.append((alloc.job, i, hold, node))
    for job, i, hold, node in unnamed:
        healthy_gpus = cluster.gpu_units[node].nonzero()[0].tolist()
        free = [gpu for gpu in healthy_gpus if gpu not in used[node]]
        found[job, i] = free[: hold.gpus] if hold.gpus <= len(free) else healthy_gpus
        used[node].update(found[job, i])
    return found


def _units(cluster: Cluster, hold: Hold, node: int) -> int:
    unit = int(cluster.unit[node])
    if hold.gpu_milli is not None:
        return hold.gpu_milli * unit // 1000
    if hold.gpu_memory_mib is not None:
        return hold.gpu_memory_mib * 1000
    return unit


def _charges(cluster: Cluster, alloc: Allocation) -> tuple[int, ...]:
    """Return what a running job adds to each quota."""
    return tuple(cap.usage for cap in Quotas(cluster, (alloc,)).caps) if cluster.request.queues else ()
