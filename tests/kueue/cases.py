"""Kueue's recorded cases: where they lie, and the same question as a native request document.

The words of the two differ as follows. Kueue's innermost level is our node, whatever it is called: a host, or a rack
or block whose machines were summed. What is free there, with the pods of the case that stay, is the node's capacity.
The podsets of a case are one job, since Kueue places them all or none; a leader and its workers are tied together in
the level they require. A strategy "balanced" is our wish `balance`; "best_fit" and "least_free" have no counterpart.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from kant_opt.schema import Outcome

Case = dict[str, Any]
Pods = Counter[tuple[str, str]]
"""(podset, node) -> pods."""

JOB = "gang"
NODE = "node"
_OURS = {"cpu": "cpu_milli", "memory": "memory_bytes", "gpu": "gpus", "slot": "gpus", "pods": "max_pods"}
"""A `slot` stands for any single resource; whole GPUs are one."""


def folder() -> Path | None:
    """Return the folder of the recordings, found as the `shared` fixture does it; None where it is missing."""
    root = Path(__file__).resolve().parents[2]
    found = Path(os.environ.get("KANT_OPT_SHARED", root.parent / "shared" / "data")) / "kueue_tas"
    return found if found.is_dir() else None


def load_cases() -> list[Case]:
    """Return every recorded case, none where the recordings are missing."""
    if (data := folder()) is None:
        return []
    return [json.loads(line) for line in (data / "cases.jsonl").read_text("utf-8").splitlines()]


def document(case: Case) -> dict[str, Any]:
    """Return the case as a request document: plain data, not checked yet."""
    staying = staying_pods(case)
    return {
        "name": case["name"],
        "fabric": {"levels": case["levels"][:-1]},
        "nodes": [_node(case, node, staying) for node in case["nodes"]],
        "allocations": _allocations(case, staying),
        "jobs": [{"name": JOB, "podsets": [_podset(case, p) for p in case["podsets"]], "together": _ties(case)}],
    }


def staying_pods(case: Case) -> Pods:
    """Return the pods that run and stay: none on a lost node, unless pinned, and none of a stale placement."""
    found: Pods = Counter()
    if "previous_placement_stale" in case["tags"]:
        return found
    for podset in case["podsets"]:
        for old in podset.get("placed_before", ()):
            node = old["path"][-1]
            if node != case.get("lost_node") or case.get("pinned"):
                found[podset["name"], _node_name(case, old["path"])] += old["count"]
    return found


def level_name(case: Case, level: str | None) -> str | None:
    """Return our name of a level: `node` for the innermost."""
    return NODE if level == case["levels"][-1] else level


def pods_of_kueue(case: Case) -> Pods:
    """Return Kueue's answer to a case that fits: old and new pods together."""
    found: Pods = Counter()
    for entry in case["expect"]["domains"]:
        found[entry["podset"], _node_name(case, entry["path"])] += entry["count"]
    return found


def pods_of(case: Case, outcome: Outcome) -> Pods | None:
    """Return our answer in the same form: the pods that stay and the new ones; None where it does not fit."""
    if outcome.reasons or outcome.placement is None:
        return None
    found = staying_pods(case)
    placed = outcome.placement.of(JOB)  # None where no pod is missing
    for entry in placed.pods if placed else ():
        found[entry.podset, entry.node] += entry.count
    return found


def domains_used(case: Case, pods: Pods, podsets: set[str]) -> dict[str, int]:
    """Return the number of domains of every level that `podsets` use, outermost first."""
    paths = {n["name"]: tuple(n["domains"].get(level) for level in case["levels"]) for n in case["nodes"]}
    used = [paths[node] for podset, node in pods if podset in podsets]
    return {level: len({path[: i + 1] for path in used}) for i, level in enumerate(case["levels"])}


def _node_name(case: Case, path: list[str]) -> str:
    """Return the name of the node at `path`: nodes are named apart from their innermost domain where those repeat."""
    for node in case["nodes"]:
        if [node["domains"].get(level) for level in case["levels"]] == path:
            return str(node["name"])
    raise KeyError(f"{case['name']}: no node at {path}")


def _node(case: Case, node: dict[str, Any], staying: Pods) -> dict[str, Any]:
    capacity = Counter({_OURS[name]: amount for name, amount in node["free"].items()})
    asked = {_OURS[name] for p in case["podsets"] for name in p["per_pod"]}
    for podset in case["podsets"]:
        for name, amount in podset["per_pod"].items():
            capacity[_OURS[name]] += amount * staying[podset["name"], node["name"]]
    return {
        "name": node["name"],
        "path": [node["domains"].get(level) for level in case["levels"][:-1]],
        "schedulable": node["schedulable"],
        "why_closed": node.get("why", ""),
        **dict.fromkeys(asked, 0),  # a resource that a node does not name is one it does not have
        **capacity,
    }


def _podset(case: Case, podset: dict[str, Any]) -> dict[str, Any]:
    open_nodes = podset.get("eligible")
    return {
        "name": podset["name"],
        "count": podset["count"],
        **_per_pod(podset),
        "required_level": level_name(case, podset["required_level"]),
        "preferred_level": level_name(case, podset["preferred_level"]),
        "slices": [{"level": level_name(case, s["level"]), "size": s["size"]} for s in _slices(podset)],
        "balance": podset["strategy"] == "balanced" and case["kind"] != "select",
        "not_nodes": [] if open_nodes is None else [n["name"] for n in case["nodes"] if n["name"] not in open_nodes],
    }


def _slices(podset: dict[str, Any]) -> list[dict[str, Any]]:
    return [] if podset.get("role") == "leader" else podset["slices"]  # they bind workers only


def _per_pod(podset: dict[str, Any]) -> dict[str, int]:
    return {_OURS[name]: amount for name, amount in podset["per_pod"].items() if name != "pods"}


def _ties(case: Case) -> list[dict[str, Any]]:
    workers = [p for p in case["podsets"] if p.get("role") == "workers" and p["required_level"]]
    return [
        {
            "level": level_name(case, w["required_level"]),
            "podsets": [p["name"] for p in case["podsets"] if p["group"] == w["group"]],
        }
        for w in workers
    ]


def _allocations(case: Case, staying: Pods) -> list[dict[str, Any]]:
    shapes = {p["name"]: _per_pod(p) for p in case["podsets"]}
    holds = [
        {
            "node": node,
            "podset": podset,
            "pods": count,
            **{name: amount * count for name, amount in shapes[podset].items()},
        }
        for (podset, node), count in sorted(staying.items())
    ]
    return [{"job": JOB, "holds": holds}] if holds else []
