"""Recordings of a real Slurm: the state it was in, the gangs it placed, and what both answers are worth.

slurmctld 22.05.8 with topology/tree, cons_tres and backfill on 2,048 nodes of 8 GPUs: gangs fill the cluster, many end
at random, and new ones (`c...`) go into the holes, each placed before the next is looked at.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kant_opt.metrics import measure
from kant_opt.schema import (
    Allocation,
    FabricSpec,
    Hold,
    Job,
    Node,
    PlacedJob,
    PlacedPods,
    Placement,
    PodSet,
    Request,
)

LEAST_COST = {"pow2-5": 22, "odd-5": 24, "odd-6": 20, "churn-odd-7": 20, "churn-pow2-8": 34}
"""Least cost (extra leaf 1, extra spine 4) of the gangs that take whole nodes, on the fully free nodes and nothing
else beside them: proven by HiGHS on a tree arc-flow. With the small pods added the least can only be more."""


@dataclass(frozen=True)
class Score:
    """What an answer is worth: leaves and spines beyond a gang's first, and nodes used in part at the end."""

    extra_leaves: int
    extra_spines: int
    broken_nodes: int

    @property
    def cost(self) -> int:
        return self.extra_leaves + 4 * self.extra_spines


@dataclass(frozen=True)
class Recording:
    """The request Slurm stood before, its gangs in order of arrival, and its answer."""

    name: str
    request: Request
    slurm: Placement

    def score(self, placement: Placement) -> Score:
        """Count from the node's paths alone; broken nodes by the measure of that name."""
        path = {node.name: node.path for node in self.request.nodes}
        leaves = [len({path[node] for node in job.nodes}) - 1 for job in placement.jobs]
        spines = [len({path[node][:2] for node in job.nodes}) - 1 for job in placement.jobs]
        return Score(sum(leaves), sum(spines), measure(self.request, placement)["broken_nodes"])


def folder() -> Path | None:
    """Return the folder of the recordings, found as the `shared` fixture does it; None where it is missing."""
    root = Path(__file__).resolve().parents[2]
    found = Path(os.environ.get("KANT_OPT_SHARED", root.parent / "shared" / "data")) / "slurm_peer"
    return found if found.is_dir() else None


def load(name: str) -> Recording:
    """Return one recording: gangs that ran before (`a...`) as allocations, those placed last (`c...`) as jobs."""
    data = folder()
    assert data is not None, "the recordings are not beside the checkout"
    doc = json.loads((data / f"{name}.json").read_text("utf-8"))
    shape = {e["submit"]: (e["pods"], e["gpus_per_pod"]) for e in doc["events"] if "submit" in e}
    jobs, placed, running = [], [], []
    for gang, (pods, gpus) in shape.items():  # in order of arrival
        if gang.startswith("c"):
            jobs.append(Job(name=gang, podsets=(PodSet(count=pods, gpus=gpus),)))
            nodes = tuple(PlacedPods(node=f"n{n}") for n in doc["slurm"][gang])
            placed.append(PlacedJob(job=gang, pods=nodes))
        elif gang in doc["slurm"]:  # the others had ended by then
            holds = tuple(Hold(node=f"n{n}", gpus=gpus) for n in doc["slurm"][gang])
            running.append(Allocation(job=gang, holds=holds))
    request = Request(
        name=name,
        fabric=FabricSpec(levels=("core", "spine", "leaf")),
        nodes=_nodes(doc),
        allocations=tuple(running),
        jobs=tuple(jobs),
    )
    return Recording(name, request, Placement(jobs=tuple(placed)))


def _nodes(doc: dict[str, Any]) -> tuple[Node, ...]:
    per_leaf, leaves = doc["nodes_per_leaf"], doc["leaves_per_spine"]
    return tuple(
        Node(
            name=f"n{n}",
            path=("core", f"s{n // per_leaf // leaves}", f"l{n // per_leaf}"),
            gpus=doc["gpus_per_node"],
        )
        for n in range(doc["spines"] * leaves * per_leaf)
    )
