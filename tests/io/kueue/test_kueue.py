"""Kueue: queues with quotas and flavors, workloads that wait or run, assignments in both forms."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kant_opt import place
from kant_opt.errors import InputError
from kant_opt.io import read_request
from kant_opt.io.kubernetes.kueue.assignment import read_assignment
from kant_opt.io.objects import Object
from kant_opt.schema import Quota, Request

Item = dict[str, Any]
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


def nodes(racks: int = 4, per_rack: int = 4, **labels: str) -> list[Item]:
    """Nodes node-00 ... of 8 GPUs, two racks a block."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{i:02}",
                "labels": {
                    BLOCK: f"b{i // per_rack // 2}",
                    RACK: f"r{i // per_rack % 2}",
                    "kubernetes.io/hostname": f"node-{i:02}",
                    **labels,
                },
            },
            "status": {"allocatable": {"cpu": "128", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}},
        }
        for i in range(racks * per_rack)
    ]


def workload(name: str = "w", count: int = 4, gpus: int = 8, **fields: Any) -> Item:
    request = fields.pop("request", {"required": BLOCK})
    status = fields.pop("status", {})
    owners = fields.pop("owners", [])
    asked = {"requests": {"nvidia.com/gpu": str(gpus)}}
    podset = {
        "name": "main",
        "count": count,
        "topologyRequest": request,
        "template": {"spec": {"containers": [{"name": "c", "resources": asked}]}},
        **fields.pop("podset", {}),
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": owners},
        "spec": {"podSets": [podset], **fields},
        "status": status,
    }


def pod(name: str, job: str, on: str = "") -> Item:
    asked = {"requests": {"nvidia.com/gpu": "8"}}
    spec = {"containers": [{"name": "c", "resources": asked}], **({"nodeName": on} if on else {})}
    labels = {"batch.kubernetes.io/job-name": job}
    meta = {"name": name, "namespace": "ml", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {}}


def queue(name: str, flavors: list[tuple[str, Item]], cohort: str = "") -> list[Item]:
    """A ClusterQueue that gives GPUs only, and the LocalQueue `lq` before it."""
    offers = [{"name": f, "resources": [{"name": "nvidia.com/gpu", **quota}]} for f, quota in flavors]
    spec = {"cohortName": cohort, "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": offers}]}
    version = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    return [
        {**version, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec},
        {
            **version,
            "kind": "LocalQueue",
            "metadata": {"name": "lq", "namespace": "ml"},
            "spec": {"clusterQueue": name},
        },
    ]


def flavor(name: str, labels: Item, **spec: Any) -> Item:
    spec = {"nodeLabels": labels, **spec}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def assigned(hosts: list[tuple[str, int]], levels: tuple[str, ...] = ("kubernetes.io/hostname",)) -> Item:
    domains = [{"values": [host], "count": count} for host, count in hosts]
    part = {"name": "main", "topologyAssignment": {"levels": list(levels), "domains": domains}}
    return {"admission": {"clusterQueue": "cq", "podSetAssignments": [part]}}


def read(folder: Path, *items: Item) -> tuple[Request, tuple[str, ...]]:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return read_request(path)


# --- files of the data folder


def test_the_written_out_workload(shared: Path, tmp_path: Path) -> None:
    """A leader and 8 workers in one block, workers in fours a rack. The answer in the file fills one rack in each of
    two blocks of these nodes, so it is not what may come out while the workload waits."""
    (item,) = yaml.safe_load_all((shared / "formats/kueue/synthetic-workload-v1beta2.yaml").read_text())
    status = item.pop("status")
    request, notes = read(tmp_path, *nodes(), item)
    (job,) = request.jobs
    leader, worker = job.podsets
    assert (job.name, job.priority, job.walltime_s) == ("ml/job-train-7", 100, 7200)
    assert (leader.count, leader.gpus, leader.cpu_milli, leader.memory_bytes) == (1, 0, 8000, 64 << 30)
    assert (worker.count, worker.gpus, worker.required_level) == (8, 8, "block")
    assert [(s.level, s.size) for s in worker.slices] == [("rack", 4)]
    assert [(t.level, t.podsets) for t in job.together] == [("block", ("leader", "worker"))]
    assert not notes
    placed = place(request).placement
    assert placed is not None
    (answer,) = placed.jobs
    assert len({int(p.node[5:]) // 8 for p in answer.pods}) == 1, "one block of 8 nodes"

    item["status"] = status
    request, notes = read(tmp_path, *nodes(), item)
    (allocation,) = request.allocations
    assert not request.jobs
    assert [h.node for h in allocation.holds] == [f"node-{i:02}" for i in (0, 1, 2, 3, 8, 9, 10, 11)]
    assert {(h.pods, h.gpus, h.podset) for h in allocation.holds} == {(1, 8, "worker")}
    assert (allocation.queue, allocation.tenant) == ("tas-cluster-queue", "ml")
    assert any("podsets of admitted workloads without an assignment" in n for n in notes), "the leader"


def test_both_forms_say_the_same(shared: Path) -> None:
    (old,) = yaml.safe_load_all((shared / "formats/kueue/synthetic-assignment-v1beta1.yaml").read_text())
    (new,) = yaml.safe_load_all((shared / "formats/kueue/synthetic-workload-v1beta2.yaml").read_text())
    new = new["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    forms = [read_assignment(Object(form, None, "x")) for form in (old["topologyAssignment"], new)]
    assert forms[0] == forms[1]


def test_the_sample_queue(shared: Path, tmp_path: Path) -> None:
    """16 GPUs, 100 CPUs and 100 GiB on nodes of the group; the tolerations of the flavor go to its jobs."""
    items = list(yaml.safe_load_all((shared / "formats/kueue/sample-gpu-queues.yaml").read_text()))
    label = {"cloud.provider.com/node-group": "tas-group"}
    here = nodes(2, 2, **label)
    del here[0]["metadata"]["labels"]["cloud.provider.com/node-group"]
    for item in here[1:]:
        item["spec"] = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    waiting = workload(queueName="tas-user-queue", count=2)
    waiting["metadata"]["namespace"] = "default"
    request, _ = read(tmp_path, *items, *here, waiting)
    (found,) = request.queues
    assert found.name == "tas-cluster-queue"
    assert {(q.resource, q.pool, q.guaranteed, q.limit) for q in found.quotas} == {
        ("gpu", "", 16, None),
        ("cpu_milli", "", 100_000, None),
        ("memory_bytes", "", 100 << 30, None),
    }
    assert request.fabric.levels == ("topology-block", "topology-rack")
    (job,) = request.jobs
    assert job.queue == "tas-cluster-queue"
    assert job.podsets[0].selector == {k: (v,) for k, v in label.items()}
    outcome = place(request)
    assert outcome.placement is not None
    (answer,) = outcome.placement.jobs
    assert "node-00" not in answer.nodes, "it is not of the flavor"


# --- quotas and flavors


def test_a_limit_is_what_may_be_borrowed_on_top(tmp_path: Path) -> None:
    quota = {"nominalQuota": 8, "borrowingLimit": "4"}
    request, notes = read(tmp_path, *nodes(), flavor("f", {}), *queue("cq", [("f", quota)], cohort="c"))
    (found,) = request.queues
    assert found.cohort == "c"
    assert found.quotas[0] == Quota(resource="gpu", guaranteed=8, limit=12)
    assert not notes


def test_what_a_queue_does_not_cover_is_not_admitted(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    cpu_only = workload(podset={"template": template}, queueName="lq", count=1)
    request, _ = read(tmp_path, *nodes(), flavor("f", {}), *queue("cq", [("f", {"nominalQuota": 8})]), cpu_only)
    assert Quota(resource="cpu_milli", limit=0) in request.queues[0].quotas
    assert place(request).placement is None or not place(request).placement.jobs  # type: ignore[union-attr]


def test_two_flavors_are_two_pools(tmp_path: Path) -> None:
    """8 GPUs of each flavor: a gang of two nodes takes one of each, of four it does not start."""
    here = nodes(2, 2)
    for i, item in enumerate(here):
        item["metadata"]["labels"]["kind"] = "spot" if i % 2 else "owned"
    flavors = [flavor("owned", {"kind": "owned"}), flavor("spot", {"kind": "spot"})]
    quotas = queue("cq", [("owned", {"nominalQuota": 8}), ("spot", {"nominalQuota": 8})])
    for count, starts in ((2, True), (4, False)):
        job = workload(count=count, queueName="lq")
        request, _ = read(tmp_path, *here, *flavors, *quotas, job)
        assert [n.pools[0] for n in request.nodes] == ["owned", "spot", "owned", "spot"]
        assert request.jobs[0].podsets[0].pools == ("owned", "spot")
        placed = place(request).placement
        assert bool(placed and placed.jobs) is starts
        if placed and placed.jobs:
            assert Counter(int(n[5:]) % 2 for n in placed.jobs[0].nodes) == {0: 1, 1: 1}


def test_a_queue_that_leads_nowhere_leaves_the_job_out(tmp_path: Path) -> None:
    request, notes = read(tmp_path, *nodes(), *queue("cq", []), workload(queueName="other"))
    assert not request.jobs
    assert any("'other' leads to no ClusterQueue" in n and "ml/w" in n for n in notes)


# --- workloads and their pods


def test_a_waiting_workload_speaks_for_its_waiting_pods(tmp_path: Path) -> None:
    owners = [{"kind": "Job", "name": "train"}]
    request, _ = read(tmp_path, *nodes(), workload(owners=owners), pod("train-0", "train"), pod("x-0", "x"))
    assert [(j.name, j.podsets[0].count) for j in request.jobs] == [("ml/w", 4), ("ml/x", 1)]


def test_an_assignment_speaks_for_all_pods_of_it(tmp_path: Path) -> None:
    """Two of four pods run, two are not bound yet: all four hold their places."""
    owners = [{"kind": "Job", "name": "train"}]
    status = assigned([("node-00", 2), ("node-01", 2)])
    pods = [pod("t-0", "train", "node-00"), pod("t-1", "train", "node-01"), pod("t-2", "train")]
    request, _ = read(tmp_path, *nodes(), workload(gpus=4, owners=owners, status=status), *pods)
    (allocation,) = request.allocations
    assert [(h.node, h.pods, h.gpus) for h in allocation.holds] == [("node-00", 2, 8), ("node-01", 2, 8)]
    assert not request.jobs


def test_pods_tell_where_the_assignment_does_not(tmp_path: Path) -> None:
    owners = [{"kind": "Job", "name": "train"}]
    status = assigned([("r0", 2)], levels=(RACK,))
    item = workload(count=1, owners=owners, status=status)
    request, _ = read(tmp_path, *nodes(), item, pod("t-0", "train", "node-02"))
    (allocation,) = request.allocations
    assert (allocation.job, allocation.holds[0].node) == ("ml/train", "node-02")
    request, notes = read(tmp_path, *nodes(), item)
    assert not request.allocations
    assert any("without an assignment to hosts and without pods" in n for n in notes)


def test_ended_and_deactivated_workloads(tmp_path: Path) -> None:
    ended = workload("e", status={"conditions": [{"type": "Finished", "status": "True"}]})
    request, notes = read(tmp_path, *nodes(), ended, workload("d", active=False))
    assert not request.jobs
    assert not request.allocations
    assert [n for n in notes if "deactivated" in n and "ml/d" in n]


def test_elastic_finished_and_layered(tmp_path: Path) -> None:
    layers = [{"topology": BLOCK, "size": 8}, {"topology": RACK, "size": 2}]
    item = workload(count=8, request={"podsetSliceRequiredTopologyConstraints": layers}, podset={"minCount": 4})
    item["status"] = {"reclaimablePods": [{"name": "main", "count": 1}]}
    request, _ = read(tmp_path, *nodes(), item)
    (podset,) = request.jobs[0].podsets
    assert (podset.count, podset.min_count, podset.finished) == (8, 4, 1)
    assert [(s.level, s.size) for s in podset.slices] == [("block", 8), ("rack", 2)]


def test_an_unknown_level_leaves_the_job_out(tmp_path: Path) -> None:
    request, notes = read(tmp_path, *nodes(), workload(request={"required": "no/such"}))
    assert not request.jobs
    assert any("no level stands for their topology label 'no/such'" in n for n in notes)


# --- faults


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"levels": ["h"], "domains": [{"values": ["a", "b"], "count": 1}]}, "2 values for 1 levels"),
        ({"levels": ["h"], "domains": [{"values": ["a"]}]}, "count: missing"),
        ({"levels": ["h"], "slices": [{"domainCount": 10**12}]}, "more than 1000000 domains"),
        (
            {"levels": ["h"], "slices": [{"domainCount": 9, "valuesPerLevel": [{"universal": "a"}]}]},
            "9 domains of one name",
        ),
        ({"levels": ["h"], "slices": [{"domainCount": 1}]}, "0 entries for 1 levels"),
        (
            {"levels": ["h"], "slices": [{"domainCount": 2, "valuesPerLevel": [{"individual": {"roots": ["a"]}}]}]},
            "1 entries for 2 domains",
        ),
    ],
)
def test_faulty_assignments(form: Item, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_assignment(Object(form, None, "x"))
