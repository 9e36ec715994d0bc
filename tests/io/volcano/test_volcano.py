"""Volcano: HyperNodes as levels, PodGroups as rules of gangs, Jobs without pods, Queues as caps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kant_opt import place
from kant_opt.errors import InputError
from kant_opt.io import read_request
from kant_opt.schema import Quota, Request

Item = dict[str, Any]


def nodes(count: int, gpus: int = 8) -> list[Item]:
    room = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus), "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i:02}", "labels": {"rack": f"r{i // 4}"}},
            "status": {"allocatable": room},
        }
        for i in range(count)
    ]


def pods(count: int, group: str, gpus: int = 8, labels: Item | None = None) -> list[Item]:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{group}-{i}",
                "namespace": "default",
                "labels": labels or {},
                "annotations": {"scheduling.k8s.io/group-name": group},
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        }
        for i in range(count)
    ]


def hyper(name: str, tier: int, *members: Item, tier_name: str = "") -> Item:
    spec = {"tier": tier, "tierName": tier_name, "members": list(members)}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def exact(name: str, kind: str = "Node") -> Item:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def group(name: str, **spec: Any) -> Item:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def read(folder: Path, *items: Item) -> tuple[Request, tuple[str, ...]]:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return read_request(path)


def racks(count: int, size: int = 4) -> list[Item]:
    """Leaf HyperNodes of tier 1."""
    return [hyper(f"leaf{r}", 1, *(exact(f"node-{r * size + i:02}") for i in range(size))) for r in range(count)]


def test_the_written_out_hypernodes(shared: Path, tmp_path: Path) -> None:
    """16 nodes below 4 leaves and 2 spines; two sub-gangs of 4 each in a leaf, both below one spine."""
    items = list(yaml.safe_load_all((shared / "formats/volcano/synthetic-hypernodes.yaml").read_text()))
    assert sum(i["kind"] == "HyperNode" for i in items) == 6
    request, notes = read(tmp_path, *nodes(16), *items, *pods(8, "llm", labels={"app": "llm"}))
    assert request.fabric.levels == ("block", "rack")
    assert [n.path for n in request.nodes] == [(f"spine{i // 8}", f"leaf{i // 4}") for i in range(16)]
    (job,) = request.jobs
    (podset,) = job.podsets
    assert (job.name, job.queue, podset.count, podset.required_level) == ("default/llm", "default", 8, "block")
    assert [(s.level, s.size) for s in podset.slices] == [("rack", 4)]
    assert podset.min_count is None, "both sub-gangs are needed"
    assert not notes
    placed = place(request).placement
    assert placed is not None
    on = sorted(int(n[5:]) for n in placed.jobs[0].nodes)
    assert on in ([*range(8)], [*range(8, 16)])


@pytest.mark.parametrize(
    "selector",
    [
        {"regexMatch": {"pattern": "^node-0[0-3]$"}},
        {"labelMatch": {"matchLabels": {"rack": "r0"}}},
        {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r0", "x"]}]}},
    ],
)
def test_ways_to_name_members(tmp_path: Path, selector: Item) -> None:
    request, _ = read(tmp_path, *nodes(8), hyper("first", 1, {"type": "Node", "selector": selector}))
    assert [n.path for n in request.nodes] == [("first",)] * 4 + [(None,)] * 4


def test_a_skipped_tier_and_a_short_branch_keep_neighbours_together(tmp_path: Path) -> None:
    """leaf0 hangs from the core at once, leaf1 from a spine of its own that hangs from nothing."""
    spine = hyper("spine", 2, exact("leaf1", "HyperNode"))
    core = hyper("core", 3, exact("leaf0", "HyperNode"))
    request, _ = read(tmp_path, *nodes(8), *racks(2), spine, core)
    assert request.fabric.levels == ("tier-3", "tier-2", "tier-1")
    assert [request.nodes[i].path for i in (0, 3)] == [("core", "leaf0", "leaf0")] * 2
    assert [request.nodes[i].path for i in (4, 7)] == [("spine", "spine", "leaf1")] * 2


def test_four_of_eight_start_inside_one_leaf(tmp_path: Path) -> None:
    """The user guide's case: 8 one-node pods, 4 are enough, leaves of 4 nodes, hard at tier 1."""
    rule = group("g", minMember=4, networkTopology={"mode": "hard", "highestTierAllowed": 1})
    request, _ = read(tmp_path, *nodes(8), *racks(2), *pods(8, "g"), rule)
    (podset,) = request.jobs[0].podsets
    assert (podset.min_count, podset.required_level) == (4, "tier-1")
    placed = place(request).placement
    assert placed is not None
    on = sorted(int(n[5:]) for n in placed.jobs[0].nodes)
    assert on in ([0, 1, 2, 3], [4, 5, 6, 7])


@pytest.mark.parametrize(
    ("topology", "required", "preferred"),
    [
        ({"highestTierAllowed": 1}, "tier-1", None),
        ({"mode": "soft", "highestTierAllowed": 1}, None, "tier-1"),
        ({"highestTierAllowed": 9}, "tier-1", None),
        ({"highestTierAllowed": 0}, None, None),
        ({"highestTierName": "none"}, None, None),
    ],
)
def test_modes_and_tiers(tmp_path: Path, topology: Item, required: str | None, preferred: str | None) -> None:
    rule = group("g", minMember=2, networkTopology=topology)
    request, notes = read(tmp_path, *nodes(4), *racks(1), *pods(2, "g"), rule)
    (podset,) = request.jobs[0].podsets
    assert (podset.required_level, podset.preferred_level) == (required, preferred)
    assert any("no HyperNode has" in n for n in notes) is (required is preferred is None)


def test_two_partitions_take_a_leaf_each(tmp_path: Path) -> None:
    """A Job without pods: 2 partitions of 4 below one spine."""
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}}
    policy = {"totalPartitions": 2, "partitionSize": 4, "networkTopology": {"highestTierAllowed": 1}}
    task = {"name": "worker", "replicas": 8, "template": template, "partitionPolicy": policy}
    spec = {"minAvailable": 8, "queue": "q", "tasks": [task], "networkTopology": {"highestTierAllowed": 2}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ml"},
        "spec": spec,
    }
    spines = [hyper(f"s{i}", 2, *(exact(f"leaf{i * 2 + k}", "HyperNode") for k in (0, 1))) for i in (0, 1)]
    request, notes = read(tmp_path, *nodes(16), *racks(4), *spines, job)
    (found,) = request.jobs
    (podset,) = found.podsets
    assert (found.name, found.queue, podset.name, podset.count, podset.gpus) == ("ml/j", "q", "worker", 8, 8)
    assert (podset.required_level, podset.min_count) == ("tier-2", None)
    assert [(s.level, s.size) for s in podset.slices] == [("tier-1", 4)]
    assert not notes
    bound = pods(1, "j-uid", labels={"volcano.sh/job-name": "j"})[0]
    bound["metadata"]["namespace"] = "ml"
    request, _ = read(tmp_path, *nodes(16), *racks(4), job, bound)
    assert [j.name for j in request.jobs] == ["ml/j-uid"], "its pods tell, once there are any"


def test_tasks_may_start_with_fewer(tmp_path: Path) -> None:
    rule = group("g", minMember=5, minTaskMember={"a": 1, "b": 4})
    two = [
        *pods(2, "g", labels={"volcano.sh/task-spec": "a"}),
        *pods(4, "g", gpus=4, labels={"volcano.sh/task-spec": "b"}),
    ]
    for i, item in enumerate(two):
        item["metadata"]["name"] = f"g-{i}"
    request, notes = read(tmp_path, *nodes(8), rule, *two)
    assert {p.name: (p.count, p.min_count) for p in request.jobs[0].podsets} == {"a": (2, 1), "b": (4, None)}
    assert any("over several podsets wait for all" in n for n in notes), "minMember alone would say less"


def test_queues_are_capped_by_capability(shared: Path, tmp_path: Path) -> None:
    items = [
        item
        for name in ("queue.yaml", "bench-queue.yaml", "hierarchical-queues.yaml")
        for item in yaml.safe_load_all((shared / "formats/volcano" / name).read_text())
    ]
    request, _ = read(tmp_path, *nodes(1), *items)
    by_name = {q.name: q.quotas for q in request.queues}
    assert len(by_name) == 6
    assert by_name["default"] == (
        Quota(resource="cpu_milli", guaranteed=2000),
        Quota(resource="memory_bytes", guaranteed=4 * 10**9),
    )
    assert by_name["root-sci-dev"] == ()


def test_a_job_of_an_unknown_queue_is_left_out(shared: Path, tmp_path: Path) -> None:
    (known,) = yaml.safe_load_all((shared / "formats/volcano/queue.yaml").read_text())
    request, notes = read(tmp_path, *nodes(1), known, *pods(1, "g"), group("g", queue="other"))
    assert not request.jobs
    assert any("'other' is not in the files" in n for n in notes)


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([hyper("a", 1, exact("node-00")), hyper("b", 1, exact("node-00"))], "'node-00' is in the HyperNodes 'a' and"),
        ([hyper("a", 1), hyper("b", 1, exact("a", "HyperNode"))], "'a' of tier 1 is below 'b' of tier 1"),
        ([hyper("a", 1, exact("a", "HyperNode"))], "'a' of tier 1 is below 'a' of tier 1"),
        ([hyper("a", -1)], "tier: -1 is below 0"),
        ([hyper("a", 1, {"type": "Rack", "selector": {"exactMatch": {"name": "x"}}})], "unknown type 'Rack'"),
        ([hyper("a", 1, {"type": "Node", "selector": {}})], "0 ways to match"),
        ([hyper("a", 1, {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}})], "no regular expression"),
        ([hyper("a", 1, {"type": "Node", "selector": {"regexMatch": {"pattern": "(a+)+$"}}})], "too involved"),
        ([hyper("a", 1, {"type": "Node", "selector": {"regexMatch": {"pattern": ".*.*.*.*x"}}})], "too involved"),
        ([hyper("a", 1, {"type": "HyperNode", "selector": {"labelMatch": {"matchLabels": {}}}})], "nodes only"),
    ],
)
def test_what_is_no_forest_is_refused(tmp_path: Path, items: list[Item], says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", "\\(")):
        read(tmp_path, *nodes(2), *items)
