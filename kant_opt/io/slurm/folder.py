"""Any mix of Slurm's outputs, told apart by content, to one request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.notes import LeftOutNote
from kant_opt.io.plain import load_json, looks_like_json, top_keys
from kant_opt.io.slurm import jobs as job_reader
from kant_opt.io.slurm import nodes as node_reader
from kant_opt.io.slurm.gangs import LeftOut, Site, to_gang, waits_for
from kant_opt.io.slurm.holds import to_allocation, unexplained
from kant_opt.io.slurm.hostlist import Allowance, expand
from kant_opt.io.slurm.jobs import JobRecord, merge_jobs
from kant_opt.io.slurm.nodes import NodeRecord, merge_nodes, to_node
from kant_opt.io.slurm.reservations import ReservationRecord, reservations_of_json, to_reservation
from kant_opt.io.slurm.topology_conf import PRINTED, SIGNATURE, Topology, read_topology
from kant_opt.io.slurm.topology_yaml import YAML_SIGNATURE, read_topology_yaml
from kant_opt.io.slurm.values import Json, number, within
from kant_opt.schema import Allocation, Job, Node, Request, Reservation, parse

MOST_FILES = 1000
MOST_TASKS = 1000
"""Tasks of one job array that become gangs."""

_PARTS = ("jobs", "nodes", "sinfo", "reservations")
_HINT = re.compile(
    r'"(?:job_state|gres_used|alloc_cpus|last_backfill|data_parser|purge_completed|node_list|[sS]lurm)"|openapi/'
)
_SHOWN = 5


@dataclass
class Told:
    """What the files tell, by source, richest first where two tell the same."""

    topologies: list[tuple[str, Topology]] = field(default_factory=list)
    printed: list[tuple[str, str]] = field(default_factory=list)
    """Outputs of `scontrol show topology`: file and text."""
    nodes_json: list[NodeRecord] = field(default_factory=list)
    nodes_text: list[NodeRecord] = field(default_factory=list)
    nodes_sinfo: list[NodeRecord] = field(default_factory=list)
    jobs_json: list[JobRecord] = field(default_factory=list)
    jobs_text: list[JobRecord] = field(default_factory=list)
    reservations: dict[str, ReservationRecord] = field(default_factory=dict)
    updated_s: int = 0
    used: int = 0
    """Files that told something."""
    notes: list[str] = field(default_factory=list)


def looks_like_slurm(source: Path) -> bool:
    """Return whether a file, or one file of a folder, is an output of Slurm; reads only the beginning of each."""
    if source.is_file():
        return _is_slurm(read_head(source))
    for path in _files(source)[:MOST_FILES]:
        with suppress(InputError):  # a file of no concern may be broken
            if _is_slurm(read_head(path)):
                return True
    return False


def _is_slurm(head: str) -> bool:
    if looks_like_json(head):
        keys = set(top_keys(head))
        return bool(keys & set(_PARTS)) and not keys & {"schema", "kind"} and bool(_HINT.search(head))
    signatures = (SIGNATURE, YAML_SIGNATURE, node_reader.TEXT_SIGNATURE, job_reader.TEXT_SIGNATURE)
    return any(s.search(head) for s in signatures)


def read_slurm(source: Path) -> tuple[Request, tuple[str, ...]]:
    """Return the request that the files in `source` make up, and notes on what was left out or read freely.

    Where sources overlap, per field: `topology.conf` over `scontrol show topology`; for nodes `scontrol show nodes
    --json`, then `scontrol show node`, then `sinfo --json`; for jobs JSON, then text, but GPU indices from whichever
    has them. `now_s` is the latest time at which the controller is known to have been at work.
    """
    told = Told()
    files = _files(source)
    if len(files) > MOST_FILES:
        raise InputError(f"{len(files)} files", place=source.name, way_out=f"at most {MOST_FILES} are read")
    for path in files:
        _take(path, told, alone=source.is_file())
    if not told.used:
        raise InputError(
            "none of Slurm's outputs is here",
            place=source.name,
            way_out="write e.g. topology.conf, `sinfo --json` and `squeue --json` into the folder",
        )
    topology = _topology(told)
    with within(source.name):
        return _request(told, topology, source.name.removesuffix(".gz"))


def _files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    return sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith("."))


def _take(path: Path, told: Told, *, alone: bool) -> None:
    place = path.name
    if not alone and not looks_like_json(head := read_head(path)) and not _is_slurm(head):
        told.notes.append(f"{place} is none of Slurm's outputs: not read")
        return
    text = read_text(path)
    if looks_like_json(text):
        _take_json(load_json(text, place), place, told, alone=alone)
        return
    before = told.used
    if node_reader.TEXT_SIGNATURE.search(text):
        told.nodes_text += node_reader.nodes_of_text(text)
        told.used += 1
    if job_reader.TEXT_SIGNATURE.search(text):
        told.jobs_text += job_reader.jobs_of_text(text, place)
        told.used += 1
    if told.used > before:
        return
    if PRINTED.search(text):
        told.printed.append((place, text))
    elif YAML_SIGNATURE.search(text):
        told.topologies.append((place, read_topology_yaml(text, place)))
    elif SIGNATURE.search(text):
        told.topologies.append((place, read_topology(text, place)))
    else:
        raise InputError(
            "none of Slurm's outputs",
            place=place,
            way_out="give topology.conf, or what scontrol, squeue or sinfo writes",
        )
    told.used += 1


def _take_json(document: Any, place: str, told: Told, *, alone: bool) -> None:
    parts = [key for key in _PARTS if isinstance(document, dict) and key in document]
    if not parts or "schema" in document or "kind" in document:
        if alone:
            what = f"an object with {', '.join(map(repr, list(document)[:3]))}" if document else "empty"
            what = what if isinstance(document, dict) else f"a {type(document).__name__}"
            raise InputError(
                f"the top level is {what}", place=place, way_out=f"Slurm's JSON has one of {', '.join(_PARTS)} there"
            )
        told.notes.append(f"{place} is none of Slurm's outputs: not read")
        return
    told.used += 1
    if "jobs" in parts:
        told.jobs_json += job_reader.jobs_of_json(document, place)
    if "nodes" in parts:
        told.nodes_json += node_reader.nodes_of_json(document, place)
    if "sinfo" in parts:
        told.nodes_sinfo += node_reader.nodes_of_sinfo(document, place)
    if "reservations" in parts:
        told.reservations |= {r.name: r for r in reservations_of_json(document, place)}
    told.updated_s = max(told.updated_s, number(document.get("last_update"), bits=64) or 0)
    told.notes += _complaints(document, place)


def _complaints(document: Json, place: str) -> Iterator[str]:
    errors = document.get("errors")
    for error in errors[:_SHOWN] if isinstance(errors, list) else ():
        text = error.get("description") or error.get("error") if isinstance(error, dict) else error
        yield f"{place}: Slurm reports: {str(text)[:200]}"


# --- putting it together


def _request(told: Told, topology: Topology, name: str) -> tuple[Request, tuple[str, ...]]:
    records = merge_nodes([*told.nodes_json, *told.nodes_text, *told.nodes_sinfo])
    all_jobs = merge_jobs([*told.jobs_json, *told.jobs_text])
    if told.jobs_text and not told.jobs_json:
        told.notes.append("times in scontrol's text name no zone: read as UTC")
    now_s = _now(told, all_jobs.values())
    holding = sorted((r for r in all_jobs.values() if r.is_holding), key=_by_id)
    allocations, allowance = [], Allowance()
    for record in holding:
        with within(f"job {record.id}"):
            allocations.append(to_allocation(record, topology.inner_level, allowance))
    nodes = _nodes(topology, records, allocations, told)
    allocations += unexplained(dict(sorted(records.items())), allocations)
    orphans = [n for n in nodes if n not in topology.paths] if topology.paths else []
    if orphans:
        told.notes.append(f"{_names(orphans, 'node')} in no switch or block: each is a root of its own")
    reserved = {r.name: r.nodes for r in told.reservations.values() if r.binds}
    site = Site(nodes, now_s, topology.inner_level, topology.kind, reserved)
    jobs, groups = _gangs(all_jobs.values(), site, told)
    request = parse(
        Request,
        {
            "name": name,
            "now_s": now_s,
            "fabric": {
                "levels": topology.levels,
                "separate_roots": topology.separate_roots or (topology.kind == "tree" and bool(orphans)),
            },
            "nodes": list(nodes.values()),
            "allocations": allocations,
            "reservations": _reservations(told, nodes, [*all_jobs.values()], {j.name for j in jobs}),
            "jobs": jobs,
            "groups": groups,
        },
    )
    return request, tuple(told.notes)


def _by_id(record: JobRecord) -> tuple[int, int, str]:
    head, _, tail = record.id.partition("_")
    return int(head), int(tail or -1) if tail.isdigit() or not tail else -1, record.id


def _now(told: Told, records: Iterable[JobRecord]) -> int:
    """Return the latest time that lies certainly not in the future of the files."""
    times = [told.updated_s]
    for record in records:
        times += [t for t in (record.seen_s, record.submit_s) if t]
        if record.is_holding and record.start_s:
            times.append(record.start_s)
    return max(times)


def _topology(told: Told) -> Topology:
    """Return the one topology: `topology.conf` before what scontrol prints, which may be cut."""
    if not told.topologies:
        printed = [(place, read_topology(text, place)) for place, text in told.printed]
        chosen, others = printed[:1], printed[1:]
    else:
        chosen, others = told.topologies[:1], told.topologies[1:]
        for place, text in told.printed:
            try:
                if read_topology(text, place).paths.keys() != chosen[0][1].paths.keys():
                    told.notes.append(f"{place} knows other nodes than {chosen[0][0]}, which is used")
            except InputError as error:
                told.notes.append(f"{place} is not used beside {chosen[0][0]}: {error}")
    for place, other in others:
        if other.paths != chosen[0][1].paths:
            raise InputError(f"{chosen[0][0]} and {place} differ", place=place, way_out="keep one topology")
    topology = chosen[0][1] if chosen else Topology()
    told.notes += topology.notes
    return topology


def _nodes(
    topology: Topology, records: Mapping[str, NodeRecord], allocations: Iterable[Allocation], told: Told
) -> dict[str, Node]:
    """Return the nodes in the order of the topology, then the others by name."""
    nowhere = (None,) * len(topology.levels)
    nodes = {name: to_node(name, records.get(name), path) for name, path in topology.paths.items()}
    if missing := [name for name in nodes if name not in records]:
        told.notes.append(f"{_names(missing, 'node')} of the topology without live record: closed")
    nodes |= {name: to_node(name, records[name], nowhere) for name in sorted(records) if name not in nodes}
    only_held: dict[str, int] = {}
    for hold in (h for a in allocations for h in a.holds):
        if hold.node not in records:
            needed = max(only_held.get(hold.node, 0) + hold.gpus, *(i + 1 for i in hold.gpu_indices), 0)
            only_held[hold.node] = needed
    if only_held:
        told.notes.append(f"{_names(sorted(only_held), 'node')} known only from running jobs: closed")
    for name, gpus in sorted(only_held.items()):
        nodes[name] = Node(
            name=name,
            path=topology.paths.get(name, nowhere),
            gpus=min(gpus, 1024),
            schedulable=False,
            why_closed="known only from the jobs that run there",
        )
    return nodes


def _gangs(records: Iterable[JobRecord], site: Site, told: Told) -> tuple[list[Job], list[dict[str, Any]]]:
    """Return the waiting gangs, and groups for heterogeneous jobs, whose components start together or not at all."""
    jobs: list[Job] = []
    left: dict[str, list[str]] = {}
    freely: dict[str, list[str]] = {}
    components: dict[int, list[str]] = {}
    torn: set[int] = set()
    for record in sorted((r for r in records if r.is_pending), key=_by_id):
        why = waits_for(record, site.now_s)
        if why is None:
            try:
                with within(f"job {record.id}"):
                    jobs += _tasks(record, to_gang(record, site, freely), freely)
                if record.het_id:
                    components.setdefault(record.het_id, []).append(record.id)
                continue
            except LeftOut as reason:
                why = str(reason)
        left.setdefault(why, []).append(record.id)
        if record.het_id:
            torn.add(record.het_id)
    if torn:
        lost = {name for het in torn for name in components.pop(het, ())}
        jobs = [job for job in jobs if job.name not in lost]
        if lost:
            left["another part of the heterogeneous job"] = sorted(lost)
    told.notes += [
        LeftOutNote.about(ids, f"{_names(ids, 'pending job')} left out: {why}") for why, ids in sorted(left.items())
    ]
    told.notes += [f"{_names(ids, 'job')}: {what}" for what, ids in sorted(freely.items())]
    groups = [{"name": f"het-{het}", "jobs": ids} for het, ids in sorted(components.items()) if len(ids) > 1]
    return jobs, groups


_TASKS = re.compile(r"([\d,:-]+)(?:%(\d{1,7}))?\Z", re.ASCII)


def _tasks(record: JobRecord, job: Job, freely: dict[str, list[str]]) -> list[Job]:
    """Return a gang per task of a job array, at most as many as may run at once."""
    if not record.array_tasks or not record.array_id:
        return [job]
    match = _TASKS.match(record.array_tasks)
    ranges = re.sub(r":(?=\d)", "/", match[1]) if match else ""
    ids = expand(f"[{ranges}]", "array tasks") if match and "/" not in ranges else ()
    most = min(int(match[2]) if match and match[2] else MOST_TASKS, MOST_TASKS)
    if not ids:
        freely.setdefault("array tasks not readable: one gang stands for them", []).append(record.id)
        return [job]
    if len(ids) > most:
        freely.setdefault("array with more tasks than may run at once: the first ones are read", []).append(record.id)
    return [job.model_copy(update={"name": f"{record.array_id}_{task}"}) for task in ids[:most]]


def _reservations(
    told: Told, nodes: Mapping[str, Node], records: list[JobRecord], waiting: set[str]
) -> list[Reservation]:
    users: dict[str, list[str]] = {}
    for job in records:
        if job.reservation and (job.is_holding or job.id in waiting):
            users.setdefault(job.reservation, []).append(job.id)
    found = []
    for name, record in sorted(told.reservations.items()):
        reservation = to_reservation(record, nodes, users.get(name, ()))
        if reservation is not None:
            found.append(reservation)
        else:
            told.notes.append(f"reservation {name!r} left out: none of its nodes is known")
        if {"DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "HOURLY"} & record.flags:
            told.notes.append(f"reservation {name!r} repeats; only its next window is read")
    return found


def _names(names: list[str], what: str) -> str:
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({shown})"
