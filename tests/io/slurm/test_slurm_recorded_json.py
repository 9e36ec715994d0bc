"""Recorded JSON of Slurm 21.08 to 25.11."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kant_opt.io.slurm import SlurmFormat
from kant_opt.io.slurm.jobs import gpus_of, jobs_of_json
from kant_opt.schema import Hold, Request


@pytest.fixture
def folder(shared: Path) -> Path:
    return shared / "formats" / "slurm-json"


def read(path: Path) -> Request:
    assert SlurmFormat().sniff(path)
    return SlurmFormat().read(path)


GPUS = {  # CASES H21: what each job asks for, in the words of its submit line
    "completed": 4,  # --gpus 4
    "running": 4,
    "pending": 4,
    "gres": 4,  # --gres gpu:4 on one node
    "multi-nodes": 8,  # --gpus 8 on two nodes
    "per-node": 2,  # one each on two nodes
    "per-socket": 2,
    "per-task": 4,  # two tasks of two
    "type": 1,
    "multi-types": 1,
}


@pytest.mark.parametrize("name", GPUS)
def test_gpus_of_recorded_jobs(folder: Path, name: str) -> None:
    path = folder / "25.11-v0.0.44" / f"slurm-job-gpus-{name}.json"
    document = json.loads(path.read_text())
    assert "gpu" not in document["jobs"][0]["tres_req_str"]  # why the obvious field will not do
    (record,) = jobs_of_json(document, path.name)
    assert gpus_of(record) == GPUS[name]
    held = sum(hold.gpus for a in read(path).allocations for hold in a.holds)
    assert held == (GPUS[name] if record.is_holding else 0)


@pytest.mark.parametrize("name", [n for n in GPUS if n not in ("completed", "pending")])
def test_what_is_asked_for_agrees_with_what_was_given(folder: Path, name: str) -> None:
    """The running jobs' details name the GPUs; without the details the request must count the same."""
    document = json.loads((folder / "25.11-v0.0.44" / f"slurm-job-gpus-{name}.json").read_text())
    document["jobs"][0]["gres_detail"] = []
    (record,) = jobs_of_json(document, name)
    assert gpus_of(record) == GPUS[name]


def test_indices_per_node(folder: Path) -> None:
    (allocation,) = read(folder / "25.11-v0.0.44/slurm-job-gpus-multi-nodes.json").allocations
    share: dict[str, Any] = {"gpus": 4, "gpu_indices": (0, 1, 2, 3), "cpu_milli": 1000, "memory_bytes": 512 << 20}
    assert allocation.holds == (Hold(node="gpu1", **share), Hold(node="gpu2", **share))
    assert (allocation.since_s, allocation.until_s) == (1762788040, 1762788100)


def test_a_job_that_begins_later_is_told_not_kept(folder: Path) -> None:
    request, notes = SlurmFormat().read_with_notes(folder / "25.11-v0.0.44/slurm-job-gpus-pending.json")
    assert not request.jobs
    assert "1 pending job (4965) left out: BeginTime" in notes


def test_a_node_told_of_twice_is_one_node(folder: Path) -> None:
    """CASES H22: node0201 comes once per reservation."""
    request = read(folder / "25.05-v0.0.43/sinfo-N.json")
    assert {n.name: (n.gpus, n.pools, n.schedulable) for n in request.nodes} == {
        "node0201": (8, ("gen",), False),
        "node1537": (8, ("gen",), True),
        "node4180": (2, ("gen",), True),
    }
    full = {h.node: h.gpus for a in request.allocations for h in a.holds}
    assert full == {"node1537": 8, "node4180": 2}  # ALLOCATED, by jobs we know nothing of


def test_reasons_of_closed_nodes(folder: Path) -> None:
    request = read(folder / "25.11-v0.0.44/slurm-nodes.json")
    assert {n.name: n.why_closed for n in request.nodes if not n.schedulable} == {
        "cn1": "DRAIN: ECC memory error",
        "cn2": "DOWN: CPU dead",
    }


@pytest.mark.parametrize(
    ("name", "pools", "used"),
    [
        ("idle", ("h100",), 0),
        ("mixed", ("default",), 1),
        ("model-mixed", ("h100",), 1),
        ("model-allocated", ("h100",), 4),
    ],
)
def test_use_without_a_known_job(folder: Path, name: str, pools: tuple[str, ...], used: int) -> None:
    request = read(folder / f"25.11-v0.0.44/slurm-node-with-gpus-{name}.json")
    (node,) = request.nodes
    assert (node.gpus, node.pools) == (4, pools)
    assert sum(h.gpus for a in request.allocations for h in a.holds) == used
    assert all(a.job == f"(unknown on {node.name})" for a in request.allocations)


@pytest.mark.parametrize("file", ["24.05-v0.0.41/slurm-nodes-100.json", "21.08-v0.0.37/sinfo_out.json"])
def test_nodes_of_other_versions(folder: Path, file: str) -> None:
    told = json.loads((folder / file).read_text())["nodes"]
    request = read(folder / file)
    assert [n.name for n in request.nodes] == sorted(n["name"] for n in told)
    assert [n.cpu_milli for n in request.nodes] == [
        1000 * (n.get("effective_cpus") or n["cpus"]) for n in sorted(told, key=lambda n: str(n["name"]))
    ]


def test_running_job_of_21_08(folder: Path) -> None:
    """Its resources are keyed by position, its memory per CPU is in MiB."""
    request = read(folder / "21.08-v0.0.37/squeue_out.json")
    (allocation,) = request.allocations
    (hold,) = allocation.holds
    assert (hold.node, hold.cpu_milli, hold.memory_bytes) == ("cs75", 1000, 64_000 << 20)


def test_what_slurm_itself_complains_of_is_passed_on(folder: Path) -> None:
    _, notes = SlurmFormat().read_with_notes(folder / "25.11-v0.0.44/slurm-job-gpus-archived.json")
    assert any("Unable to query JobId=4637" in note for note in notes)


def test_other_outputs_are_not_taken_for_state(folder: Path) -> None:
    assert not SlurmFormat().sniff(folder / "24.05-sdiag.json")
    assert not SlurmFormat().sniff(folder / "25.11-v0.0.44/slurm-partitions.json")
