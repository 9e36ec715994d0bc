"""Kubernetes clusters: what is free, where nodes hang, who waits; counted again from the plain JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kant_opt.io import read_request
from kant_opt.schema import Request, Taint, Toleration

Item = dict[str, Any]
Read = Callable[..., tuple[Request, tuple[str, ...]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read a cluster of the items given."""

    def inner(*items: Item) -> tuple[Request, tuple[str, ...]]:
        path = tmp_path / "cluster.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return read_request(path, format="kubernetes")

    return inner


def node(name: str, labels: Item | None = None, gpus: int = 8, **fields: Any) -> Item:
    room = {"cpu": "64", "memory": "512Gi", "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": fields.pop("spec", {}),
        "status": {"allocatable": room | fields.pop("room", {}), **fields},
    }


def pod(name: str, on: str = "", gpus: int = 4, phase: str = "", **fields: Any) -> Item:
    asked = {"cpu": "8", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    spec = {"containers": [{"name": "main", "resources": {"requests": asked}}], **fields.pop("spec", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", **fields},
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": {"phase": phase or ("Running" if on else "Pending")},
    }


def free_gpus(request: Request) -> dict[str, int | None]:
    """GPUs that new pods may take, by node; None where the node is closed."""
    used: Counter[str] = Counter()
    for allocation in request.allocations:
        for hold in allocation.holds:
            used[hold.node] += hold.gpus
    return {n.name: max(0, n.gpus - used[n.name]) if n.schedulable else None for n in request.nodes}


@pytest.fixture
def cluster(shared: Path, tmp_path: Path) -> Path:
    """The written-out cluster of the data folder, alone in a folder of its own."""
    home = shared / "formats" / "k8s-nodes"
    for name in ("synthetic-nodelist.json", "synthetic-podlist.json"):
        (tmp_path / name).write_text((home / name).read_text())
    return tmp_path


def test_free_gpus_are_those_its_author_wrote_down(cluster: Path) -> None:
    request, notes = read_request(cluster)
    assert free_gpus(request) == {
        "gb200-r0-n0": 0,
        "gb200-r0-n1": None,  # cordoned
        "gb200-r0-n2": 4,
        "gb200-r0-n3": 4,
        "gb200-r1-n0": 4,
        "gb200-r1-n1": 4,
        "gb200-r1-n2": 0,  # 4 held of 3 that are left
        "gb200-r1-n3": None,  # unreachable
        "h100-n0": 8,  # the pod there has succeeded
        "h100-n1": 0,  # its pod terminates
        "h100-n2": 2,  # an init container asks for 6
        "h100-n3": 8,
        "cpu-0": 0,
    }
    closed = {n.name: n.why_closed for n in request.nodes if not n.schedulable}
    assert closed["gb200-r0-n1"] == "cordoned"
    assert "Unknown" in closed["gb200-r1-n3"]
    (job,) = request.jobs
    assert (job.name, job.podsets[0].count, job.podsets[0].gpus) == ("default/c", 2, 8)
    assert job.podsets[0].tolerations == (Toleration(key="nvidia.com/gpu", operator="Exists"),)
    assert any("gates" in note and "default/c" in note for note in notes)
    assert any("gb200-r1-n2: 3 of 4" in note for note in notes)


def test_nodes_carry_what_the_file_says(cluster: Path) -> None:
    request, _ = read_request(cluster)
    items = json.loads((cluster / "synthetic-nodelist.json").read_text())["items"]
    assert [n.name for n in request.nodes] == [i["metadata"]["name"] for i in items]
    for got, item in zip(request.nodes, items, strict=True):
        room = item["status"]["allocatable"]
        assert got.labels == item["metadata"]["labels"]
        assert got.gpus == int(room.get("nvidia.com/gpu", 0))
        assert f"{got.cpu_milli}m" == room["cpu"]
        assert f"{(got.memory_bytes or 0) // 1024}Ki" == room["memory"]
        assert str(got.max_pods) == room["pods"]
        assert [t.key for t in got.taints] == [t["key"] for t in item["spec"].get("taints", [])]


def test_levels_of_the_larger_family_and_cliques_inside(cluster: Path) -> None:
    """8 nodes carry topograph's tiers, 4 those of AWS."""
    request, notes = read_request(cluster)
    assert request.fabric.levels == ("spine", "leaf", "hbd")
    assert request.nodes[0].path == ("spine-0", "leaf-0", request.nodes[0].labels["nvidia.com/gpu.clique"])
    paths = Counter(n.path for n in request.nodes)
    assert sorted(paths.values()) == [4, 4, 5], "two cliques of 4, and 5 nodes of which nothing is known"
    assert any("level 'leaf'" in note and ": 4 (h100-n0" in note for note in notes)


def test_aws_layers_run_the_other_way(cluster: Path) -> None:
    """Without the GB200 nodes layer 1 is the outermost; h100-n3 has no layer 3."""
    path = cluster / "synthetic-nodelist.json"
    items = json.loads(path.read_text())["items"]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items[8:]}))
    request, notes = read_request(cluster)
    assert request.fabric.levels == ("core", "spine", "leaf")
    assert {n.name: n.path for n in request.nodes} == {
        "h100-n0": ("nn-root", "nn-a", "nn-leaf-0"),
        "h100-n1": ("nn-root", "nn-a", "nn-leaf-0"),
        "h100-n2": ("nn-root", "nn-a", "nn-leaf-1"),
        "h100-n3": ("nn-root", "nn-a", None),
        "cpu-0": (None, None, None),
    }
    assert any("left out" in note and "default/" in note for note in notes), "pods on the nodes that are gone"


def test_one_file_and_yaml_say_the_same(cluster: Path, tmp_path: Path) -> None:
    parts = [json.loads(p.read_text())["items"] for p in sorted(cluster.glob("*.json"))]
    wanted = read_request(cluster)[0]
    (tmp_path / "one.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": parts[0] + parts[1]}))
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(parts[1] + parts[0]))
    assert read_request(tmp_path / "one.json")[0] == wanted
    assert read_request(tmp_path / "all.yaml")[0] == wanted


def test_forty_openb_nodes_in_yaml(shared: Path) -> None:
    path = shared / "formats" / "k8s-nodes" / "fgd-openb-first-40-nodes.yaml"
    request, _ = read_request(path)
    text = path.read_text()
    assert len(request.nodes) == len(re.findall(r"^kind: Node$", text, re.MULTILINE)) == 40
    counts = [int(c) for c in re.findall(r"gpu-count: '(\d+)'", text)]
    assert 2 * sum(n.gpus for n in request.nodes) == sum(counts), "each count stands under allocatable and capacity"
    models = Counter(re.findall(r"gpu-card-model: (\S+)", text))
    assert Counter(n.pools[0] for n in request.nodes) == models


def test_a_folder_says_what_it_does_not_read(shared: Path) -> None:
    request, notes = read_request(shared / "formats" / "k8s-nodes")
    assert len(request.nodes) == 13 + 40 + 2 + 1  # list, first forty, pai-node-00 and -01, virtual DGX
    assert any("kwok-node-ready-patch.yaml" in note for note in notes)


# --- what a pod holds ------------------------------------------------------------------------------------------------


def container(gpus: int = 0, cpu: str = "", limit: int = 0, always: bool = False) -> Item:
    requests = {k: v for k, v in {"nvidia.com/gpu": str(gpus), "cpu": cpu}.items() if v not in ("", "0")}
    limits = {"nvidia.com/gpu": str(limit)} if limit else {}
    return {"resources": {"requests": requests, "limits": limits}} | ({"restartPolicy": "Always"} if always else {})


HELD = {
    "containers run side by side": ({"containers": [container(2, "1"), container(1, "500m")]}, 3, 1500),
    "a limit stands in for a request": ({"containers": [container(limit=4)]}, 4, 0),
    "a request is not raised to its limit": ({"containers": [container(2, limit=4)]}, 2, 0),
    "init steps run one by one before": (
        {"containers": [container(2)], "initContainers": [container(6), container(3)]},
        6,
        0,
    ),
    "a small init step hides": ({"containers": [container(2)], "initContainers": [container(1)]}, 2, 0),
    "a sidecar runs on": ({"containers": [container(2)], "initContainers": [container(1, always=True)]}, 3, 0),
    "an init step runs beside the sidecars before it": (  # steps: 1, 1 + 4; run: 2 + 1
        {"containers": [container(2)], "initContainers": [container(1, always=True), container(4)]},
        5,
        0,
    ),
    "and not beside those after it": (  # steps: 4, 1; run: 2 + 1
        {"containers": [container(2)], "initContainers": [container(4), container(1, always=True)]},
        4,
        0,
    ),
    "each resource has its own largest step": (  # GPUs 6 from the step, CPU 9 from the run
        {"containers": [container(2, "9")], "initContainers": [container(6, "1")]},
        6,
        9000,
    ),
    "overhead comes on top": ({"containers": [container(2, "1")], "overhead": {"cpu": "250m"}}, 2, 1250),
    "a fraction of a milli-CPU is rounded up": ({"containers": [container(cpu="1500u")]}, 0, 2),
    "the pod as a whole decides where it asks": (
        {"containers": [container(1, "1")], "resources": {"requests": {"cpu": "6"}}},
        1,
        6000,
    ),
}


@pytest.mark.parametrize(("spec", "gpus", "cpu_milli"), HELD.values(), ids=HELD)
def test_effective_requests(read: Read, spec: Item, gpus: int, cpu_milli: int) -> None:
    request, _ = read(node("n1"), pod("p", on="n1", spec=spec))
    (hold,) = request.allocations[0].holds
    assert (hold.gpus, hold.cpu_milli, hold.pods) == (gpus, cpu_milli, 1)


@pytest.mark.parametrize(("phase", "gpus"), [("Running", 4), ("Pending", 4), ("Succeeded", 0), ("Failed", 0)])
def test_ended_pods_hold_nothing(read: Read, phase: str, gpus: int) -> None:
    """A pod that is bound and still Pending pulls its image: it holds."""
    request, _ = read(node("n1"), pod("p", on="n1", phase=phase))
    assert free_gpus(request) == {"n1": 8 - gpus}


# --- gangs -----------------------------------------------------------------------------------------------------------

MARKS: list[Item] = [
    {"labels": {"batch.kubernetes.io/job-name": "g"}},
    {"labels": {"jobset.sigs.k8s.io/jobset-name": "g", "batch.kubernetes.io/job-name": "g-workers-0"}},
    {"annotations": {"scheduling.k8s.io/group-name": "g"}},
    {"annotations": {"pod-group-name": "g"}, "labels": {"job-name": "other"}},
    {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}},
    {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    {"ownerReferences": [{"kind": "PyTorchJob", "name": "g", "controller": True}]},
]


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: next(iter(next(iter(m.values())))) if "labels" in m else None)
def test_pods_of_one_mark_are_one_gang(read: Read, marks: Item) -> None:
    request, _ = read(node("n1"), *(pod(f"p{i}", **marks) for i in range(3)), pod("alone"))
    assert [(j.name, [p.count for p in j.podsets]) for j in request.jobs] == [("ml/alone", [1]), ("ml/g", [3])]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_pods_that_start_one_by_one_are_jobs_each(read: Read, kind: str) -> None:
    marks: Item = {"ownerReferences": [{"kind": kind, "name": "web", "controller": True}]}
    request, _ = read(node("n1"), pod("w1", on="n1", **marks), pod("w2", on="n1", gpus=1, **marks), pod("w3", **marks))
    assert [j.name for j in request.jobs] == ["ml/w3"]
    (allocation,) = request.allocations
    assert (allocation.job, allocation.holds[0].pods, allocation.holds[0].gpus) == ("ml/web", 2, 5)


def test_living_and_finished_members_count(read: Read) -> None:
    """Of a gang of 6: 2 run, 1 is done, 1 failed and is replaced, 1 terminates and is replaced, 3 wait."""
    marks: Item = {"labels": {"batch.kubernetes.io/job-name": "g"}}
    request, _ = read(
        node("n1"),
        node("n2"),
        pod("g-0", on="n1", gpus=2, **marks),
        pod("g-1", on="n2", gpus=2, **marks),
        pod("g-2", on="n1", gpus=2, phase="Succeeded", **marks),
        pod("g-3", on="n1", gpus=2, phase="Failed", **marks),
        pod("g-4", on="n2", gpus=2, deletionTimestamp="2026-01-01T00:00:00Z", **marks),
        *(pod(f"g-{i}", gpus=2, **marks) for i in (5, 6, 7)),
    )
    (job,) = request.jobs
    (podset,) = job.podsets
    assert (job.name, podset.count, podset.finished, podset.gpus) == ("ml/g", 2 + 1 + 3, 1, 2)
    held = {a.job: [(h.node, h.gpus, h.podset) for h in a.holds] for a in request.allocations}
    assert held == {"ml/g": [("n1", 2, "main"), ("n2", 2, "main")], "ml/g (ending)": [("n2", 2, "")]}
    assert free_gpus(request) == {"n1": 6, "n2": 4}


def test_finished_members_count_though_their_node_is_gone(read: Read) -> None:
    marks: Item = {"labels": {"job-name": "g"}}
    done = pod("g-0", on="n9", phase="Succeeded", **marks)
    request, notes = read(node("n1"), done, pod("g-1", **marks))
    assert (request.jobs[0].podsets[0].count, request.jobs[0].podsets[0].finished) == (2, 1)
    assert notes == ()


def test_ended_pods_take_no_names(read: Read) -> None:
    request, _ = read(node("n1"), pod("a", on="n1", labels={"pod-group-name": "x"}), pod("x", on="n1", phase="Failed"))
    assert [a.job for a in request.allocations] == ["ml/x"]


@pytest.mark.parametrize(
    ("marks", "job"),
    [
        ({"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "1"}, "ml/s-1"),
        ({"leaderworkerset.sigs.k8s.io/name": "s"}, "ml/p"),  # half a mark is none
    ],
)
def test_marks_of_two_labels(read: Read, marks: dict[str, str], job: str) -> None:
    assert [j.name for j in read(node("n1"), pod("p", labels=marks))[0].jobs] == [job]


def test_the_controller_among_the_owners_counts(read: Read) -> None:
    owners = [{"kind": "Watcher", "name": "w"}, {"kind": "MPIJob", "name": "m", "controller": True}]
    assert [j.name for j in read(node("n1"), pod("p", ownerReferences=owners))[0].jobs] == ["ml/m"]


def test_shapes_become_podsets_named_by_role(read: Read) -> None:
    def member(name: str, role: str, gpus: int, on: str = "") -> Item:
        return pod(
            name,
            gpus=gpus,
            on=on,
            labels={"jobset.sigs.k8s.io/jobset-name": "g", "jobset.sigs.k8s.io/replicatedjob-name": role},
        )

    request, _ = read(
        node("n1"),
        member("a", "leader", 0),
        member("b", "worker", 4),
        member("c", "worker", 4),
        member("d", "worker", 4, on="n1"),
    )
    assert [(p.name, p.count, p.gpus) for p in request.jobs[0].podsets] == [("leader", 1, 0), ("worker", 3, 4)]
    assert request.allocations[0].holds[0].podset == "worker"
    request, _ = read(node("n1"), member("a", "worker", 2), member("b", "worker", 4), member("c", "worker", 4))
    assert [(p.name, p.count, p.gpus) for p in request.jobs[0].podsets] == [("worker-1", 1, 2), ("worker-2", 2, 4)]


def test_a_gang_and_a_controller_of_one_name_stay_apart(read: Read) -> None:
    request, _ = read(
        node("n1"),
        pod("a", on="n1", gpus=1, labels={"job-name": "x"}),
        pod("b", on="n1", gpus=1, ownerReferences=[{"kind": "ReplicaSet", "name": "x", "controller": True}]),
        pod("x", gpus=1),
    )
    names = [a.job for a in request.allocations] + [j.name for j in request.jobs]
    assert sorted(names) == ["ml/x", "ml/x (ReplicaSet)", "ml/x (job-name)"]


def test_what_is_left_out_is_told(read: Read) -> None:
    daemon: Item = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
    request, notes = read(
        node("n1", room={"nvidia.com/mig-1g.10gb": "7"}),
        pod("far", on="n9"),
        pod("agent", **daemon),
        pod("claims", spec={"resourceClaims": [{"name": "gpu"}]}),
        pod("slice", spec={"containers": [{"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}]}),
        pod("wide", annotations={"kueue.x-k8s.io/podset-required-topology": "example.com/hall"}),
        pod("gone", deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("rdma", spec={"containers": [{"resources": {"limits": {"rdma/ib": "1"}}}]}),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}},
    )
    assert [j.name for j in request.jobs] == ["ml/rdma"]
    assert request.allocations == ()
    for words in (
        ("not in the files", "ml/far"),
        ("DaemonSets", "ml/agent"),
        ("resourceClaims", "ml/claims"),
        ("mig-1g.10gb", "ml/slice"),
        ("mig-1g.10gb", "n1"),
        ("'example.com/hall'", "ml/wide"),
        ("rdma/ib is not counted", "ml/rdma"),
        ("'ConfigMap'", "cm"),
    ):
        assert any(all(word in note for word in words) for note in notes), words


def test_times_priorities_and_queues(read: Read) -> None:
    marks: Item = {"labels": {"job-name": "g", "kueue.x-k8s.io/queue-name": "research"}}
    waits = [pod(f"g-{i}", creationTimestamp=f"2026-01-01T00:0{i}:00Z", spec={"priority": i}, **marks) for i in (3, 2)]
    timed = pod("t", creationTimestamp="2026-01-01T00:01:00.9+00:00", spec={"activeDeadlineSeconds": 600})
    runs = pod("r", on="n1", spec={"activeDeadlineSeconds": 600, "priority": -5})
    runs["status"]["startTime"] = "2026-01-01T01:00:00+01:00"
    partly = [pod(f"s-{i}", on="n1", gpus=1, labels={"job-name": "s"}, spec={"priority": i}) for i in (1, 2)]
    partly[0]["status"]["startTime"] = "2026-01-01T00:00:07Z"
    partly[0]["spec"]["activeDeadlineSeconds"] = 600
    request, _ = read(node("n1"), *waits, timed, runs, *partly)
    start = 1767225600  # 2026-01-01T00:00:00Z: 20454 days of 86400 s
    assert start == 20454 * 86400
    assert [(j.name, j.submit_s - start, j.walltime_s, j.priority, j.queue) for j in request.jobs] == [
        ("ml/t", 60, 600, 0, ""),
        ("ml/g", 120, None, 3, "research"),
    ]
    whole, part = request.allocations
    assert (whole.since_s, whole.until_s, whole.priority) == (start, start + 600, -5)
    assert (part.since_s, part.until_s, part.priority) == (start + 7, None, 2), "one pod has no end"
    assert request.now_s == start + 180, "the latest time told"


# --- where pods may go -----------------------------------------------------------------------------------------------


def affinity(*terms: Item) -> Item:
    rule = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": rule}}}


def term(*expressions: tuple[str, str, list[str]], field: tuple[str, list[str]] | None = None) -> Item:
    rules: Item = {"matchExpressions": [{"key": k, "operator": o, "values": v} for k, o, v in expressions]}
    if field:
        rules["matchFields"] = [{"key": "metadata.name", "operator": field[0], "values": field[1]}]
    return rules


ALLOWED = {
    "selector": ({"nodeSelector": {"zone": "a"}}, {"n1", "n2"}),
    "in": (affinity(term(("zone", "In", ["a", "c"]))), {"n1", "n2"}),
    "in and selector": ({"nodeSelector": {"zone": "a"}} | affinity(term(("zone", "In", ["b"]))), set()),
    "two expressions": (affinity(term(("zone", "In", ["a"]), ("rank", "In", ["2"]))), {"n2"}),
    "one key twice": (affinity(term(("zone", "In", ["a"]), ("zone", "In", ["a", "b"]))), {"n1", "n2"}),
    "not in, also without the label": (affinity(term(("zone", "NotIn", ["a"]))), {"n3", "n4"}),
    "exists": (affinity(term(("zone", "Exists", []))), {"n1", "n2", "n3"}),
    "does not exist": (affinity(term(("zone", "DoesNotExist", []))), {"n4"}),
    "greater": (affinity(term(("rank", "Gt", ["2"]))), {"n3"}),
    "less": (affinity(term(("rank", "Lt", ["3"]))), {"n1", "n2"}),
    "either term": (affinity(term(("zone", "In", ["b"])), term(("rank", "In", ["1"]))), {"n1", "n3"}),
    "by name": (affinity(term(field=("In", ["n2", "n9"]))), {"n2"}),
    "not by name": (affinity(term(("zone", "In", ["a"]), field=("NotIn", ["n2"]))), {"n1"}),
    "an empty term allows none": (affinity(term()), set()),
    "terms and selector": (
        {"nodeSelector": {"zone": "a"}} | affinity(term(("rank", "In", ["1"])), term(("rank", "In", ["3"]))),
        {"n1"},
    ),
}


@pytest.mark.parametrize(("spec", "allowed"), ALLOWED.values(), ids=ALLOWED)
def test_selectors_and_affinity(read: Read, spec: Item, allowed: set[str]) -> None:
    labels = {"n1": {"zone": "a", "rank": "1"}, "n2": {"zone": "a", "rank": "2"}, "n3": {"zone": "b", "rank": "3"}}
    request, _ = read(*(node(n, labels.get(n)) for n in ("n1", "n2", "n3", "n4")), pod("p", spec=spec))
    (podset,) = request.jobs[0].podsets
    may = {
        n.name
        for n in request.nodes
        if all(n.labels.get(k) in v for k, v in podset.selector.items())
        and n.name not in podset.not_nodes
        and (not podset.nodes or n.name in podset.nodes)
    }
    assert may == allowed


def test_rules_that_are_not_read_are_told(read: Read) -> None:
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}}
    spread = [{"maxSkew": 1, "topologyKey": "x"}]  # DoNotSchedule, the default
    late = [{"key": "a", "operator": "Gt", "value": "5"}]
    _, notes = read(
        node("n1"), pod("p", spec={"affinity": apart, "topologySpreadConstraints": spread, "tolerations": late})
    )
    for words in ("podAntiAffinity", "topologySpreadConstraints", "operator 'Gt'"):
        assert any(words in note for note in notes)


def test_wishes_and_amounts_of_zero_are_not_told(read: Read) -> None:
    wish = [{"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "ScheduleAnyway"}]
    none = {"resources": {"limits": {"rdma/ib": "0", "nvidia.com/mig-1g.10gb": "0"}}}
    _, notes = read(
        node("n1", room={"nvidia.com/mig-1g.10gb": "0"}),
        pod("p", spec={"topologySpreadConstraints": wish, "containers": [none]}),
    )
    assert notes == ()


def test_holds_are_sorted_by_node_and_keep_their_queue(read: Read) -> None:
    marks: Item = {"labels": {"job-name": "g", "kai.scheduler/queue": "q"}}
    request, _ = read(node("n1"), node("n2"), pod("a", on="n2", **marks), pod("b", on="n1", **marks))
    (allocation,) = request.allocations
    assert [h.node for h in allocation.holds] == ["n1", "n2"]
    assert (allocation.queue, allocation.tenant) == ("q", "ml")


RACKS = {"n1": ("b1", "r1"), "n2": ("b1", "r2"), "n3": ("b2", "r1")}


def racks(block: str, rack: str) -> list[Item]:
    return [node(n, {block: b, rack: r, "kubernetes.io/hostname": n}) for n, (b, r) in RACKS.items()]


@pytest.mark.parametrize(
    ("block", "rack", "levels"),
    [
        ("fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0", ("spine", "leaf")),
        ("fabric.topograph.run/tier-10", "fabric.topograph.run/tier-9", ("tier-10", "tier-9")),
        ("network.topology.nvidia.com/spine", "network.topology.nvidia.com/block", ("spine", "block")),
        ("topology.k8s.aws/network-node-layer-2", "topology.k8s.aws/network-node-layer-3", ("spine", "leaf")),
        ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock", ("block", "subblock")),
        ("backend.coreweave.cloud/superpod", "backend.coreweave.cloud/leafgroup", ("superpod", "leafgroup")),
        ("oci.oraclecloud.com/rdma.network_block_id", "oci.oraclecloud.com/rdma.local_block_id", None),
        ("topology.kubernetes.io/region", "topology.kubernetes.io/zone", ("region", "zone")),
        ("topology.kubernetes.io/zone", "nvidia.com/gpu.clique", ("zone", "hbd")),
    ],
)
def test_label_families(read: Read, block: str, rack: str, levels: tuple[str, str] | None) -> None:
    """A rack name that occurs in two blocks is two racks: the path is the identity."""
    request, notes = read(*racks(block, rack))
    assert request.fabric.levels == (levels or ("network_block", "local_block"))
    assert {n.name: n.path for n in request.nodes} == RACKS
    assert bool(notes) == (levels == ("zone", "hbd")), "clique r1 lies in two zones: told"


def test_a_topology_object_names_the_levels(read: Read) -> None:
    keys = ("example.com/block", "nvidia.com/gpu.clique", "kubernetes.io/hostname")
    topology = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Topology",
        "metadata": {"name": "default"},
        "spec": {"levels": [{"nodeLabel": key} for key in keys]},
    }
    wait = [
        pod("in-a-rack", annotations={"kueue.x-k8s.io/podset-required-topology": keys[1]}),
        pod("on-a-host", annotations={"kueue.x-k8s.io/podset-preferred-topology": keys[2]}),
    ]
    request, _ = read(topology, *racks(*keys[:2]), *wait)
    assert request.fabric.levels == ("block", "hbd"), "the clique is a level once"
    assert {n.name: n.path for n in request.nodes} == RACKS
    wanted = [(j.podsets[0].required_level, j.podsets[0].preferred_level) for j in request.jobs]
    assert wanted == [("hbd", None), (None, "node")]


def test_a_level_is_called_by_its_alias(read: Read) -> None:
    """KAI's Topology has aliases; two levels whose labels end alike are told apart by the whole label."""
    labels = {"a.com/rack": "r", "b.com/rack": "s", "c.com/x": "t"}
    levels = [{"nodeLabel": "c.com/x", "alias": "hall"}, {"nodeLabel": "a.com/rack"}, {"nodeLabel": "b.com/rack"}]
    topology = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"}}
    request, _ = read(topology | {"spec": {"levels": levels}}, node("n1", labels))
    assert request.fabric.levels == ("hall", "rack", "b.com/rack")
    assert request.nodes[0].path == ("t", "r", "s")


@pytest.mark.parametrize(("size", "fits"), [("2", True), ("4", True), ("3", False), ("0", False), ("two", False)])
def test_slices(read: Read, size: str, fits: bool) -> None:
    marks: Item = {
        "labels": {"job-name": "g"},
        "annotations": {
            "kueue.x-k8s.io/podset-slice-required-topology": "topology.kubernetes.io/zone",
            "kueue.x-k8s.io/podset-slice-size": size,
        },
    }
    zoned = node("n1", {"topology.kubernetes.io/zone": "z"})
    request, notes = read(zoned, *(pod(f"p{i}", **marks) for i in range(4)))
    if fits:
        (piece,) = request.jobs[0].podsets[0].slices
        assert (piece.level, piece.size) == ("zone", int(size))
    else:
        assert request.jobs == ()
        assert any("do not divide" in note and "ml/g" in note for note in notes)


# --- GPUs of several kinds, and parts of them ------------------------------------------------------------------------


def test_two_makers_are_two_pools(read: Read) -> None:
    amd = node("a", {"amd.com/gpu.product-name": "MI300X"}, gpus=0, room={"amd.com/gpu": "8"})
    asks = pod("p", gpus=0, spec={"containers": [{"resources": {"limits": {"amd.com/gpu": "2"}}}]})
    request, _ = read(amd, node("n"), asks)
    assert [(n.pools, n.gpus) for n in request.nodes] == [
        (("MI300X", "amd.com/gpu"), 8),
        (("default", "nvidia.com/gpu"), 8),
    ]
    assert (request.jobs[0].podsets[0].pools, request.jobs[0].podsets[0].gpus) == (("amd.com/gpu",), 2)
    request, _ = read(amd, asks)
    assert (request.nodes[0].pools, request.jobs[0].podsets[0].pools) == (("MI300X",), ())


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        ({"gpu-fraction": "0.25"}, "gpu_milli", 250),
        ({"gpu-fraction": "0.3333"}, "gpu_milli", 334),  # up: never less than asked for
        ({"gpu-fraction": "2"}, "gpus", 2),
        ({"gpu-fraction": "0"}, "gpus", 0),
        ({"gpu-memory": "2000"}, "gpu_memory_mib", 2000),
        ({"alibabacloud.com/gpu-milli": "500", "alibabacloud.com/gpu-count": "1"}, "gpu_milli", 500),
        ({"alibabacloud.com/gpu-milli": "1000", "alibabacloud.com/gpu-count": "2"}, "gpus", 2),
    ],
)
def test_shares_by_annotation(read: Read, annotations: dict[str, str], field: str, value: int) -> None:
    request, notes = read(
        node("n1", {"nvidia.com/gpu.memory": "81559"}),
        pod("waits", gpus=0, annotations=annotations),
        pod("runs", on="n1", gpus=0, annotations=annotations),
        pod("runs-there", on="n1", gpus=0, annotations={**annotations, "alibabacloud.com/gpu-index": "3"}),
    )
    assert request.nodes[0].gpu_memory_mib == 81559
    assert getattr(request.jobs[0].podsets[0], field) == value
    runs, there = (a.holds[0] for a in request.allocations)
    if field == "gpus":
        assert (runs.gpus, there.gpus) == (value, value)
    else:
        assert (runs.gpus, runs.gpu_milli) == (1, None), "which GPU is not told: a whole one, and a note"
        assert any("unknown GPU" in note and "ml/runs" in note for note in notes)
        assert (getattr(there, field), there.gpu_indices, there.gpus) == (value, (3,), 0)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"spec": {"unschedulable": True}}, "cordoned"),
        ({"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletDown"}]}, "KubeletDown"),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, "Unknown"),
        ({"conditions": [{"type": "Ready"}]}, "not told"),
        ({"conditions": [{"type": "MemoryPressure", "status": "False"}]}, ""),
        ({}, ""),
    ],
)
def test_closed_nodes(read: Read, fields: Item, why: str) -> None:
    request, _ = read(node("n1", **fields))
    assert request.nodes[0].schedulable == (not why)
    assert why in request.nodes[0].why_closed


def test_a_node_that_is_being_deleted_is_closed(read: Read) -> None:
    item = node("n1")
    item["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read(item)[0].nodes[0].why_closed == "being deleted"


def test_taints_keep_value_and_effect(read: Read) -> None:
    taint = {"key": "team", "value": "a", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    request, _ = read(node("n1", spec={"taints": [taint]}))
    assert request.nodes[0].taints == (Taint(key="team", value="a", effect="NoExecute"),)


def test_capacity_stands_in_for_allocatable(read: Read) -> None:
    item = node("n1", gpus=6)
    item["status"]["capacity"] = item["status"].pop("allocatable")
    assert read(item)[0].nodes[0].gpus == 6


def test_an_empty_label_is_no_domain(read: Read) -> None:
    zones = [node(f"n{i}", {"topology.kubernetes.io/zone": z}) for i, z in enumerate(("a", "a", ""))]
    assert [n.path for n in read(*zones)[0].nodes] == [("a",), ("a",), (None,)]


def test_typed_lists_may_leave_kinds_out(tmp_path: Path) -> None:
    """As the API server answers: the items of a NodeList have no kind."""
    for kind, item in (("Node", node("n1")), ("Pod", pod("p", on="n1"))):
        del item["kind"]
        (tmp_path / f"{kind}.json").write_text(json.dumps({"apiVersion": "v1", "kind": f"{kind}List", "items": [item]}))
    assert free_gpus(read_request(tmp_path)[0]) == {"n1": 4}


def test_a_named_format_needs_no_telling_beginning(tmp_path: Path) -> None:
    long = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"x": "y" * 100_000}}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all([long, node("n1")]))
    assert free_gpus(read_request(tmp_path / "all.yaml", format="kubernetes")[0]) == {"n1": 8}
