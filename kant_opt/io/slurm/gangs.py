"""A pending Slurm job as a gang: how many pods of which shape, and where they may go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kant_opt.io.slurm.gres import asks_for_shares, gpus_in, num_gpus
from kant_opt.io.slurm.hostlist import Allowance
from kant_opt.io.slurm.jobs import JobRecord, sockets_of, total_gpus
from kant_opt.io.slurm.nodes import feature_label, partition_label
from kant_opt.io.slurm.state import keeps_waiting
from kant_opt.io.slurm.values import MIB
from kant_opt.schema import NODE_LEVEL, Job, Node, parse

MOST_NAMED = 5_000_000
"""Nodes that all pending jobs together may require or exclude by name."""
SWITCH_WAIT_S = 300
"""How long Slurm waits for `--switches` where neither the job nor we know better (its default max_switch_wait)."""


@dataclass(frozen=True)
class Site:
    """What a gang must know of its cluster."""

    nodes: Mapping[str, Node]
    now_s: int = 0
    inner_level: str | None = None
    """The innermost level above the nodes: leaf, block or ring."""
    kind: str = "flat"
    reserved: Mapping[str, tuple[str, ...]] | None = None
    """Reservation -> the nodes to which it binds its jobs."""
    allowance: Allowance = field(default_factory=lambda: Allowance(MOST_NAMED))


class LeftOut(Exception):
    """This job is no gang that waits for room now; the text says why."""


@dataclass(frozen=True)
class Shape:
    """Pods of one size."""

    count: int
    gpus: int
    least: int | None = None
    """Fewest pods, where the job takes a range of nodes."""
    own_node: bool = True
    """Each pod has a node of its own among the pods of the job."""


def waits_for(record: JobRecord, now_s: int) -> str | None:
    """Return why a pending job could not start now whatever room there was; None: it waits for room."""
    if record.held or record.priority == 0:
        return record.reason or "held"
    if record.dependency:
        return "Dependency"
    if record.eligible_s is not None and record.eligible_s > now_s:
        return "BeginTime"
    over = record.reason == "BeginTime" and record.eligible_s is not None
    return record.reason if keeps_waiting(record.reason) and not over else None


def to_gang(record: JobRecord, site: Site, notes: dict[str, list[str]]) -> Job:
    """Return the gang. Raises LeftOut where the schema cannot say what the job asks for.

    What is read in a freer or other sense than Slurm's goes to `notes`, sentence -> jobs.
    """
    asked = (record.per_node, record.per_job, record.per_task, record.per_socket)
    if any(map(asks_for_shares, asked)):
        raise LeftOut("shares of GPUs (shard, mps)")
    types = {g.type for t in asked if t for g in gpus_in(t) if g.count and g.type}
    if len(types) > 1:
        raise LeftOut("GPUs of several types")
    pinned = site.allowance.expand(record.required_nodes or "", "required_nodes")
    shapes = shapes_of(record, _largest(site, types), at_least=len(pinned))
    selector, only = _where(record, site)
    base: dict[str, Any] = {
        "pools": sorted(types),
        "selector": selector,
        "not_nodes": site.allowance.expand(record.excluded_nodes or "", "excluded_nodes"),
        **_size(record, shapes),
    }
    podsets = [{**base, **_counts(shape)} for shape in shapes]
    for i, podset in enumerate(podsets):
        podset |= {"name": "main" if i == 0 else f"rest-{i}", "nodes": only or ()}
    if pinned:
        podsets = _pin(podsets, shapes, pinned, only)
    _keep_apart(podsets, shapes[0].own_node, site)
    together = _levels(record, podsets, site, notes)
    names = [p["name"] for p in podsets]
    crowded = shapes[0].own_node and len(podsets) > 1 and _two_fit(podsets[0], podsets[1], site)
    return parse(
        Job,
        {
            "name": record.id,
            "podsets": podsets,
            "queue": ",".join(record.partitions or ()),
            "tenant": record.account or "",
            "priority": record.priority or 0,
            "submit_s": record.submit_s or 0,
            "walltime_s": None if record.unlimited else record.limit_s,
            "together": together,
            "apart": [{"level": NODE_LEVEL, "podsets": names}] if crowded else [],
            "exclusive_level": {"node": NODE_LEVEL, "topo": site.inner_level}.get(record.exclusive or ""),
        },
    )


def shapes_of(record: JobRecord, largest: int, *, at_least: int = 0) -> list[Shape]:
    """Return the pods of a job, those with more GPUs first. `largest`: GPUs of the largest node, 0 unknown.

    GPUs per node (or socket): a pod per node. GPUs of the whole job: its least number of nodes, more where they
    do not hold the GPUs, shared as evenly as possible; Slurm may share them otherwise. GPUs per task: tasks go evenly
    on the nodes where their number is given, else every task is a pod and may share a node with others.
    """
    nodes = max(record.num_nodes or 1, at_least)
    per_node = num_gpus(record.per_node) or num_gpus(record.per_socket) * sockets_of(record)
    if per_node:
        most = max(nodes, record.max_nodes or 0)
        return [Shape(most, per_node, least=nodes if most > nodes else None)]
    per_task, tasks = num_gpus(record.per_task), record.tasks or nodes
    if per_task and not record.per_job:
        if record.tasks_per_node and record.tasks_per_node * nodes == tasks:
            return [Shape(nodes, per_task * record.tasks_per_node)]
        if nodes == 1 and record.max_nodes is None and tasks > 1:
            return [Shape(tasks, per_task, own_node=False)]
        if record.max_nodes is None and largest >= per_task:
            nodes = max(nodes, -(-tasks // (largest // per_task)))
        return [Shape(count, size * per_task) for count, size in _evenly(tasks, nodes)]
    if total := num_gpus(record.per_job) or total_gpus(record.required):
        if record.max_nodes is None and largest:
            nodes = max(nodes, -(-total // largest))
        return [Shape(count, size) for count, size in _evenly(total, nodes)]
    most = max(nodes, record.max_nodes or 0)
    return [Shape(most, 0, least=nodes if most > nodes else None)]


def _evenly(total: int, parts: int) -> list[tuple[int, int]]:
    """Return (how many, size) of near-equal parts, the larger first: 9 in 2 -> [(1, 5), (1, 4)]."""
    size, larger = divmod(total, parts)
    return [(count, s) for count, s in ((larger, size + 1), (parts - larger, size)) if count]


def _counts(shape: Shape) -> dict[str, Any]:
    return {"count": shape.count, "gpus": shape.gpus} | ({"min_count": shape.least} if shape.least else {})


def _size(record: JobRecord, shapes: list[Shape]) -> dict[str, int]:
    """Return CPU and memory per pod: the job's CPUs shared by its (least) pods, memory per node or per CPU.

    Memory that only stands in the TRES total is not counted: where memory is no consumable, Slurm writes all of it.
    """
    pods = sum(shape.least or shape.count for shape in shapes)
    cpus = -(-(record.cpus or 0) // pods)
    memory = record.memory_per_node_mib or (record.memory_per_cpu_mib or 0) * cpus
    if record.memory_per_node_mib and not shapes[0].own_node:
        memory = -(-memory // pods)
    return {"cpu_milli": cpus * 1000, "memory_bytes": memory * MIB}


def _largest(site: Site, types: set[str]) -> int:
    fitting = (n.gpus for n in site.nodes.values() if not types or types & set(n.pools))
    return max(fitting, default=0)


# --- where

_FEATURE = re.compile(r"[\w.+:/-]+\Z")


def _where(record: JobRecord, site: Site) -> tuple[dict[str, str], set[str] | None]:
    """Return labels that nodes must have, and the nodes to which the job is bound (None: any)."""
    selector: dict[str, str] = {}
    only: set[str] | None = None
    wanted = [partition_label(p) for p in record.partitions or ()]
    if wanted and any(_partitioned(n) for n in site.nodes.values()):
        only = _any_of(wanted, selector, site)
    if record.features:
        either = re.split(r"\|", record.features)
        both = re.split(r"[&,]", record.features)
        if not all(map(_FEATURE.match, either if len(either) > 1 else both)):
            raise LeftOut(f"features {record.features[:60]!r}")
        if len(either) > 1:
            only = _both(only, _any_of([feature_label(f) for f in either], selector, site))
        else:
            selector |= {feature_label(f): "yes" for f in both}
    bound = (site.reserved or {}).get(record.reservation or "")
    if bound is not None:
        only = _both(only, set(bound))
    if only is not None and not only:
        raise LeftOut("no node has its partition, features and reservation")
    return selector, only


def _partitioned(node: Node) -> bool:
    return any(label.startswith("partition/") for label in node.labels)


def _any_of(labels: list[str], selector: dict[str, str], site: Site) -> set[str] | None:
    """Ask for one label by selector, for one of several by the list of nodes that have it."""
    if len(labels) == 1:
        selector[labels[0]] = "yes"
        return None
    return {name for name, node in site.nodes.items() if any(label in node.labels for label in labels)}


def _both(first: set[str] | None, second: set[str] | None) -> set[str] | None:
    return second if first is None else first if second is None else first & second


def _pin(
    podsets: list[dict[str, Any]], shapes: list[Shape], pinned: tuple[str, ...], only: set[str] | None
) -> list[dict[str, Any]]:
    """Bind pods to the nodes that the job must have: all of them, or one each and the rest elsewhere."""
    if only is not None and not set(pinned) <= only:
        raise LeftOut("its required nodes are not in its partition, features and reservation")
    count = sum(shape.count for shape in shapes)
    if count == len(pinned):
        return [{**podset, "nodes": pinned} for podset in podsets]
    if len(podsets) > 1 or shapes[0].least or not shapes[0].own_node:
        raise LeftOut("required nodes beside others of its own choice, with an uneven share of GPUs")
    (podset,) = podsets
    first = {**podset, "nodes": pinned, "count": len(pinned)}
    rest = {**podset, "name": "rest-1", "count": count - len(pinned), "not_nodes": (*podset["not_nodes"], *pinned)}
    return [first, rest]


def _two_fit(first: Mapping[str, Any], second: Mapping[str, Any], site: Site) -> bool:
    """Return whether a node has room for a pod of each; True where no node is known."""
    need = [first[key] + second[key] for key in ("gpus", "cpu_milli", "memory_bytes")]
    sizes = {(n.gpus, n.cpu_milli, n.memory_bytes) for n in site.nodes.values()}
    return not sizes or any(all(has is None or n <= has for n, has in zip(need, size, strict=True)) for size in sizes)


def _keep_apart(podsets: list[dict[str, Any]], own_node: bool, site: Site) -> None:
    """One pod per node, said only where two would fit: a needless rule costs every later step."""
    for podset in podsets if own_node else ():
        if podset["count"] > 1 and _two_fit(podset, podset, site):
            podset["spread"] = [{"level": NODE_LEVEL, "max_per_domain": 1}]


# --- levels


def _levels(
    record: JobRecord, podsets: list[dict[str, Any]], site: Site, notes: dict[str, list[str]]
) -> list[dict[str, Any]]:
    """Set levels and slices on the podsets, and return the ties between them.

    `--switches=1` means all nodes under one leaf switch; once the wait that goes with it is over it is a wish. Larger
    numbers have no like here and become the wish for one leaf. `--segment` keeps nodes in groups within a block.
    """
    level = site.inner_level
    together: list[dict[str, Any]] = []
    if record.switches and (level is None or site.kind != "tree"):
        notes.setdefault("--switches without a known tree of switches: left out", []).append(record.id)
    elif record.switches and level is not None:
        since = record.eligible_s or record.submit_s or site.now_s
        over = site.now_s - since > (record.switch_wait_s or SWITCH_WAIT_S)
        must = record.switches == 1 and not over
        for podset in podsets:
            podset["required_level" if must else "preferred_level"] = level
        if must and len(podsets) > 1:
            together.append({"level": level})
        if record.switches > 1:
            notes.setdefault(f"--switches above 1 is read as the wish for one {level}", []).append(record.id)
    if record.segment and record.segment > 1:
        count = podsets[0]["count"]
        if level is None or len(podsets) > 1 or count % record.segment or "min_count" in podsets[0]:
            notes.setdefault("--segment does not divide the nodes, or no block is known: left out", []).append(
                record.id
            )
        else:
            podsets[0]["slices"] = [{"level": level, "size": record.segment}]
    return together
