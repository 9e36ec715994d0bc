"""Mixes of outputs: what each says, which one wins, and what is told of the rest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.io import FORMATS, read_request
from kant_opt.io.slurm import SlurmFormat
from kant_opt.schema import Hold, Request

GPU = 1 << 20


def write(folder: Path, **files: Any) -> None:
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def read(folder: Path) -> tuple[Request, tuple[str, ...]]:
    return SlurmFormat().read_with_notes(folder)


def nodes_json(*nodes: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": list(nodes), "meta": {"slurm": {}}}


def jobs_json(*jobs: dict[str, Any]) -> dict[str, Any]:
    return {"jobs": list(jobs), "meta": {"slurm": {}}}


@pytest.fixture
def samples(root: Path) -> Path:
    return root / "tests" / "data" / "slurm"


def test_it_is_registered() -> None:
    assert isinstance(FORMATS["slurm"], SlurmFormat)


@pytest.mark.parametrize(
    "source",
    [
        "slurm_live",
        "formats/slurm-json/25.11-v0.0.44/slurm-jobs.json",
        "formats/slurm-topology-azure/slurm_topology.txt",
    ],
)
def test_the_one_door_finds_it(shared: Path, source: str) -> None:
    """The JSON of new versions begins with "jobs" as a request of ours may; what tells them apart is far behind."""
    assert read_request(shared / source) == SlurmFormat().read_with_notes(shared / source)


def test_node_text_of_several_lines(samples: Path) -> None:
    """The kernel's description holds blanks and an equals sign, and must not pass for the state."""
    request, notes = read(samples / "gpu-nodes.txt")
    first, second = request.nodes
    assert (first.gpus, first.pools, first.cpu_milli, first.memory_bytes) == (8, ("h100",), 96_000, 2_000_000 * GPU)
    assert first.schedulable
    assert first.labels == dict.fromkeys(("partition/train", "partition/debug", "feature/h100", "feature/ib"), "yes")
    assert second.why_closed == "DOWN+DRAIN+NOT_RESPONDING: GPU 3 fell off the bus"
    (unknown,) = request.allocations
    assert unknown.holds == (Hold(node="gpu01", gpus=3, cpu_milli=12_000, memory_bytes=65_536 * GPU),)
    assert notes == ()


def test_job_text_of_several_lines(samples: Path) -> None:
    """Job 41 is called like fields of a pending job."""
    request, notes = read(samples / "gpu-jobs.txt")
    (running,) = request.allocations
    assert running.job == "41"
    assert running.holds[0].gpu_indices == (1, 6)
    assert running.holds[0].cpu_milli == 8000  # CPUs 0-3 and 48-51
    assert running.until_s is not None
    assert running.since_s is not None
    assert running.until_s - running.since_s == 86_400
    (job,) = request.jobs
    assert (job.name, job.walltime_s, job.tenant, job.exclusive_level) == ("42", None, "bob", "node")
    (podset,) = job.podsets
    assert (podset.count, podset.gpus, podset.pools, podset.not_nodes) == (2, 4, ("h100",), ("gpu02",))
    assert "times in scontrol's text name no zone: read as UTC" in notes


def test_known_and_unknown_use_add_up(samples: Path, tmp_path: Path) -> None:
    for name in ("gpu-nodes.txt", "gpu-jobs.txt"):
        (tmp_path / name).write_bytes((samples / name).read_bytes())
    request, _ = read(tmp_path)
    held = {a.job: a.holds[0] for a in request.allocations}
    assert held["41"].gpus + held["(unknown on gpu01)"].gpus == 3  # what the node itself counts
    assert held["41"].cpu_milli + held["(unknown on gpu01)"].cpu_milli == 12_000


def test_unknown_use_keeps_the_indices_that_are_left(tmp_path: Path) -> None:
    node = {"name": "n", "state": ["MIXED"], "gres": "gpu:8", "gres_used": "gpu:3(IDX:0-1,5)"}
    job = {"job_id": 1, "job_state": ["RUNNING"], "nodes": "n", "node_count": 1, "gres_detail": ["gpu:2(IDX:0,5)"]}
    write(tmp_path, nodes=nodes_json(node), jobs=jobs_json(job))
    request, _ = read(tmp_path)
    assert {a.job: a.holds[0].gpu_indices for a in request.allocations} == {"1": (0, 5), "(unknown on n)": (1,)}


def test_the_richer_source_wins_field_by_field(tmp_path: Path) -> None:
    text = "NodeName=n CoresPerSocket=1 CPUTot=4 Gres=gpu:4 RealMemory=100 State=IDLE Partitions=a\n"
    write(
        tmp_path,
        a_text=text,
        b_json=nodes_json({"name": "n", "state": ["DRAIN"], "gres": "gpu:8", "partitions": ["b"]}),
    )
    request, _ = read(tmp_path)
    (node,) = request.nodes
    assert (node.gpus, node.why_closed) == (8, "DRAIN")  # JSON
    assert (node.cpu_milli, node.memory_bytes) == (4000, 100 * GPU)  # text, which alone tells them
    assert set(node.labels) == {"partition/a", "partition/b"}


def test_indices_come_from_whichever_has_them(tmp_path: Path) -> None:
    job = {"job_id": 5, "job_state": "RUNNING", "nodes": "n", "node_count": 1, "gres_detail": ["gpu(CNT:2)"]}
    text = (
        "JobId=5 JobName=a UserId=u(1) JobState=RUNNING NodeList=n NumNodes=1\n"
        "     Nodes=n CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:4-5)\n"
    )
    write(tmp_path, a=jobs_json(job), b=text)
    (allocation,) = read(tmp_path)[0].allocations
    assert allocation.holds[0].gpu_indices == (4, 5)


def test_a_node_of_the_topology_without_live_record_stays_closed(tmp_path: Path) -> None:
    """CASES A20, H20."""
    write(tmp_path, t="SwitchName=l1 Nodes=n[1-2]\n", n=nodes_json({"name": "n1", "state": ["IDLE"], "gres": "gpu:8"}))
    request, notes = read(tmp_path)
    assert [(n.name, n.path, n.schedulable) for n in request.nodes] == [("n1", ("l1",), True), ("n2", ("l1",), False)]
    assert request.nodes[1].why_closed == "in the topology, but no live node is known"
    assert "1 node (n2) of the topology without live record: closed" in notes


def test_a_live_node_in_no_switch_is_a_root_of_its_own(tmp_path: Path) -> None:
    live = [{"name": f"n{i}", "state": ["IDLE"], "gres": "gpu:8"} for i in (1, 2, 3, 4)]
    write(tmp_path, t="SwitchName=s Switches=l1\nSwitchName=l1 Nodes=n[1-2]\n", n=nodes_json(*live))
    request, notes = read(tmp_path)
    fabric = build_fabric(request.fabric, request.nodes)
    assert request.fabric.separate_roots  # no job may span n3 and the tree
    assert sorted(len(fabric.nodes_of(d)) for d in fabric.domains("spine")) == [1, 1, 2]
    assert "2 nodes (n3, n4) in no switch or block: each is a root of its own" in notes


def test_finishing_and_suspended_jobs_hold_requeued_ones_wait(tmp_path: Path) -> None:
    base = {"nodes": "n1", "node_count": 1, "tres_per_node": "gres/gpu:1", "cpus": 1, "priority": 1}
    states: dict[int, Any] = {
        1: ["RUNNING"],
        2: ["COMPLETED", "COMPLETING"],
        3: "SUSPENDED",
        4: ["PENDING", "COMPLETING"],  # requeued, but its nodes are not free yet
        5: ["STOPPED"],
        6: ["COMPLETED"],
        7: ["CANCELLED"],
    }
    jobs = [{"job_id": i, "job_state": state, **base} for i, state in states.items()]
    write(
        tmp_path,
        n=nodes_json({"name": "n1", "state": ["MIXED"], "gres": "gpu:8"}),
        j=jobs_json(*jobs, {"job_id": 8, "job_state": ["PENDING", "REQUEUED"], **base, "nodes": ""}),
    )
    request, _ = read(tmp_path)
    assert [a.job for a in request.allocations] == ["1", "2", "3", "4", "5"]
    assert [j.name for j in request.jobs] == ["8"]


def test_end_times(tmp_path: Path) -> None:
    base = {"job_state": ["RUNNING"], "nodes": "n1", "node_count": 1, "start_time": 100}
    infinite = {"set": False, "infinite": True, "number": 0}
    write(
        tmp_path,
        j=jobs_json(
            {"job_id": 1, **base, "time_limit": 2, "end_time": 250},  # suspended for 30 s in between
            {"job_id": 2, **base, "time_limit": 2},
            {"job_id": 3, **base, "time_limit": infinite, "end_time": 10**9},
        ),
    )
    assert [a.until_s for a in read(tmp_path)[0].allocations] == [250, 220, None]


def test_counts_without_detail_are_shared_evenly(tmp_path: Path) -> None:
    job = {
        "job_id": 1,
        "job_state": ["RUNNING"],
        "nodes": "n[1-3]",
        "node_count": 3,
        "tres_per_job": "gres/gpu:7",
        "cpus": 4,
    }
    write(tmp_path, j=jobs_json(job))
    (allocation,) = read(tmp_path)[0].allocations
    assert [(h.node, h.gpus, h.cpu_milli) for h in allocation.holds] == [
        ("n1", 3, 2000),
        ("n2", 2, 1000),
        ("n3", 2, 1000),
    ]


def test_the_written_topology_wins_over_the_printed_one(tmp_path: Path) -> None:
    write(tmp_path, a="SwitchName=l1 Level=0 LinkSpeed=1 Nodes=n[1-\n", b="SwitchName=l1 Nodes=n[1-2]\n")
    request, notes = read(tmp_path)
    assert [n.name for n in request.nodes] == ["n1", "n2"]
    assert any(note.startswith("a is not used beside b: a: line 1: hostlist 'n[1-'") for note in notes)


def test_two_topologies_that_differ_are_refused(tmp_path: Path) -> None:
    write(tmp_path, a="SwitchName=l1 Nodes=n1\n", b="SwitchName=l1 Nodes=n2\n")
    with pytest.raises(InputError, match="a and b differ: keep one topology"):
        read(tmp_path)


def test_gzip_and_names_do_not_matter(tmp_path: Path) -> None:
    document = json.dumps(nodes_json({"name": "n1", "state": ["IDLE"], "gres": "gpu:2"}))
    (tmp_path / "one").write_bytes(gzip.compress(document.encode()))
    assert SlurmFormat().sniff(tmp_path)
    assert read(tmp_path)[0].nodes == read(tmp_path / "one")[0].nodes


def test_other_files_are_passed_over_and_told(tmp_path: Path) -> None:
    write(tmp_path, t="SwitchName=l1 Nodes=n1\n", readme="how this was made\n", other={"kind": "List", "nodes": []})
    _, notes = read(tmp_path)
    assert "readme is none of Slurm's outputs: not read" in notes
    assert "other is none of Slurm's outputs: not read" in notes


def test_a_folder_without_any_of_it(tmp_path: Path) -> None:
    write(tmp_path, readme="nothing\n")
    assert not SlurmFormat().sniff(tmp_path)
    with pytest.raises(InputError, match="none of Slurm's outputs is here"):
        read(tmp_path)


def test_hostile_ids_and_names_raise_nothing_else(tmp_path: Path) -> None:
    text = (
        "JobId=x JobState=RUNNING\nJobId= JobState=PENDING\n"
        "JobId=9 ArrayJobId=3 ArrayTaskId=² JobState=PENDING NumNodes=1\n"
    )
    write(tmp_path, j=text, n="NodeName= CoresPerSocket=1\nNodeName=n1 CoresPerSocket=1 Gres=gpu:1 State=IDLE\n")
    request, notes = read(tmp_path)
    assert [n.name for n in request.nodes] == ["n1"]
    assert [j.name for j in request.jobs] == ["9"]
    assert any("array tasks not readable" in note for note in notes)


def test_many_long_lists_are_bounded_together(tmp_path: Path) -> None:
    jobs = [{"job_id": i, "job_state": ["RUNNING"], "nodes": f"n{i}x[1-400000]"} for i in range(4)]
    write(tmp_path, j=jobs_json(*jobs))
    with pytest.raises(InputError, match=r"jobs.2.nodes: the hostlists up to here stand for more than 1,000,000 hosts"):
        read(tmp_path)
