"""Nodes as Slurm tells of them: `scontrol show nodes` (JSON, text) and `sinfo --json`, to one record each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from kant_opt.io.slurm.gres import gpus_in
from kant_opt.io.slurm.hostlist import Allowance
from kant_opt.io.slurm.state import closing_states, node_states
from kant_opt.io.slurm.values import MIB, Json, number, pairs, records_of, text, tres, within, words
from kant_opt.schema import Node, parse

TEXT_SIGNATURE = re.compile(r"^NodeName=\S+ (?:Arch=|CoresPerSocket=)", re.MULTILINE)
"""Finds a record of `scontrol show node`, not a line of slurm.conf."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What one source tells of a node; None: nothing."""

    name: str
    states: frozenset[str] | None = None
    reason: str | None = None
    gres: str | None = None
    """Installed; "" where the source says that there are none."""
    gres_used: str | None = None
    cpus: int | None = None
    used_cpus: int | None = None
    memory_mib: int | None = None
    used_memory_mib: int | None = None
    partitions: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None


_FIELDS = tuple(f.name for f in fields(NodeRecord))


def merge_nodes(records: Iterable[NodeRecord]) -> dict[str, NodeRecord]:
    """Return one record per node: of each field the first that tells it; partitions and features are joined.

    Give the richer source first: `scontrol show nodes --json`, `scontrol show node`, `sinfo --json`.
    """
    found: dict[str, NodeRecord] = {}
    for record in records:
        known = found.get(record.name)
        found[record.name] = _merged(known, record) if known else record
    return found


def _merged(known: NodeRecord, more: NodeRecord) -> NodeRecord:
    new = {f: getattr(more, f) for f in _FIELDS if getattr(known, f) is None and getattr(more, f) is not None}
    for f in ("partitions", "features"):
        first, second = getattr(known, f), getattr(more, f)
        if first and second and first != second:
            new[f] = tuple(dict.fromkeys((*first, *second)))
    return replace(known, **new) if new else known


def nodes_of_json(document: Json, place: str) -> Iterator[NodeRecord]:
    """Yield the records of `scontrol show nodes --json`, and of `sinfo --json` before Slurm 23."""
    for item in records_of(document, "nodes", place):
        name = text(item.get("name"))
        if name is None:
            continue
        memory = number(item.get("real_memory"), bits=64)
        special = number(item.get("specialized_memory"), bits=64) or 0
        yield NodeRecord(
            name=name,
            states=node_states(item.get("state"), item.get("state_flags")),
            reason=text(item.get("reason")),
            gres=_told(item.get("gres")),
            gres_used=_told(item.get("gres_used")),
            cpus=number(item.get("effective_cpus")) or number(item.get("cpus")),
            used_cpus=number(item.get("alloc_cpus")),
            memory_mib=memory - special if memory is not None else None,
            used_memory_mib=number(item.get("alloc_memory"), bits=64),
            partitions=words(item.get("partitions")),
            features=words(item.get("active_features") or item.get("features")),
        )


def nodes_of_sinfo(document: Json, place: str) -> Iterator[NodeRecord]:
    """Yield the records of `sinfo --json` since Slurm 23: groups of nodes; a node may be in several."""
    allowance = Allowance()
    for i, item in enumerate(records_of(document, "sinfo", place)):
        lists = _part(item, "nodes").get("nodes")
        names = [n for hosts in words(lists) for n in allowance.expand(hosts, f"{place}: sinfo.{i}.nodes")]
        cpus, gres, partition = _part(item, "cpus"), _part(item, "gres"), _part(item, "partition")
        total, used = number(cpus.get("total")), number(cpus.get("allocated"))
        alike = bool(names) and not ((total or 0) % len(names) or (used or 0) % len(names))  # sums over the group
        for name in names:
            yield NodeRecord(
                name=name,
                states=node_states(_part(item, "node").get("state")),
                reason=text(_part(item, "reason").get("description")),
                gres=_told(gres.get("total")),
                gres_used=_told(gres.get("used")) if len(names) == 1 else None,
                cpus=total // len(names) if total is not None and alike else None,
                used_cpus=used // len(names) if used is not None and alike else None,
                memory_mib=number(_part(item, "memory").get("minimum"), bits=64),
                partitions=words(partition.get("name")),
                features=words(_part(item, "features").get("active")),
            )


_HEAD = re.compile(r"NodeName=\S")
_SYSTEM = re.compile(r"\sOS=.*?(?=\sRealMemory=)", re.DOTALL)  # free text in the middle of a record
_REASON = re.compile(r"\sReason=(.+?)(?:\s+\[[^\]]*\])?\s*(?=\n|$)")


def nodes_of_text(document: str) -> Iterator[NodeRecord]:
    """Yield the records of `scontrol show node`, one line each (-o) or several lines."""
    for record in re.split(r"^(?=NodeName=)", document, flags=re.MULTILINE):
        if not _HEAD.match(record):
            continue
        told = pairs(_SYSTEM.sub("", record, count=1))
        allocated, reason = tres(told.get("AllocTRES")), _REASON.search(record)
        yield NodeRecord(
            name=told["NodeName"],
            states=node_states(told.get("State")),
            reason=reason[1] if reason else None,
            gres=_told(told.get("Gres")),
            gres_used=_told(told.get("GresUsed")) or _gpu_tres(allocated),
            cpus=number(told.get("CPUEfctv")) or number(told.get("CPUTot")),
            used_cpus=number(told.get("CPUAlloc")),
            memory_mib=number(told.get("RealMemory"), bits=64),
            used_memory_mib=number(told.get("AllocMem"), bits=64),
            partitions=words(told.get("Partitions")),
            features=words(told.get("ActiveFeatures")),
        )


def to_node(name: str, record: NodeRecord | None, path: tuple[str | None, ...]) -> Node:
    """Return the node `name`; without a record it is closed and empty. Raises InputError for unknown gres forms."""
    if record is None:
        return Node(name=name, path=path, schedulable=False, why_closed="in the topology, but no live node is known")
    with within(f"node {name}"):
        gpus = gpus_in(record.gres or "")
    types = tuple(sorted({g.type for g in gpus if g.type and g.count}))
    closing = closing_states(record.states or frozenset())
    why = "+".join(closing) + (f": {record.reason}" if record.reason else "") if closing else ""
    labels = {partition_label(p): "yes" for p in record.partitions or ()}
    labels |= {feature_label(f): "yes" for f in record.features or ()}
    memory = record.memory_mib
    return parse(
        Node,
        {
            "name": name,
            "path": path,
            "pools": types or ("default",),
            "gpus": sum(g.count for g in gpus),
            "cpu_milli": record.cpus * 1000 if record.cpus else None,
            "memory_bytes": memory * MIB if memory is not None and memory > 1 else None,  # 1 MiB: not configured
            "labels": labels,
            "schedulable": not closing,
            "why_closed": why,
        },
        place=f"node {name}",
    )


def partition_label(partition: str) -> str:
    """Return the label of the nodes of a partition; its value is "yes". A node may be in several."""
    return f"partition/{partition}"


def feature_label(feature: str) -> str:
    """Return the label of the nodes with a feature; its value is "yes"."""
    return f"feature/{feature}"


def _told(value: object) -> str | None:
    """Return gres text, "" for none installed, None where the source has no such field."""
    return (text(value) or "") if isinstance(value, str) else None


def _gpu_tres(allocated: dict[str, str]) -> str | None:
    """Return the GPUs in AllocTRES; typed entries repeat those of the untyped one."""
    count = number(allocated.get("gres/gpu"))
    return None if count is None else f"gpu:{count}"


def _part(item: Json, key: str) -> Json:
    value = item.get(key)
    return value if isinstance(value, dict) else {}
