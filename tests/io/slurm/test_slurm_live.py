"""A real controller's state, counted from the raw text by other means."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kant_opt.fabric import build_fabric
from kant_opt.io.slurm import SlurmFormat
from kant_opt.schema import Request


def raw(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    return shared / "slurm_live"


@pytest.fixture(scope="module")
def live(folder: Path) -> tuple[Request, tuple[str, ...]]:
    return SlurmFormat().read_with_notes(folder)


@pytest.fixture(scope="module")
def queue(folder: Path) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = json.loads(raw(folder / "squeue.json.gz"))["jobs"]
    return jobs


def test_fabric(live: tuple[Request, tuple[str, ...]], folder: Path) -> None:
    request, _ = live
    fabric = build_fabric(request.fabric, request.nodes)
    switches = len(re.findall(r"^SwitchName=", raw(folder / "topology.conf"), re.MULTILINE))
    assert fabric.levels == ("core", "spine", "leaf", "node")
    assert [len(fabric.domains(level)) for level in fabric.levels] == [1, 8, 128, 2048]
    assert switches == 137 == 1 + 8 + 128
    assert not request.fabric.separate_roots


def test_nodes(live: tuple[Request, tuple[str, ...]], folder: Path) -> None:
    request, _ = live
    lines = raw(folder / "nodes.txt.gz").splitlines()
    drained = [line for line in lines if "DRAIN" in line]
    assert len(request.nodes) == sum(line.startswith("NodeName=") for line in lines) == 2048
    assert sum(node.gpus for node in request.nodes) == 2048 * 8
    closed = [node for node in request.nodes if not node.schedulable]
    assert {n.name for n in closed} == {line.split()[0].removeprefix("NodeName=") for line in drained}
    assert [n.why_closed for n in closed] == ["DRAIN: ecc"] * 5
    assert {n.memory_bytes for n in request.nodes} == {1000 << 20}
    assert {n.cpu_milli for n in request.nodes} == {8000}


def test_running_jobs(live: tuple[Request, tuple[str, ...]], queue: list[dict[str, Any]], folder: Path) -> None:
    request, _ = live
    running = [job for job in queue if job["job_state"] == "CONFIGURING"]
    assert len(request.allocations) == len(running) == 537
    nodes_of = {str(job["job_id"]): job["node_count"] for job in running}
    assert {a.job: len(a.holds) for a in request.allocations} == nodes_of
    used = [int(n) for n in re.findall(r'"gres_used": ?"gpu:(\d+)', raw(folder / "sinfo.json.gz"))]
    held: Counter[str] = Counter()
    for allocation in request.allocations:
        for hold in allocation.holds:
            held[hold.node] += hold.gpus
    assert sum(held.values()) == sum(used) == 1975 * 8 + 5
    assert Counter(held.values()) == Counter(n for n in used if n)  # node by node the controller counts the same
    assert not any(a.job.startswith("(unknown") for a in request.allocations)


def test_running_jobs_end_with_their_limit(live: tuple[Request, tuple[str, ...]], queue: list[dict[str, Any]]) -> None:
    ends = {str(job["job_id"]): job["start_time"] + 60 * job["time_limit"] for job in queue}
    for allocation in live[0].allocations:
        assert allocation.until_s == ends[allocation.job]


def test_pending_jobs(live: tuple[Request, tuple[str, ...]], queue: list[dict[str, Any]]) -> None:
    """Two of twelve wait for a time in the future after a restart; the other ten are gangs of whole nodes."""
    request, notes = live
    pending = {str(job["job_id"]): job for job in queue if job["job_state"] == "PENDING"}
    later = {name for name, job in pending.items() if job["eligible_time"] > request.now_s}
    assert len(pending) == 12
    assert later == {"420", "547"}
    assert "2 pending jobs (420, 547) left out: BeginTime" in notes
    assert {job.name for job in request.jobs} == set(pending) - later
    for job in request.jobs:
        (podset,) = job.podsets
        told = pending[job.name]
        assert (podset.count, podset.gpus) == (told["node_count"], 8)
        assert told["tres_per_node"] == "gres:gpu:8"
        assert not podset.spread  # two pods of eight do not fit on one node of eight: no rule is needed
        assert (job.priority, job.submit_s, job.walltime_s) == (told["priority"], told["submit_time"], 36_000)


def test_now_is_after_all_that_happened_and_before_what_will(
    live: tuple[Request, tuple[str, ...]], queue: list[dict[str, Any]]
) -> None:
    now = live[0].now_s
    assert all(job["submit_time"] <= now for job in queue)
    assert all(job["last_sched_evaluation"] <= now for job in queue)
    assert now < min(job["end_time"] for job in queue if job["job_state"] in ("PENDING", "CONFIGURING"))


@pytest.mark.parametrize(
    "files",
    [
        ("topology.txt.gz", "nodes.txt.gz", "jobs.txt.gz"),
        ("topology.conf", "sinfo.json.gz", "squeue.json.gz"),
        ("topology.conf", "nodes.txt.gz", "squeue.json.gz"),
    ],
)
def test_every_source_tells_the_same(
    files: tuple[str, ...], live: tuple[Request, tuple[str, ...]], folder: Path, tmp_path: Path
) -> None:
    """Names of files mean nothing; the text names no zone, but this controller runs in UTC."""
    for i, name in enumerate(files):
        (tmp_path / f"part-{i}").write_bytes((folder / name).read_bytes())
    part, _ = SlurmFormat().read_with_notes(tmp_path)
    whole, _ = live
    assert part.fabric == whole.fabric
    assert part.nodes == whole.nodes
    assert part.allocations == whole.allocations
    assert part.jobs == whole.jobs
