"""KAI: levels by label or alias, sub-groups as podsets, limits of queues."""

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
TIER, CLIQUE = "fabric.topograph.run/tier-1", "nvidia.com/gpu.clique"


def nodes(count: int, **labels: str) -> list[Item]:
    """Nodes of 4 GPUs, cliques of 4 nodes, blocks of 8."""
    room = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "4", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"n{i:02}",
                "labels": {TIER: f"b{i // 8}", CLIQUE: f"c{i // 4}", "accelerator.nvidia.com/rack": f"r{i // 4}"},
            },
            "status": {"allocatable": room},
        }
        for i in range(count)
    ]


def pods(count: int, group: str, sub: str = "", namespace: str = "inf") -> list[Item]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{group}-{sub}-{i}",
                "namespace": namespace,
                "labels": {"kai.scheduler/subgroup-name": sub} if sub else {},
                "annotations": {"pod-group-name": group},
            },
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "4"}}}]},
            "status": {"phase": "Pending"},
        }
        for i in range(count)
    ]


def group(name: str, **spec: Any) -> Item:
    meta = {"name": name, "namespace": "inf"}
    return {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}


def read(folder: Path, *items: Item) -> tuple[Request, tuple[str, ...]]:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return read_request(path)


def documents(path: Path) -> list[Item]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


def test_the_written_out_sub_groups(shared: Path, tmp_path: Path) -> None:
    """Two pairs of prefill pods, each inside a clique, and four decode pods that wish for one: all in one block."""
    items = documents(shared / "formats/kai/synthetic-podgroup-subgroups.yaml")
    waiting = [*pods(2, "serve-1", "prefill-0"), *pods(2, "serve-1", "prefill-1"), *pods(4, "serve-1", "decode")]
    request, notes = read(tmp_path, *nodes(16), *items, *waiting)
    assert request.fabric.levels == ("block", "hbd"), "the alias names the level; cliques are NVLink domains"
    (job,) = request.jobs
    assert (job.queue, job.preemptible) == ("team-a", False)
    assert {p.name: (p.count, p.min_count, p.required_level, p.preferred_level) for p in job.podsets} == {
        "prefill-0": (2, None, "hbd", None),
        "prefill-1": (2, None, "hbd", None),
        "decode": (4, None, None, "hbd"),
    }
    assert [(t.level, set(t.podsets)) for t in job.together] == [("block", {"prefill-0", "prefill-1", "decode"})]
    assert not notes
    placed = place(request).placement
    assert placed is not None
    where = {p.podset: set[int]() for p in placed.jobs[0].pods}
    for part in placed.jobs[0].pods:
        where[part.podset].add(int(part.node[1:]))
    assert len({n // 8 for part in where.values() for n in part}) == 1
    assert all(len({n // 4 for n in where[name]}) == 1 for name in ("prefill-0", "prefill-1", "decode"))


@pytest.mark.parametrize("named", ["rack", "accelerator.nvidia.com/rack"])
def test_a_level_goes_by_alias_or_label(shared: Path, tmp_path: Path, named: str) -> None:
    items = documents(shared / "formats/kai/topology-aliases.yaml")
    items[1]["spec"]["topologyConstraint"]["requiredTopologyLevel"] = named
    bare = nodes(8)
    for item in bare:
        del item["metadata"]["labels"][CLIQUE]
    request, notes = read(tmp_path, *bare, *items, *pods(5, "aliased-topology-job", namespace="default"))
    (job,) = request.jobs
    assert (job.podsets[0].count, job.podsets[0].min_count) == (5, 3)
    assert job.podsets[0].required_level == "rack"
    assert job.queue == "default-queue"
    assert any("kind 'Job'" in n for n in notes), "the Job itself is told by its pods"


def test_a_level_that_is_not_there_leaves_the_job_out(tmp_path: Path) -> None:
    rule = group("g", topologyConstraint={"topology": "t", "requiredTopologyLevel": "moon"})
    request, notes = read(tmp_path, *nodes(4), rule, *pods(1, "g"))
    assert not request.jobs
    assert any("no level stands for their topology level 'moon'" in n and "inf/g" in n for n in notes)


def test_a_parent_joins_its_children(tmp_path: Path) -> None:
    subs = [
        {"name": "all", "topologyConstraint": {"requiredTopologyLevel": CLIQUE}},
        {"name": "a", "parent": "all", "minMember": 1},
        {"name": "b", "parent": "all", "minMember": 2},
    ]
    rule = group("g", subGroups=subs, preemptibility="preemptible", minSubGroup=1)
    request, notes = read(tmp_path, *nodes(4), rule, *pods(2, "g", "a"), *pods(2, "g", "b"))
    (job,) = request.jobs
    assert [(t.level, set(t.podsets)) for t in job.together] == [("hbd", {"a", "b"})]
    assert {p.name: p.min_count for p in job.podsets} == {"a": 1, "b": None}
    assert job.preemptible
    assert not any("fewer sub-groups" in n for n in notes), "one sub-group of one is needed"


def test_limits_cap_queues(shared: Path, tmp_path: Path) -> None:
    items = documents(shared / "formats/kai/default-queues.yaml")
    items[1]["spec"]["resources"] = {"gpu": {"limit": 2.5}, "cpu": {"limit": 4000}, "memory": {"limit": 1000}}
    request, notes = read(tmp_path, *nodes(1), *items)
    assert [q.name for q in request.queues] == ["default-parent-queue", "default-queue"]
    assert request.queues[0].quotas == (), "-1 is no limit"
    assert request.queues[1].quotas == (
        Quota(resource="gpu", guaranteed=2),
        Quota(resource="cpu_milli", guaranteed=4000),
        Quota(resource="memory_bytes", guaranteed=10**9),
    )
    assert any("parent queues" in n and "default-queue" in n for n in notes)


def test_a_limit_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    spec = {"resources": {"memory": {"limit": 1e308}}}
    item = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}
    with pytest.raises(InputError):
        read(tmp_path, *nodes(1), item)


def test_every_queue_of_the_examples_is_read(shared: Path, tmp_path: Path) -> None:
    path = shared / "formats/kai/two-queue-oscillation-queues.yaml"
    request, _ = read(tmp_path, *nodes(1), *documents(path))
    assert len(request.queues) == path.read_text().count("kind: Queue")
