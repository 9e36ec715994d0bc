"""Jobs as Slurm tells of them: `squeue --json`, `scontrol show jobs --json` and `scontrol show job -d` text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

from kant_opt.io.slurm.gres import num_gpus
from kant_opt.io.slurm.hostlist import Allowance
from kant_opt.io.slurm.state import HOLDING, job_states
from kant_opt.io.slurm.values import (
    Json,
    duration_s,
    is_infinite,
    memory_mib,
    number,
    pairs,
    records_of,
    text,
    time_s,
    tres,
    words,
)

TEXT_SIGNATURE = re.compile(r"^JobId=\d+ ", re.MULTILINE)
"""Finds a record of `scontrol show job`."""


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What a job has on one node; None: not told."""

    node: str
    gres: str | None = None
    cpus: int | None = None
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What one source tells of a job; None: nothing. Times in epoch seconds, hostlists and TRES as written."""

    id: str
    states: frozenset[str] | None = None
    reason: str | None = None
    priority: int | None = None
    held: bool | None = None
    dependency: str | None = None
    submit_s: int | None = None
    eligible_s: int | None = None
    start_s: int | None = None
    end_s: int | None = None
    seen_s: int | None = None
    """A time at which the controller looked at the job: now is not before it."""
    limit_s: int | None = None
    unlimited: bool | None = None
    partitions: tuple[str, ...] | None = None
    account: str | None = None
    num_nodes: int | None = None
    """For a pending job the least."""
    max_nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    sockets_per_node: int | None = None
    cpus: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    per_job: str | None = None
    per_node: str | None = None
    per_socket: str | None = None
    per_task: str | None = None
    required: str | None = None
    """All TRES asked for; often without GPUs."""
    allocated: str | None = None
    nodes: str | None = None
    shares: tuple[NodeShare, ...] | None = None
    required_nodes: str | None = None
    excluded_nodes: str | None = None
    features: str | None = None
    switches: int | None = None
    switch_wait_s: int | None = None
    segment: int | None = None
    reservation: str | None = None
    exclusive: str | None = None
    """"node": no other job on its nodes; "topo": none in its segments."""
    het_id: int | None = None
    array_id: int | None = None
    array_tasks: str | None = None
    """Tasks of a job array that this record stands for, e.g. "1-5,9%2"."""

    @property
    def is_holding(self) -> bool:
        """Return whether it holds nodes now, be it finishing."""
        return bool(self.nodes) and bool((self.states or frozenset()) & HOLDING)

    @property
    def is_pending(self) -> bool:
        """Return whether it waits in the queue."""
        return "PENDING" in (self.states or frozenset()) and not self.is_holding


_FIELDS = tuple(f.name for f in fields(JobRecord))


def merge_jobs(records: Iterable[JobRecord]) -> dict[str, JobRecord]:
    """Return one record per job: of each field the first that tells it. Give the richer source (JSON) first.

    Shares with GPU indices win over shares without.
    """
    found: dict[str, JobRecord] = {}
    for record in records:
        known = found.get(record.id)
        found[record.id] = _merged(known, record) if known else record
    return found


def _merged(known: JobRecord, more: JobRecord) -> JobRecord:
    new = {f: getattr(more, f) for f in _FIELDS if getattr(known, f) is None and getattr(more, f) is not None}
    if _names_gpus(more) and not _names_gpus(known):
        new["shares"] = more.shares
    return replace(known, **new) if new else known


def _names_gpus(record: JobRecord) -> bool:
    return any("IDX:" in (s.gres or "") for s in record.shares or ())


def gpus_of(record: JobRecord) -> int:
    """Return the GPUs of a job in all, from the shares it has or else from what it asks for.

    Per task counts its tasks, per node its least nodes.
    """
    if record.shares and any(s.gres for s in record.shares):
        return sum(num_gpus(s.gres) for s in record.shares)
    nodes = record.num_nodes or 1
    if per_node := num_gpus(record.per_node):
        return per_node * nodes
    if per_job := num_gpus(record.per_job):
        return per_job
    if per_task := num_gpus(record.per_task):
        return per_task * (record.tasks or nodes)
    if per_socket := num_gpus(record.per_socket):
        return per_socket * sockets_of(record) * nodes
    return total_gpus(record.required) or total_gpus(record.allocated)


def sockets_of(record: JobRecord) -> int:
    """Return the sockets per node that a job uses: those it names, but no more than it has CPUs there.

    `--sockets-per-node` chooses nodes; a job of one CPU gets the GPUs of one socket (seen in Slurm 25.11).
    """
    cpus_per_node = -(-(record.cpus or 1) // (record.num_nodes or 1))
    return max(1, min(record.sockets_per_node or 1, cpus_per_node))


def total_gpus(text: str | None) -> int:
    """Return the GPUs in a TRES total, whose typed entries repeat those of the untyped one."""
    told = tres(text)
    if "gres/gpu" in told:
        return number(told["gres/gpu"]) or 0
    return sum(number(n) or 0 for key, n in told.items() if key.startswith("gres/gpu:"))


# --- JSON


def jobs_of_json(document: Json, place: str) -> Iterator[JobRecord]:
    """Yield the records of `squeue --json` and `scontrol show jobs --json`, every version from 0.0.37 on."""
    allowance = Allowance()
    for i, item in enumerate(records_of(document, "jobs", place)):
        job_id = number(item.get("job_id"))
        if job_id is None:
            continue
        limit = number(item.get("time_limit"))
        array_task = number(item.get("array_task_id"))
        array = number(item.get("array_job_id")) or None
        wait = item.get("maximum_switch_wait_time", item.get("wait4switch"))
        states = job_states(item.get("job_state"))
        has_nodes = bool(states & HOLDING)
        yield JobRecord(
            id=f"{array}_{array_task}" if array and array_task is not None else str(job_id),
            states=states,
            reason=text(item.get("state_reason")),
            priority=number(item.get("priority")),
            held=item.get("hold") if isinstance(item.get("hold"), bool) else None,
            dependency=text(item.get("dependency")),
            submit_s=number(item.get("submit_time"), bits=64) or None,
            eligible_s=number(item.get("eligible_time"), bits=64) or None,
            start_s=number(item.get("start_time"), bits=64) or None,
            end_s=number(item.get("end_time"), bits=64) or None,
            seen_s=number(item.get("last_sched_evaluation"), bits=64) or None,
            limit_s=limit * 60 if limit is not None else None,
            unlimited=True if is_infinite(item.get("time_limit")) else None,
            partitions=words(item.get("partition")) or None,
            account=text(item.get("account")) or text(item.get("user_name")),
            num_nodes=number(item.get("node_count")),
            max_nodes=number(item.get("max_nodes")) or None,
            tasks=number(item.get("tasks")) or None,
            tasks_per_node=number(item.get("tasks_per_node"), bits=16) or None,
            sockets_per_node=number(item.get("sockets_per_node"), bits=16) or None,
            cpus=number(item.get("cpus")),
            memory_per_node_mib=number(item.get("memory_per_node"), bits=64) or None,
            memory_per_cpu_mib=number(item.get("memory_per_cpu"), bits=64) or None,
            per_job=text(item.get("tres_per_job")),
            per_node=text(item.get("tres_per_node")),
            per_socket=text(item.get("tres_per_socket")),
            per_task=text(item.get("tres_per_task")),
            required=text(item.get("tres_req_str")),
            allocated=text(item.get("tres_alloc_str")),
            nodes=text(item.get("nodes")),
            shares=_shares_of_json(item, allowance, f"{place}: jobs.{i}") if has_nodes else None,
            required_nodes=text(item.get("required_nodes")),
            excluded_nodes=text(item.get("excluded_nodes")),
            features=text(item.get("features")),
            switches=number(item.get("required_switches", item.get("minimum_switches"))) or None,
            switch_wait_s=number(wait) or None,
            segment=number(item.get("segment_size"), bits=16) or None,
            reservation=text(item.get("resv_name")),
            exclusive=_exclusive(item),
            het_id=number(item.get("het_job_id")) or None,
            array_id=array,
            array_tasks=text(item.get("array_task_string")),
        )


def _shares_of_json(item: Json, allowance: Allowance, place: str) -> tuple[NodeShare, ...] | None:
    """Return what a job has on each node, from `gres_detail` (one text per node) and `job_resources`."""
    names = allowance.expand(text(item.get("nodes")) or "", f"{place}.nodes")
    if not names:
        return None
    detail = item.get("gres_detail")
    gres = detail if isinstance(detail, list) and len(detail) == len(names) else [None] * len(names)
    resources = item.get("job_resources")
    counted = dict(_counted(resources, names)) if isinstance(resources, dict) else {}
    return tuple(
        NodeShare(name, g if isinstance(g, str) else None, *counted.get(name, (None, None)))
        for name, g in zip(names, gres, strict=True)
    )


def _counted(resources: Json, names: tuple[str, ...]) -> Iterator[tuple[str, tuple[int | None, int | None]]]:
    """Yield node, (CPUs, MiB) from the three shapes that `job_resources` has had."""
    nodes = resources.get("nodes")
    listed = nodes.get("allocation") if isinstance(nodes, dict) else resources.get("allocated_nodes")
    if isinstance(listed, dict):  # 0.0.37: keyed by position
        listed = [
            {"nodename": names[int(k)], **v}
            for k, v in listed.items()
            if k.isascii() and k.isdigit() and len(k) < 8 and int(k) < len(names) and isinstance(v, dict)
        ]
    for part in listed if isinstance(listed, list) else ():
        if not isinstance(part, dict):
            continue
        name = part.get("name") or part.get("nodename")
        cpus, memory = part.get("cpus"), part.get("memory")
        count = cpus.get("count") if isinstance(cpus, dict) else cpus
        held = memory.get("allocated") if isinstance(memory, dict) else memory
        if isinstance(name, str):
            held = part.get("memory_allocated") if held is None else held
            yield name, (number(count), number(held, bits=64))


def _exclusive(item: Json) -> str | None:
    """Return how far a job keeps others away; `shared` "none" is Slurm's word for whole nodes."""
    for key in ("exclusive", "shared"):
        value = item.get(key)
        found = {v for v in (value if isinstance(value, list) else [value]) if isinstance(v, str)}
        if "topo" in found:
            return "topo"
        if (key == "exclusive" and (value is True or "true" in found)) or (key == "shared" and "none" in found):
            return "node"
    return None


# --- text

_HEAD = re.compile(r"JobId=\d{1,10}(?!\S)", re.ASCII)
_NAME = re.compile(r"\sJobName=.*?\s(?=UserId=)", re.DOTALL)
_DETAIL = re.compile(r"\sNodes=(\S+) CPU_IDs=(\S*) Mem=(\d*)(?: GRES=(\S*))?")
_SWITCHES = re.compile(r"(\d+)(?:@(\S+))?\Z", re.ASCII)


def jobs_of_text(document: str, place: str) -> Iterator[JobRecord]:
    """Yield the records of `scontrol show job`, with or without -o and -d. Times name no zone: UTC is assumed."""
    allowance = Allowance()
    for record in re.split(r"^(?=JobId=)", document, flags=re.MULTILINE):
        if _HEAD.match(record):
            yield _of_text(record, allowance, place)


def _of_text(record: str, allowance: Allowance, place: str) -> JobRecord:
    told = pairs(_NAME.sub(" ", record, count=1))  # a job may be called "x JobState=RUNNING"
    job_id = told["JobId"]
    least, _, most = told.get("NumNodes", "").partition("-")
    limit = told.get("TimeLimit")
    switches = _SWITCHES.match(told.get("Switches", ""))
    tasks, array = told.get("ArrayTaskId"), number(told.get("ArrayJobId"))
    task = number(tasks)
    states = job_states(told.get("JobState"))
    start, ran = time_s(told.get("StartTime")), duration_s(told.get("RunTime"))
    seen = [t for t in (time_s(told.get("LastSchedEval")), start + ran if start and ran else None) if t]
    return JobRecord(
        id=f"{array}_{task}" if array and task is not None else job_id,
        states=states,
        reason=text(told.get("Reason")),
        priority=number(told.get("Priority")),
        dependency=text(told.get("Dependency")),
        submit_s=time_s(told.get("SubmitTime")),
        eligible_s=time_s(told.get("EligibleTime")),
        start_s=start,
        end_s=time_s(told.get("EndTime")),
        seen_s=max(seen, default=None),
        limit_s=duration_s(limit),
        unlimited=True if is_infinite(limit) else None,
        partitions=words(told.get("Partition")) or None,
        account=text(told.get("Account")) or _user(told.get("UserId")),
        num_nodes=number(least),
        max_nodes=number(most) or None,
        tasks=number(told.get("NumTasks")) or None,
        tasks_per_node=number(told.get("NtasksPerN:B:S:C", "").partition(":")[0], bits=16) or None,
        sockets_per_node=number(told.get("Socks/Node"), bits=16) or None,
        cpus=number(told.get("NumCPUs")),
        memory_per_node_mib=memory_mib(told.get("MinMemoryNode")) or None,
        memory_per_cpu_mib=memory_mib(told.get("MinMemoryCPU")) or None,
        per_job=text(told.get("TresPerJob")),
        per_node=text(told.get("TresPerNode")),
        per_socket=text(told.get("TresPerSocket")),
        per_task=text(told.get("TresPerTask")),
        required=text(told.get("ReqTRES") or told.get("TRES")),
        allocated=text(told.get("AllocTRES")),
        nodes=text(told.get("NodeList")),
        shares=tuple(_shares_of_text(record, allowance, place)) or None if states & HOLDING else None,
        required_nodes=text(told.get("ReqNodeList")),
        excluded_nodes=text(told.get("ExcNodeList")),
        features=text(told.get("Features")),
        switches=number(switches[1]) if switches else None,
        switch_wait_s=duration_s(switches[2]) if switches else None,
        segment=number(told.get("SegmentSize"), bits=16) or None,
        reservation=text(told.get("Reservation")),
        exclusive={"NO": "node", "EXCLUSIVE": "node", "TOPO": "topo"}.get(told.get("OverSubscribe", "")),
        het_id=number(told.get("HetJobId")) or None,
        array_id=array,
        array_tasks=tasks if task is None else None,
    )


def _shares_of_text(record: str, allowance: Allowance, place: str) -> Iterator[NodeShare]:
    for hosts, cpu_ids, memory, gres in _DETAIL.findall(record):
        cpus = _num_ids(cpu_ids)
        for name in allowance.expand(hosts, place):
            yield NodeShare(name, gres, cpus, number(memory, bits=64))


def _num_ids(ids: str) -> int | None:
    """Return how many numbers "0-3,8" names."""
    total = 0
    for low, high in re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", ids):
        total += int(high or low) - int(low) + 1
    return total or None


def _user(value: str | None) -> str | None:
    return text((value or "").partition("(")[0])
