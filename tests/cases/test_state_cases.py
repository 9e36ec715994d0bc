"""Cases E (those without a clock), F, G and H: reasons, the size of a "no", and the state of the cluster."""

from __future__ import annotations

import cProfile
import json
import pstats
import re
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from pydantic import ValidationError

from kant_opt.engine import Session
from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric
from kant_opt.io import read_request
from kant_opt.schema import (
    Allocation,
    FabricSpec,
    Hold,
    Job,
    Link,
    Node,
    PodSet,
    Reason,
    Request,
    Slice,
    Switch,
    Taint,
)
from kant_opt.testing.builders import gang, podset, racks, running
from kant_opt.verify import verify

from .answers import pods, refused, solve, solve_best


def causes(reason: Reason) -> dict[str, int]:
    return {cause.cause: cause.nodes for cause in reason.causes}


# -- E: what needs no clock ----------------------------------------------------------------------


def test_e4_an_impossible_job_blocks_nobody() -> None:
    """70 CPUs fit on no node of 50, now or ever; the job after it fits."""
    nodes = tuple(Node(name=f"n{i}", cpu_milli=50_000) for i in range(2))
    jobs = (gang("big", 1, 0, cpu_milli=70_000, priority=1), gang("small", 1, 0, cpu_milli=50_000))
    outcome = solve(Request(nodes=nodes, jobs=jobs))
    assert [(r.job, r.kind, r.short) for r in outcome.reasons] == [("big", "impossible", "CPU")]
    assert sum(pods(outcome, "small").values()) == 1


def test_e18_a_podset_without_pods_is_accepted() -> None:
    """Nothing is asked for, so nothing is placed and nothing refused; beside it the other podset is placed."""
    job = Job(name="a", podsets=(podset("none", 0), podset("one", 1)))
    outcome = solve_best(racks("1", jobs=[job]))
    assert outcome.reasons == ()
    assert pods(outcome, "a") == {"r1n1": 1}
    assert solve_best(racks("1", jobs=[gang("a", 0)])).reasons == ()


# -- F: reasons ----------------------------------------------------------------------------------


def test_f1_counts_per_cause_add_up() -> None:
    """16 hosts, each wrong in one way: 3 tainted, 5 with too few GPUs, 8 in another zone."""
    bad: list[dict[str, Any]] = [
        *[{"taints": (Taint(key="infra"),)}] * 3,
        *[{"gpus": 4}] * 5,
        *[{"labels": {"zone": "b"}}] * 8,
    ]
    good = {"gpus": 8, "labels": {"zone": "a"}}
    nodes = tuple(Node(name=f"n{i:02}", **(good | odd)) for i, odd in enumerate(bad))
    reason = refused(solve(Request(nodes=nodes, jobs=(gang("a", 16, 8, selector={"zone": ("a",)}),))))
    assert causes(reason) == {"taint infra": 3, "too few GPUs in all": 5, "label zone": 8}
    assert sum(causes(reason).values()) == 16


def test_f2_the_resource_that_is_used_up_is_named() -> None:
    """All 8 GPUs are held, CPU is plenty."""
    host = Node(name="h", gpus=8, cpu_milli=64_000)
    held = (running("old", {"h": 8}),)
    reason = refused(solve_best(Request(nodes=(host,), allocations=held, jobs=(gang("a", 1, cpu_milli=1000),))))
    assert (reason.kind, reason.short, causes(reason)) == ("not_now", "GPU", {"no GPU free": 1})
    assert reason.blockers == ("h (old)",)


def slices_in_15_and_7() -> Request:
    nodes = [Node(name=f"{b}n{i}", path=(b,), gpus=4) for b, size in (("b0", 15), ("b1", 7)) for i in range(size)]
    job = gang("a", 16, 4, slices=(Slice(level="leaf", size=8),))
    return Request(fabric=FabricSpec(levels=("leaf",)), nodes=tuple(nodes), jobs=(job,))


def test_f3_fit_is_told_in_slices() -> None:
    """b0 holds floor(15 / 8) = 1 slice of 2, and b1 none."""
    reason = refused(solve(slices_in_15_and_7()))
    (fit,) = (fit for fit in reason.fits if fit.level == "leaf")
    assert (fit.domain, fit.fits, fit.needed, fit.unit) == (("b0",), 1, 2, "slices")


def test_f3_the_sentence_tells_slices_too() -> None:
    """22 nodes are free for 16 pods: a sentence that names no slice explains nothing."""
    assert "1 of 2 slices" in refused(solve(slices_in_15_and_7())).sentence


def test_f4_one_reason_per_gang() -> None:
    """40 pods in two podsets that do not fit: one structured reason, one sentence that names the job."""
    job = Job(name="a", podsets=(podset("p", 30), podset("q", 10)))
    outcome = solve(racks("8,8|8,8", jobs=[job, gang("b", 33)]))
    assert [r.job for r in outcome.reasons] == ["a", "b"]
    for reason in outcome.reasons:
        assert reason.sentence.startswith(f"job {reason.job!r} needs ")
        assert "\n" not in reason.sentence
        assert sum(causes(reason).values()) == 4


def test_f6_reasons_are_part_of_the_answer() -> None:
    """Read from the written outcome, not from a log: kind, level, best domain and counts are there."""
    outcome = solve_best(racks("2|1", jobs=[gang("a", 3, required_level="rack")]))
    written = json.loads(outcome.model_dump_json())["reasons"][0]
    assert (written["kind"], written["short"]) == ("impossible", "level rack")
    assert written["fits"][0] == {"level": "rack", "domain": ["r1"], "fits": 2, "needed": 3, "unit": "pods"}
    assert sum(cause["nodes"] for cause in written["causes"]) == 2


# -- G: the size of an answer --------------------------------------------------------------------


def test_g3_no_is_counted_not_searched() -> None:
    """500 full nodes: refused for want of GPUs on all 500, in milliseconds; a second allows for a busy machine."""
    nodes = tuple(Node(name=f"n{i:03}", path=(f"r{i // 20}",), gpus=8) for i in range(500))
    held = tuple(running(f"old{i}", {n.name: 8}) for i, n in enumerate(nodes))
    jobs = (
        gang("a", 16, 8),
        gang("b", 4, 8, required_level="rack"),
        Job(name="c", podsets=(podset("p", 2), podset("q", 3, 2))),
    )
    request = Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, allocations=held, jobs=jobs)
    started = perf_counter()
    outcome = solve(request)
    assert perf_counter() - started < 2
    assert [r.kind for r in outcome.reasons] == ["not_now"] * 3
    assert all(sum(causes(r).values()) == 500 for r in outcome.reasons)
    assert outcome.status == "INFEASIBLE"


def evaluations(job: Job, nodes: int) -> dict[str, int]:
    """Return how often all nodes are looked at to place one job on empty nodes of 8 GPUs, by function."""
    empty = tuple(Node(name=f"n{i:04}", path=(f"r{i // 8}",), gpus=8) for i in range(nodes))
    session = Session(Request(fabric=FabricSpec(levels=("rack",)), nodes=empty))
    profile = cProfile.Profile()
    assert profile.runcall(session.place, job) is not None
    assert session.verify() == ()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {name: calls for (_, _, name), (_, calls, *_) in stats.items() if name in ("slots", "capacities")}


def test_g7_nodes_are_looked_at_once_for_all_alike_pods() -> None:
    """1,000 pods are one class: the nodes are evaluated as often as for 10 pods, and not once per pod."""
    once = evaluations(gang("a", 10), 128)
    assert once["slots"] >= 1, "counted by name: it must be there to be counted"
    assert evaluations(gang("a", 1000), 128) == once
    assert evaluations(gang("a", 1000), 1024) == once


# -- H: nodes, capacity, replacement -------------------------------------------------------------


def test_h1_more_used_than_there_is() -> None:
    """8 GPUs are held of 6 that are left: free is 0, not 6 - 8 + 8; the running pods stay and the node is flagged."""
    held = (Allocation(job="old", holds=(Hold(node="h", gpus=8),)),)
    outcome = solve_best(Request(nodes=(Node(name="h", gpus=6),), allocations=held, jobs=(gang("a", 1),)))
    assert refused(outcome).kind == "not_now"
    assert [(f.subject, f.text) for f in outcome.flags] == [("h", "over-committed by 2 GPUs; running pods stay")]


def test_h2_over_committed_in_one_resource() -> None:
    """GPUs are free but CPU is used beyond what there is: closed for pods that need CPU, and the flag says so."""
    host = Node(name="h", gpus=8, cpu_milli=4000)
    held = (Allocation(job="old", holds=(Hold(node="h", gpus=1, cpu_milli=5000),)),)
    outcome = solve_best(Request(nodes=(host,), allocations=held, jobs=(gang("a", 1, cpu_milli=1),)))
    assert refused(outcome).short == "CPU"
    assert [f.subject for f in outcome.flags] == ["h"]


def test_h2_the_flag_tells_cpus() -> None:
    """5 CPUs are held of 4."""
    held = (Allocation(job="old", holds=(Hold(node="h", cpu_milli=5000),)),)
    (flag,) = solve(Request(nodes=(Node(name="h", cpu_milli=4000),), allocations=held)).flags
    assert re.search(r"by 1 CPU\b", flag.text)


def test_h3_two_leaves_with_the_same_nodes_in_a_tree(tmp_path: Path) -> None:
    """A tree gives each node one leaf: the file is refused, with a name from each of the two."""
    (tmp_path / "topology.conf").write_text(
        "SwitchName=root Switches=left,right\nSwitchName=left Nodes=n[1-2]\nSwitchName=right Nodes=n[1-2]\n"
    )
    with pytest.raises(InputError, match="left") as caught:
        read_request(tmp_path)
    assert "right" in str(caught.value)


def test_h3_two_leaves_with_the_same_nodes_in_a_graph() -> None:
    """In a graph they are two rails of one unit: one domain, and its nodes count once."""
    links = tuple(Link(a=rail, b=node) for rail in ("left", "right") for node in ("n1", "n2"))
    spec = FabricSpec(switches=(Switch(name="left"), Switch(name="right")), links=links)
    request = Request(fabric=spec, nodes=(Node(name="n1", gpus=8), Node(name="n2", gpus=8)), jobs=(gang("a", 3, 8),))
    fabric = build_fabric(spec, request.nodes)
    (unit,) = fabric.domains(fabric.levels[0])
    assert fabric.nodes_of(unit) == ("n1", "n2")
    assert refused(solve_best(request)).fits[0].fits == 2


FREE = {  # GPUs that the README of the data folder says are free, pods that tolerate every taint
    "gb200-r0-n2": 4,
    "gb200-r0-n3": 4,
    "gb200-r1-n0": 4,
    "gb200-r1-n1": 4,
    "h100-n0": 8,
    "h100-n2": 2,
    "h100-n3": 8,
}


def fill(request: Request, **rules: Any) -> dict[str, int]:
    """Return node -> one-GPU pods that an elastic gang finds room for."""
    job = gang("fill", 100, min_count=1, **rules)
    return pods(solve(request.model_copy(update={"jobs": (job,), "groups": ()})), "fill")


@pytest.fixture
def kubernetes(shared: Path, tmp_path: Path) -> Request:
    for name in ("synthetic-nodelist.json", "synthetic-podlist.json"):
        (tmp_path / name).write_text((shared / "formats" / "k8s-nodes" / name).read_text())
    return read_request(tmp_path)[0]


def test_h4_free_gpus_of_a_kubernetes_cluster(kubernetes: Request) -> None:
    """Cordoned and unreachable nodes take nothing, and an elastic gang that tolerates all fills what is listed."""
    assert fill(kubernetes, tolerations=({"operator": "Exists"},)) == FREE


def test_h4_taints_bind_pods_without_tolerations(kubernetes: Request) -> None:
    """The same pods without tolerations find only nodes without a taint that forbids them."""
    barred = {n.name for n in kubernetes.nodes if any(t.effect != "PreferNoSchedule" for t in n.taints)}
    assert barred & set(FREE)
    job = gang("fill", 1, nodes=tuple(sorted(barred)))
    assert refused(solve(kubernetes.model_copy(update={"jobs": (job,), "groups": ()}))).kind == "impossible"


def test_h5_taints_count_whatever_the_innermost_level() -> None:
    """The rack is the innermost level that anybody names; its tainted node is none of the two that are needed."""
    nodes = (Node(name="n1", path=("r1",), gpus=8), Node(name="n2", path=("r1",), gpus=8, taints=(Taint(key="t"),)))
    request = Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, jobs=(gang("a", 2, 8, required_level="rack"),))
    assert causes(refused(solve_best(request))) == {"taint t": 1, "could hold a pod": 1}


def test_h6_a_rack_that_comes_back_leaves_no_ghost() -> None:
    """A state is a document: without r2 the gang waits, with it the answer is that of a fresh import."""
    request = racks("2|4", jobs=[gang("a", 4, required_level="rack")])
    before = solve_best(request)
    without = request.model_copy(update={"nodes": request.nodes[:1]})
    assert refused(solve_best(without)).kind == "impossible"
    fresh = Request.model_validate_json(request.model_dump_json(by_alias=True))
    assert solve(fresh).placement == before.placement == solve(request).placement
    assert pods(before, "a") == {"r2n1": 4}


def test_h7_bytes_and_shares_are_exact() -> None:
    """2**50 bytes hold two halves, and no pod more by one byte: 32 bits or floats would not tell."""
    half = 1 << 49
    host = Node(name="h", gpus=2, memory_bytes=2 * half)
    assert pods(solve_best(Request(nodes=(host,), jobs=(gang("a", 2, memory_bytes=half),))), "a") == {"h": 2}
    refused(solve_best(Request(nodes=(host,), jobs=(gang("a", 2, memory_bytes=half + 1),))))


def test_h8_freed_room_is_free_once() -> None:
    """A job of 3 ends on a host of 8: then 8 are free, neither 5 nor 11; ending it again is refused."""
    session = Session(racks("8"))
    assert session.place(gang("old", 3)) is not None
    assert session.place(gang("a", 6)) is None
    session.release("old")
    with pytest.raises(UnknownName):
        session.release("old")
    assert session.place(gang("b", 9)) is None
    assert session.place(gang("a", 8)) is not None
    assert session.verify() == ()


def without_hosts(request: Request, *failed: str) -> Request:
    nodes = tuple(n.model_copy(update={"schedulable": n.name not in failed}) for n in request.nodes)
    return request.model_copy(update={"nodes": nodes})


def test_h10_only_the_failed_pods_are_replaced() -> None:
    """Two of four hosts failed; their two pods go to the spares of the same rack, the others stay."""
    living = running("a", {"r1n1": 1, "r1n2": 1}, gpus=8)
    job = gang("a", 4, 8, required_level="rack")
    request = racks("8,8,8,8,8,8|8,8,8,8,8,8", jobs=[job], allocations=(living,))
    assert pods(solve_best(without_hosts(request, "r1n3", "r1n4")), "a") == {"r1n5": 1, "r1n6": 1}


def half_a_slice(spare_in_r1: int) -> Request:
    """Two racks of 2 hosts and a spare, slices of 2; a host of r1 failed and its pod is to be replaced."""
    living = running("a", {"r1n1": 1, "r2n1": 1, "r2n2": 1}, gpus=8)
    used = (running("other", {"r1n3": 1}, gpus=8),) if not spare_in_r1 else ()
    job = gang("a", 4, 8, slices=(Slice(level="rack", size=2),))
    return without_hosts(racks("8,8,8|8,8,8", jobs=[job], allocations=(living, *used)), "r1n2")


def test_h11_the_replacement_completes_the_broken_slice() -> None:
    """r1 holds half a slice, r2 a whole one: only the spare of r1 makes both racks multiples of 2."""
    assert pods(solve_best(half_a_slice(1)), "a") == {"r1n3": 1}


def test_h12_a_spare_in_use_is_no_spare() -> None:
    """With the spare of r1 taken the pod waits: on r2's it would make slices of 1 and 3."""
    reason = refused(solve_best(half_a_slice(0)))
    assert reason.kind == "not_now"


@pytest.mark.parametrize("count", [23, 24])
def test_h14_gpu_memory_is_shared_by_the_mib(count: int) -> None:
    """46,068 // 2,000 = 23, while a share rounded to two digits, 0.04, would let 25 in."""
    node = Node(name="n", gpus=1, gpu_memory_mib=46_068)
    outcome = solve(Request(nodes=(node,), jobs=(gang("a", count, 0, gpu_memory_mib=2000),)))
    assert pods(outcome, "a") == ({"n": 23} if count == 23 else {})
    if count == 24:
        assert refused(outcome).kind == "impossible"


def test_h17_slices_of_none_are_refused() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        PodSet(count=4, slices=(Slice(level="rack", size=0),))


def test_h19_aggregates_follow_the_file(tmp_path: Path) -> None:
    """Blocks b1, b10, b2 in this order: b1 and b10 are neighbours, so 4 nodes fit in one aggregate of them alone."""
    lines = "".join(f"BlockName={b} Nodes={b}n[1-2]\n" for b in ("b1", "b10", "b2"))
    (tmp_path / "topology.conf").write_text(lines + "BlockSizes=2,4\n")
    live = [{"name": f"{b}n{i}", "state": ["IDLE"], "gres": "gpu:8"} for b in ("b1", "b10", "b2") for i in (1, 2)]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": live, "meta": {"slurm": {}}}))
    request, _ = read_request(tmp_path)
    outer = request.fabric.levels[0]
    outcome = solve(request.model_copy(update={"jobs": (gang("a", 4, 8, required_level=outer),)}))
    assert {node.rsplit("n", 1)[0] for node in pods(outcome, "a")} == {"b1", "b10"}


def test_h20_a_node_of_the_topology_without_live_record(tmp_path: Path) -> None:
    """As A20, for a block: b1 keeps two nodes, one of them closed."""
    (tmp_path / "topology.conf").write_text("BlockName=b1 Nodes=n[1-2]\nBlockSizes=2\n")
    live = {"nodes": [{"name": "n2", "state": ["IDLE"], "gres": "gpu:8"}], "meta": {"slurm": {}}}
    (tmp_path / "nodes.json").write_text(json.dumps(live))
    request, _ = read_request(tmp_path)
    assert {n.name: (n.path, n.schedulable) for n in request.nodes} == {"n1": (("b1",), False), "n2": (("b1",), True)}


ASKED = {"gres": 4, "multi-nodes": 8, "type": 1, "per-node": 2, "per-socket": 2, "per-task": 4, "multi-types": 1}
"""GPUs that recorded Slurm jobs hold, by the words of their submit lines."""


@pytest.mark.parametrize("name", ASKED)
def test_h21_gpus_of_recorded_jobs(shared: Path, name: str) -> None:
    """`tres_req_str` names no GPU, in any of them: the number stands in the field of the option that was used."""
    path = shared / "formats" / "slurm-json" / "25.11-v0.0.44" / f"slurm-job-gpus-{name}.json"
    assert "gpu" not in json.loads(path.read_text())["jobs"][0]["tres_req_str"]
    request, _ = read_request(path)
    assert sum(hold.gpus for a in request.allocations for hold in a.holds) == ASKED[name]


def test_h22_a_node_listed_twice_is_one_node(shared: Path) -> None:
    path = shared / "formats" / "slurm-json" / "25.05-v0.0.43" / "sinfo-N.json"
    told = re.findall(r"node\d+", json.dumps(json.loads(path.read_text())["sinfo"]))
    request, _ = read_request(path)
    assert [n.name for n in request.nodes] == sorted(set(told))


def test_h24_a_host_in_other_hands_is_closed() -> None:
    """The GPU is held by a pod that no queue knows: again and again the job waits, and the reason names the pod."""
    held = (running("stray", {"h": 1}),)
    request = Request(nodes=(Node(name="h", gpus=1),), allocations=held, jobs=(gang("a", 1),))
    for _ in range(2):
        reason = refused(solve_best(request))
        assert (reason.kind, reason.blockers) == ("not_now", ("h (stray)",))


def test_h25_what_no_longer_holds_is_listed() -> None:
    """Planned on an empty cluster; meanwhile another scheduler fills one host. The other job keeps its place."""
    jobs = [gang("a", 1, 8), gang("b", 1, 8)]
    planned = solve_best(racks("8,8,8", jobs=jobs)).placement
    assert planned is not None
    lost = planned.jobs[0].nodes[0]
    later = racks("8,8,8", jobs=jobs, allocations=(running("stray", {lost: 8}),))
    assert {(v.rule, v.subject) for v in verify(later, planned)} == {("capacity", lost)}
    kept = running("b", {planned.jobs[1].nodes[0]: 1}, gpus=8)
    again = solve_best(racks("8,8,8", jobs=jobs, allocations=(*later.allocations, kept)))
    assert set(pods(again, "a")).isdisjoint({lost, *planned.jobs[1].nodes})
    assert again.reasons == ()


def test_h26_a_graph_of_rails_gives_its_units(shared: Path) -> None:
    """Five units of 3, 6, 3, 2 and 2 hosts, counted in the tree that the fabric's own tool made of the graph."""
    folder = shared / "formats" / "slurm-topology-azure"
    ports = re.findall(r"^(\S+): (\S+)$", (folder / "nodes_guids.txt").read_text(), re.M)
    host_of = {port: host for host, port in ports}
    lines = re.findall(r"^SwitchName=(\S+) (?:Nodes|Switches)=(\S+)$", (folder / "topology.txt").read_text(), re.M)
    switches = tuple(Switch(name=name) for name in dict.fromkeys(name for name, _ in lines))
    links = tuple(Link(a=name, b=host_of.get(end, end)) for name, ends in lines for end in ends.split(","))
    nodes = tuple(Node(name=host, gpus=8) for host in sorted(set(host_of.values())))
    request = Request(fabric=FabricSpec(switches=switches, links=links), nodes=nodes)
    fabric = build_fabric(request.fabric, request.nodes)
    unit = fabric.levels[-2]
    assert sorted(len(fabric.nodes_of(d)) for d in fabric.domains(unit)) == sorted([3, 6, 3, 2, 2])
    largest = request.model_copy(update={"jobs": (gang("six", 6, 8, required_level=unit),)})
    assert len(pods(solve(largest), "six")) == 6
    more = request.model_copy(update={"jobs": (gang("seven", 7, 8, required_level=unit),)})
    assert refused(solve(more)).kind == "impossible"
