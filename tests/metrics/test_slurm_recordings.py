"""Placements of a real Slurm, whose cost was counted when they were recorded (README of data/slurm_peer)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kant_opt.metrics import Placed, job_spans, measure
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PlacedJob, PlacedPods, Placement, PodSet, Request

# file, extra leaves, extra spines, broken nodes
RECORDED = [
    ("pow2-5", 23, 3, 5),
    ("odd-5", 33, 5, 6),
    ("odd-6", 31, 8, 8),
    ("churn-odd-7", 30, 14, 9),
    ("churn-pow2-8", 37, 11, 4),
]


@pytest.mark.parametrize(("name", "leaves", "spines", "broken"), RECORDED, ids=lambda v: str(v))
def test_slurm_placement_costs_what_was_recorded(
    shared: Path, name: str, leaves: int, spines: int, broken: int
) -> None:
    recording = json.loads((shared / "slurm_peer" / f"{name}.json").read_text(encoding="utf-8"))
    gangs = {e["submit"]: e for e in recording["events"] if "submit" in e}
    nodes = tuple(Node(name=f"n{i}", path=(f"s{i // 256}", f"l{i // 16}"), gpus=8) for i in range(2048))
    jobs, running, new = [], [], []
    for gang, where in recording["slurm"].items():
        pods, gpus = gangs[gang]["pods"], gangs[gang]["gpus_per_pod"]
        assert len(where) == pods
        if gang.startswith("a"):
            running.append(Allocation(job=gang, holds=tuple(Hold(node=f"n{i}", gpus=gpus) for i in where)))
        else:
            jobs.append(Job(name=gang, podsets=(PodSet(count=pods, gpus=gpus),)))
            new.append(PlacedJob(job=gang, pods=tuple(PlacedPods(node=f"n{i}") for i in where)))
    levels = FabricSpec(levels=("spine", "leaf"))
    request = Request(fabric=levels, nodes=nodes, allocations=tuple(running), jobs=tuple(jobs))
    placement = Placement(jobs=tuple(new))

    values = measure(request, placement)
    assert (values["traffic"], values["broken_nodes"]) == (leaves + 4 * spines, broken)
    extra = [span.extra for span in job_spans(Placed(request, placement))]
    assert (sum(e["leaf"] for e in extra), sum(e["spine"] for e in extra)) == (leaves, spines)
