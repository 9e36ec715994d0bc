"""What a pending job asks for, as a gang: one field of Slurm at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kant_opt.io.slurm import SlurmFormat
from kant_opt.io.slurm.jobs import gpus_of, jobs_of_json
from kant_opt.schema import Job, Request, Slice, Spread, Together

NOW = 1_000_000
NODES = [
    {
        "name": f"n{i}",
        "state": ["IDLE"],
        "gres": "gpu:h100:8" if i < 6 else "gpu:a100:4",
        "cpus": 64,
        "real_memory": 1 << 20,
        "partitions": ["big"] if i < 6 else ["small", "debug"],
        "active_features": ["ib", "fast"] if i < 4 else ["ib"],
    }
    for i in range(8)
]
TREE = "SwitchName=top Switches=l[0-1]\nSwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-7]\n"
BLOCKS = "BlockName=b0 Nodes=n[0-3]\nBlockName=b1 Nodes=n[4-7]\nBlockSizes=4\n"


def pending(**told: Any) -> dict[str, Any]:
    base = {
        "job_id": 7,
        "job_state": ["PENDING"],
        "state_reason": "Resources",
        "node_count": 1,
        "priority": 5,
        "cpus": 1,
    }
    return base | {"submit_time": NOW - 10, "eligible_time": NOW - 10} | told


def read(folder: Path, *jobs: dict[str, Any], topology: str = TREE, **parts: Any) -> tuple[Request, tuple[str, ...]]:
    document = {"nodes": NODES, "jobs": list(jobs), "last_update": NOW, "meta": {"slurm": {}}, **parts}
    (folder / "state").write_text(json.dumps(document))
    (folder / "topology").write_text(topology)
    return SlurmFormat().read_with_notes(folder)


def gang(folder: Path, *, topology: str = TREE, **told: Any) -> Job:
    request, notes = read(folder, pending(**told), topology=topology)
    assert [job.name for job in request.jobs] == ["7"], notes
    return request.jobs[0]


def left_out(folder: Path, **told: Any) -> str:
    request, notes = read(folder, pending(**told))
    assert not request.jobs
    (note,) = [n for n in notes if "left out" in n]
    return note


SHAPES = [
    # told, [(pods, GPUs)]
    ({"tres_per_node": "gres/gpu:8", "node_count": 3}, [(3, 8)]),
    ({"tres_per_node": "gres:gpu:2", "node_count": 3}, [(3, 2)]),
    ({"tres_per_job": "gres/gpu:4"}, [(1, 4)]),
    ({"tres_per_job": "gres/gpu:16"}, [(2, 8)]),  # no node holds 16: at least two
    ({"tres_per_job": "gres/gpu:9"}, [(1, 5), (1, 4)]),
    ({"tres_per_job": "gres/gpu:a100:8"}, [(2, 4)]),  # nodes of that type have four
    ({"tres_per_job": "gres/gpu:8", "node_count": 2}, [(2, 4)]),
    ({"tres_per_task": "gres/gpu=2", "tasks": 6}, [(6, 2)]),  # nodes open: tasks may share one
    ({"tres_per_task": "gres/gpu=2", "tasks": 6, "node_count": 3}, [(3, 4)]),
    ({"tres_per_task": "gres/gpu=2", "tasks": 5, "node_count": 2, "max_nodes": 2}, [(1, 6), (1, 4)]),
    ({"tres_per_task": "gres/gpu=1", "tasks": 8, "tasks_per_node": 4, "node_count": 2}, [(2, 4)]),
    ({"tres_per_socket": "gres/gpu:2", "sockets_per_node": 2, "node_count": 2, "cpus": 32}, [(2, 4)]),
    ({"tres_per_socket": "gres/gpu:2"}, [(1, 2)]),
    ({"tres_req_str": "cpu=8,mem=1G,node=2,gres/gpu=8,gres/gpu:h100=8", "node_count": 2}, [(2, 4)]),
    ({"node_count": 2}, [(2, 0)]),
]


@pytest.mark.parametrize(("told", "shapes"), SHAPES, ids=[str(i) for i in range(len(SHAPES))])
def test_pods(tmp_path: Path, told: dict[str, Any], shapes: list[tuple[int, int]]) -> None:
    job = gang(tmp_path, **told)
    assert [(p.count, p.gpus) for p in job.podsets] == shapes
    (record,) = jobs_of_json({"jobs": [pending(**told)]}, "")
    assert sum(p.count * p.gpus for p in job.podsets) == gpus_of(record)  # counted on another way


def test_a_range_of_nodes_is_elastic(tmp_path: Path) -> None:
    (podset,) = gang(tmp_path, tres_per_node="gres/gpu:8", node_count=2, max_nodes=4, cpus=64).podsets
    assert (podset.min_count, podset.count, podset.cpu_milli) == (2, 4, 32_000)


def test_nodes_of_a_job_differ_where_two_pods_would_fit_on_one(tmp_path: Path) -> None:
    one_each = (Spread(level="node", max_per_domain=1),)
    assert gang(tmp_path, tres_per_node="gres/gpu:4", node_count=2).podsets[0].spread == one_each
    assert gang(tmp_path, tres_per_node="gres/gpu:5", node_count=2).podsets[0].spread == ()
    assert gang(tmp_path, tres_per_task="gres/gpu=1", tasks=4).podsets[0].spread == ()  # tasks may share
    uneven = gang(tmp_path, tres_per_job="gres/gpu:7", node_count=2)
    assert uneven.apart[0].podsets == ("main", "rest-1")  # 4 and 3 would fit on one node of 8


def test_cpu_and_memory_per_pod(tmp_path: Path) -> None:
    (podset,) = gang(tmp_path, node_count=2, cpus=9, memory_per_node={"set": True, "number": 100}).podsets
    assert (podset.cpu_milli, podset.memory_bytes) == (5000, 100 << 20)  # rounded up
    (podset,) = gang(tmp_path, node_count=2, cpus=8, memory_per_cpu=10).podsets
    assert podset.memory_bytes == 40 << 20
    (podset,) = gang(tmp_path, tres_req_str="cpu=1,mem=500G,node=1", memory_per_cpu=-9223372036854775296).podsets
    assert podset.memory_bytes == 0  # the total alone may be all the memory of a node


def test_times_priority_and_account(tmp_path: Path) -> None:
    job = gang(tmp_path, time_limit={"set": True, "infinite": False, "number": 90}, account="physics", partition="big")
    assert (job.walltime_s, job.priority, job.submit_s) == (5400, 5, NOW - 10)
    assert (job.tenant, job.queue) == ("physics", "big")
    assert gang(tmp_path, time_limit={"set": False, "infinite": True, "number": 0}).walltime_s is None


def test_types_partitions_and_features(tmp_path: Path) -> None:
    (podset,) = gang(tmp_path, tres_per_node="gres/gpu:h100:8", partition="big", features="ib&fast").podsets
    assert podset.pools == ("h100",)
    assert podset.selector == {"partition/big": ("yes",), "feature/ib": ("yes",), "feature/fast": ("yes",)}
    (podset,) = gang(tmp_path, partition="big,debug", features="fast|slow").podsets
    assert set(podset.nodes) == {"n0", "n1", "n2", "n3"}  # either partition, and fast; nobody is slow
    assert "features" in left_out(tmp_path, features="[ib*2&fast*1]")
    assert "no node has" in left_out(tmp_path, features="slow|red")
    assert "shares of GPUs" in left_out(tmp_path, tres_per_node="gres/shard:2")
    assert "several types" in left_out(tmp_path, tres_per_node="gres/gpu:h100:1,gres/gpu:a100:1")


def test_required_and_excluded_nodes(tmp_path: Path) -> None:
    (podset,) = gang(tmp_path, node_count=2, required_nodes="n[1-2]", excluded_nodes="n5").podsets
    assert (podset.count, podset.nodes, podset.not_nodes) == (2, ("n1", "n2"), ("n5",))
    pinned, rest = gang(tmp_path, node_count=3, required_nodes="n1", tres_per_node="gres/gpu:2").podsets
    assert (pinned.count, pinned.nodes) == (1, ("n1",))
    assert (rest.count, rest.nodes, rest.not_nodes) == (2, (), ("n1",))
    (podset,) = gang(tmp_path, node_count=1, required_nodes="n[1-2]").podsets
    assert podset.count == 2  # Slurm raises the least number of nodes to those named


def test_switches(tmp_path: Path) -> None:
    assert gang(tmp_path, required_switches=1, node_count=2).podsets[0].required_level == "leaf"
    assert gang(tmp_path, minimum_switches=1, node_count=2).podsets[0].required_level == "leaf"
    waited = gang(tmp_path, required_switches=1, maximum_switch_wait_time=5)  # waits since 10 s
    assert (waited.podsets[0].required_level, waited.podsets[0].preferred_level) == (None, "leaf")
    request, notes = read(tmp_path, pending(required_switches=2, node_count=2))
    assert request.jobs[0].podsets[0].preferred_level == "leaf"
    assert any("--switches above 1" in note for note in notes)
    two_shapes = gang(tmp_path, required_switches=1, tres_per_job="gres/gpu:9")
    assert two_shapes.together == (Together(level="leaf"),)
    _, notes = read(tmp_path, pending(required_switches=1), topology=BLOCKS)
    assert any("--switches without a known tree" in note for note in notes)


def test_segments(tmp_path: Path) -> None:
    job = gang(tmp_path, segment_size=2, node_count=4, tres_per_node="gres/gpu:4", topology=BLOCKS)
    assert job.podsets[0].slices == (Slice(level="block", size=2),)
    request, notes = read(tmp_path, pending(segment_size=3, node_count=4), topology=BLOCKS)
    assert not request.jobs[0].podsets[0].slices
    assert any("--segment does not divide" in note for note in notes)


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ({"shared": ["none"]}, "node"),
        ({"exclusive": ["true"]}, "node"),
        ({"exclusive": True}, "node"),
        ({"shared": ["topo"]}, "leaf"),
        ({"shared": []}, None),
        ({"shared": None, "exclusive": False}, None),
    ],
)
def test_exclusive(tmp_path: Path, told: dict[str, Any], level: str | None) -> None:
    assert gang(tmp_path, **told).exclusive_level == level


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"hold": True, "state_reason": "JobHeldUser"}, "JobHeldUser"),
        ({"priority": 0}, "Resources"),
        ({"dependency": "afterok:3(unfulfilled)"}, "Dependency"),
        ({"eligible_time": NOW + 60}, "BeginTime"),
        ({"state_reason": "BeginTime", "eligible_time": 0}, "BeginTime"),
        ({"state_reason": "QOSMaxJobsPerUserLimit"}, "QOSMaxJobsPerUserLimit"),
    ],
)
def test_jobs_that_wait_for_something_else_than_room(tmp_path: Path, told: dict[str, Any], why: str) -> None:
    assert left_out(tmp_path, **told) == f"1 pending job (7) left out: {why}"


def test_begin_time_that_has_come(tmp_path: Path) -> None:
    gang(tmp_path, state_reason="BeginTime", eligible_time=NOW)


def test_array_tasks_are_gangs_of_their_own(tmp_path: Path) -> None:
    request, notes = read(tmp_path, pending(array_job_id=7, array_task_string="1-3,8"))
    assert [job.name for job in request.jobs] == ["7_1", "7_2", "7_3", "7_8"]
    request, notes = read(tmp_path, pending(array_job_id=7, array_task_string="1-3,8%2"))
    assert [job.name for job in request.jobs] == ["7_1", "7_2"]
    assert any("array with more tasks than may run at once" in note for note in notes)


def test_heterogeneous_jobs_start_together_or_not_at_all(tmp_path: Path) -> None:
    leader, other = pending(het_job_id=7), pending(job_id=8, het_job_id=7)
    request, _ = read(tmp_path, leader, other)
    assert [(g.jobs, g.all_or_none) for g in request.groups] == [(("7", "8"), True)]
    request, notes = read(tmp_path, leader, other | {"hold": True})
    assert not request.jobs
    assert any("another part of the heterogeneous job" in note for note in notes)


def test_reservations_bind_their_jobs(tmp_path: Path) -> None:
    kept = {
        "name": "r",
        "node_list": "n[0-1],gone",
        "start_time": NOW - 5,
        "end_time": NOW + 5,
        "flags": ["SPEC_NODES"],
    }
    request, _ = read(tmp_path, pending(resv_name="r"), reservations=[kept])
    (reservation,) = request.reservations
    assert (reservation.nodes, reservation.jobs) == (("n0", "n1"), ("7",))
    assert set(request.jobs[0].podsets[0].nodes) == {"n0", "n1", "gone"}
    request, _ = read(tmp_path, pending(resv_name="r"), reservations=[kept | {"flags": ["FLEX"]}])
    assert request.jobs[0].podsets[0].nodes == ()  # it may also run elsewhere
