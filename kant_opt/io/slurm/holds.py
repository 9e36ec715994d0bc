"""What runs: Slurm jobs that hold nodes, and usage that no known job explains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kant_opt.io.slurm.gres import Gpus, gpus_in
from kant_opt.io.slurm.hostlist import Allowance
from kant_opt.io.slurm.jobs import JobRecord, NodeShare, gpus_of
from kant_opt.io.slurm.nodes import NodeRecord
from kant_opt.io.slurm.values import MIB, within
from kant_opt.schema import NODE_LEVEL, Allocation, Hold, parse


def to_allocation(record: JobRecord, inner_level: str | None, allowance: Allowance) -> Allocation:
    """Return what a running job holds: one pod per node; GPUs by index where told, else their number.

    CPUs and GPUs that are only known in all are shared evenly by its nodes, the first ones taking what is left over.
    It ends at its end time where it has a limit.
    """
    until = None if record.unlimited else record.end_s
    if until is None and not record.unlimited and record.start_s is not None and record.limit_s is not None:
        until = record.start_s + record.limit_s
    return parse(
        Allocation,
        {
            "job": record.id,
            "holds": [_hold(share) for share in _shares(record, allowance)],
            "queue": ",".join(record.partitions or ()),
            "tenant": record.account or "",
            "priority": record.priority or 0,
            "since_s": record.start_s,
            "until_s": until,
            "exclusive_level": {"node": NODE_LEVEL, "topo": inner_level}.get(record.exclusive or ""),
        },
    )


def _shares(record: JobRecord, allowance: Allowance) -> list[NodeShare]:
    names = allowance.expand(record.nodes or "", "nodes")
    told = {share.node: share for share in reversed(record.shares or ())}
    if set(told) != set(names):
        told = {}
    know_gpus = any(share.gres for share in told.values())
    gpus = _shared(0 if know_gpus else gpus_of(record), len(names))
    cpus = _shared(record.cpus or 0, len(names))
    shares = []
    for i, name in enumerate(names):
        share = told.get(name, NodeShare(name))
        held = cpus[i] if share.cpus is None else share.cpus
        memory = share.memory_mib
        if memory is None:
            memory = record.memory_per_node_mib or (record.memory_per_cpu_mib or 0) * held
        shares.append(NodeShare(name, (share.gres or "") if know_gpus else f"gpu:{gpus[i]}", held, memory))
    return shares


def _shared(total: int, parts: int) -> list[int]:
    size, larger = divmod(total, parts) if parts else (0, 0)
    return [size + 1] * larger + [size] * (parts - larger)


def _hold(share: NodeShare) -> dict[str, Any]:
    gpus = gpus_in(share.gres or "")
    return {
        "node": share.node,
        "gpus": sum(g.count for g in gpus),
        "gpu_indices": _indices(gpus),
        "cpu_milli": (share.cpus or 0) * 1000,
        "memory_bytes": (share.memory_mib or 0) * MIB,
    }


def _indices(gpus: Iterable[Gpus]) -> tuple[int, ...]:
    """Return the indices of all the GPUs, empty unless every one is told and none twice."""
    told = [g for g in gpus if g.count]
    indices = [i for g in told for i in g.indices]
    whole = all(g.indices for g in told) and len(set(indices)) == len(indices)
    return tuple(sorted(indices)) if whole else ()


def unexplained(records: Mapping[str, NodeRecord], allocations: Iterable[Allocation]) -> list[Allocation]:
    """Return an allocation for every node whose own account shows more use than the known jobs hold.

    A node of which only the state ALLOCATED is told, without GPU counts and without a known job, is taken as full.
    """
    held: dict[str, list[Hold]] = {}
    for allocation in allocations:
        for hold in allocation.holds:
            held.setdefault(hold.node, []).append(hold)
    found = []
    for name, record in records.items():
        with within(f"node {name}"):
            more = _more(record, held.get(name, []))
        if more is not None:
            found.append(parse(Allocation, {"job": f"(unknown on {name})", "holds": [more]}, place=f"node {name}"))
    return found


def _more(record: NodeRecord, holds: list[Hold]) -> dict[str, Any] | None:
    used = record.gres_used
    full = used is None and not holds and "ALLOCATED" in (record.states or ())
    gpus = gpus_in((record.gres if full else used) or "")
    count = sum(g.count for g in gpus) - sum(h.gpus for h in holds)
    cpus = (record.used_cpus or 0) - sum(h.cpu_milli for h in holds) // 1000
    memory = (record.used_memory_mib or 0) - sum(h.memory_bytes for h in holds) // MIB
    if max(count, cpus, memory) <= 0:
        return None
    known = {i for h in holds for i in h.gpu_indices}
    left = [i for i in _indices(gpus) if i not in known]
    return {
        "node": record.name,
        "gpus": max(count, 0),
        "gpu_indices": tuple(left) if len(left) == count else (),
        "cpu_milli": max(cpus, 0) * 1000,
        "memory_bytes": max(memory, 0) * MIB,
    }
