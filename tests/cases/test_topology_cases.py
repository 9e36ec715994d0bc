"""Cases A: gangs and the domains they fit in, or do not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kant_opt.fabric import build_fabric
from kant_opt.io import read_request
from kant_opt.schema import (
    FabricSpec,
    Job,
    JobGroup,
    Node,
    Outcome,
    PodSet,
    Queue,
    Quota,
    Request,
    Slice,
    Taint,
    Together,
    Toleration,
)
from kant_opt.testing.builders import gang, podset, racks

from .answers import pods, refused, solve, solve_best

GIB = 1 << 30
ONE_RACK = FabricSpec(levels=("rack",))


def domains(request: Request, outcome: Outcome, job: str, depth: int = 0) -> dict[str, int]:
    """Return domain -> pods of a job, on the level at `depth` from outside."""
    path_of = {node.name: node.path for node in request.nodes}
    found: Counter[str] = Counter()
    for node, count in pods(outcome, job).items():
        found[str(path_of[node][depth])] += count
    return dict(found)


def blocks(*sizes: int, gpus: int = 1, level: str = "block", **fields: object) -> Request:
    """Return blocks b1, b2, ... of so many free nodes."""
    nodes = [Node(name=f"b{b}n{n}", path=(f"b{b}",), gpus=gpus) for b, size in enumerate(sizes, 1) for n in range(size)]
    return Request.model_validate({"fabric": FabricSpec(levels=(level,)), "nodes": tuple(nodes), **fields})


def test_a1_leader_on_the_three_cpu_host() -> None:
    """9 CPUs are asked of 9: nothing may be wasted, and only the odd host can take the odd leader without waste."""
    nodes = tuple(Node(name=f"h{c}", path=("r",), cpu_milli=1000 * c) for c in (2, 4, 3))
    leader = podset("leader", 1, 0, cpu_milli=1000, required_level="rack")
    workers = podset("workers", 4, 0, cpu_milli=2000, required_level="rack")
    request = Request(fabric=ONE_RACK, nodes=nodes, jobs=(Job(name="a", podsets=(leader, workers)),))
    outcome = solve_best(request)
    assert pods(outcome, "a", "leader") == {"h3": 1}
    assert pods(outcome, "a", "workers") == {"h2": 1, "h4": 2, "h3": 1}


def test_a2_the_leader_has_a_selector_of_its_own() -> None:
    """Rack r1 has GPUs for the workers alone, rack r2 a head for the leader too; for the workers both would do."""
    nodes = (
        *(Node(name=f"r1g{i}", path=("r1",), gpus=8, cpu_milli=8000) for i in (1, 2)),
        *(Node(name=f"r2g{i}", path=("r2",), gpus=8, cpu_milli=8000) for i in (1, 2)),
        Node(name="r2h", path=("r2",), cpu_milli=1000, labels={"role": "head"}),
    )
    leader = PodSet(name="leader", count=1, cpu_milli=1000, selector={"role": ("head",)})
    job = Job(name="a", podsets=(leader, podset("workers", 2, 8)), together=(Together(level="rack"),))
    outcome = solve_best(Request(fabric=ONE_RACK, nodes=nodes, jobs=(job,)))
    assert pods(outcome, "a", "leader") == {"r2h": 1}
    assert pods(outcome, "a", "workers") == {"r2g1": 1, "r2g2": 1}


def test_a3_only_the_leader_tolerates_the_taint() -> None:
    """Each host takes one pod; the workers may not go to t, so the leader must."""
    taint = Taint(key="head")
    nodes = (
        Node(name="t", path=("r",), gpus=8, taints=(taint,)),
        Node(name="w1", path=("r",), gpus=8),
        Node(name="w2", path=("r",), gpus=8),
    )
    leader = podset("leader", 1, 8, tolerations=(Toleration(key="head", operator="Exists"),))
    job = Job(name="a", podsets=(leader, podset("workers", 2, 8)), together=(Together(level="rack"),))
    outcome = solve_best(Request(fabric=ONE_RACK, nodes=nodes, jobs=(job,)))
    assert pods(outcome, "a", "leader") == {"t": 1}
    assert pods(outcome, "a", "workers") == {"w1": 1, "w2": 1}


def test_a4_free_gpus_that_no_host_has_together() -> None:
    """8 GPUs are free and 8 are asked for, but by one pod, and a pod does not span hosts."""
    request = racks("1,1,1,1,1,1,1,1", gpus_total=8, jobs=[gang("a", 1, 8)])
    outcome = solve_best(request)
    reason = refused(outcome)
    assert outcome.status == "INFEASIBLE"
    assert (reason.kind, reason.short) == ("not_now", "GPUs"), "an empty host would hold it"
    assert {c.cause: c.nodes for c in reason.causes} == {"no GPUs free": 8}
    assert [(fit.level, fit.fits, fit.needed) for fit in reason.fits] == [("rack", 0, 1), ("node", 0, 1)]


def test_a4_the_sentence_says_how_near_the_best_host_comes() -> None:
    """0 of 1 pods is all that counting pods can say; what helps the user is 1 of 8 GPUs."""
    assert "1 of 8" in refused(solve(racks("1,1,1,1,1,1,1,1", gpus_total=8, jobs=[gang("a", 1, 8)]))).sentence


def test_a4_hosts_that_could_never_hold_the_pod() -> None:
    """The same with hosts of one GPU in all: no waiting helps."""
    reason = refused(solve_best(racks("1,1,1,1,1,1,1,1", jobs=[gang("a", 1, 8)])))
    assert reason.kind == "impossible"
    assert {c.cause: c.nodes for c in reason.causes} == {"too few GPUs in all": 8}


def test_a5_ten_of_twelve_pods_fit() -> None:
    """60 CPUs and 100 GiB cover 48 and 96, but a node of 6 CPUs holds one pod of 4."""
    nodes = tuple(Node(name=f"n{i}", cpu_milli=6000, memory_bytes=10 * GIB) for i in range(10))
    job = gang("a", 12, 0, cpu_milli=4000, memory_bytes=8 * GIB)
    reason = refused(solve(Request(nodes=nodes, jobs=(job,))))
    assert (reason.kind, reason.short) == ("impossible", "nodes")
    assert "10 of 12 fit" in reason.sentence
    assert sum(c.nodes for c in reason.causes) == 10
    smaller = gang("a", 10, 0, cpu_milli=4000, memory_bytes=8 * GIB)
    assert len(pods(solve(Request(nodes=nodes, jobs=(smaller,))), "a")) == 10


@pytest.mark.parametrize(
    ("names", "turned"),
    [
        ("ab", False),
        ("ab", True),
        ("ba", False),
        ("ba", True),
    ],
)
def test_a6_the_large_pod_gets_the_large_node(names: str, turned: bool) -> None:
    """50 fits on 53 only, then 30 must go to 31; neither names nor the order given may matter."""
    large, small = names[0], names[1]
    nodes = [Node(name=large, cpu_milli=53_000), Node(name=small, cpu_milli=31_000)]
    jobs = [gang("x", 1, 0, cpu_milli=30_000), gang("y", 1, 0, cpu_milli=50_000)]
    outcome = solve(Request(nodes=tuple(nodes[:: -1 if turned else 1]), jobs=tuple(jobs[:: -1 if turned else 1])))
    assert (pods(outcome, "x"), pods(outcome, "y")) == ({small: 1}, {large: 1})


def test_a9_the_rack_that_is_half_full() -> None:
    """Both racks hold the gang; r1 is then full and r2 stays whole, so no node and no rack is broken."""
    request = racks("1,1|2,2", gpus_total=2, jobs=[gang("a", 2, 1, required_level="rack")])
    assert pods(solve_best(request), "a") == {"r1n1": 1, "r1n2": 1}


def test_a10_quota_cuts_to_whole_partitions() -> None:
    """20 CPUs pay for 10 pods of 2, but 10 is no multiple of 3; 9 is the most, and at least 6 (two partitions)."""
    nodes = tuple(Node(name=f"n{i}", path=("r",), cpu_milli=12_000) for i in range(2))
    queue = Queue(name="q", quotas=(Quota(resource="cpu_milli", guaranteed=20_000),))
    job = gang("a", 12, 0, cpu_milli=2000, min_count=6, slices=(Slice(level="rack", size=3),), queue="q")
    outcome = solve(Request(fabric=ONE_RACK, nodes=nodes, queues=(queue,), jobs=(job,)))
    assert sum(pods(outcome, "a").values()) == 9


def test_a11_sub_gangs_without_a_level_are_placed() -> None:
    """Two groups of 2 on four free GPUs in two racks: nothing is required but room."""
    job = Job(name="a", podsets=(podset("g1", 2), podset("g2", 2)))
    outcome = solve_best(racks("1,1|1,1", jobs=[job]))
    assert [sum(pods(outcome, "a", g).values()) for g in ("g1", "g2")] == [2, 2]


def test_a13_what_only_some_nodes_have() -> None:
    """A label stands for the device: the pod goes to the node that has it, though the other has room too."""
    nodes = (Node(name="n2", gpus=8), Node(name="n1", gpus=8, labels={"rdma": "4"}))
    job = gang("a", 1, 1, selector={"rdma": ("4",)})
    assert pods(solve_best(Request(nodes=nodes, jobs=(job,))), "a") == {"n1": 1}


def test_a14_pods_of_different_shapes_on_one_host() -> None:
    """GPUs 0 + 4 x 2 = 8 of 8, CPUs 32 + 4 x 8 = 64 of 64: each resource adds up exactly."""
    host = Node(name="h", gpus=8, cpu_milli=64_000)
    lead = podset("lead", 1, 0, cpu_milli=32_000)
    job = Job(name="a", podsets=(lead, podset("work", 4, 2, cpu_milli=8000)))
    outcome = solve_best(Request(nodes=(host,), jobs=(job,)))
    assert (pods(outcome, "a", "lead"), pods(outcome, "a", "work")) == ({"h": 1}, {"h": 4})


def test_a15_segments_of_twelve_in_blocks_of_seventeen() -> None:
    """A block of 17 holds one segment of 12, not two: three segments take three blocks, 12 each."""
    request = blocks(17, 17, 17, jobs=(gang("a", 36, 1, slices=(Slice(level="block", size=12),)),))
    assert domains(request, solve(request), "a") == {"b1": 12, "b2": 12, "b3": 12}


def test_a16_sixteen_of_each_domain_of_eighteen() -> None:
    """A domain of 18 holds one slice of 16, so eight slices take all eight."""
    request = blocks(*[18] * 8, jobs=(gang("a", 128, 1, slices=(Slice(level="block", size=16),)),))
    assert domains(request, solve(request), "a") == {f"b{i}": 16 for i in range(1, 9)}


@pytest.mark.parametrize(("count", "split"), [(24, [12, 12]), (32, [16, 16]), (48, [16, 16, 16])])
def test_a16_an_even_split_over_the_fewest_domains(count: int, split: list[int]) -> None:
    """ceil(count / 18) domains are the fewest, and over these the split is even."""
    assert len(split) == -(-count // 18)
    request = blocks(*[18] * 8, jobs=(gang("a", count, 1, preferred_level="block", balance=True),))
    assert sorted(domains(request, solve(request), "a").values()) == split


def test_a17_slices_inside_blocks() -> None:
    """12 free nodes hold one slice of 8: one slice each, though 12 + 4 would fill a block."""
    job = gang("a", 16, 4, slices=(Slice(level="block", size=8),))
    request = blocks(12, 12, gpus=4, jobs=(job,))
    assert domains(request, solve(request), "a") == {"b1": 8, "b2": 8}


def test_a17_one_slice_of_two() -> None:
    """22 nodes are free for 16, but 15 hold one slice of 8 and 7 none."""
    job = gang("a", 16, 4, slices=(Slice(level="block", size=8),))
    reason = refused(solve(blocks(15, 7, gpus=4, jobs=(job,))))
    (fit,) = (fit for fit in reason.fits if fit.level == "block")
    assert (fit.domain, fit.fits, fit.needed, fit.unit) == (("b1",), 1, 2, "slices")
    assert reason.kind == "impossible"
    assert sum(c.nodes for c in reason.causes) == 22


def test_a18_no_job_spans_two_fabrics_unless_it_may() -> None:
    """Six hosts are there, but four in each fabric, and nothing links the two."""
    nodes = tuple(Node(name=f"f{f}n{n}", path=(f"f{f}",), gpus=1) for f in (1, 2) for n in range(4))
    forest = FabricSpec(levels=("fabric",), separate_roots=True)
    request = Request(fabric=forest, nodes=nodes, jobs=(gang("a", 6),))
    reason = refused(solve_best(request))
    assert [(f.fits, f.needed) for f in reason.fits if f.level == "fabric"] == [(4, 6)]
    allowed = Request(fabric=forest, nodes=nodes, jobs=(gang("a", 6, may_span_fabrics=True),))
    assert sorted(domains(allowed, solve_best(allowed), "a").values()) == [2, 4]


def test_a18_two_roots_of_one_file_are_two_fabrics(tmp_path: Path) -> None:
    """A topology.conf whose switches meet nowhere: the reader itself must not join them under a root of its own."""
    (tmp_path / "topology.conf").write_text("SwitchName=f1 Nodes=a[1-4]\nSwitchName=f2 Nodes=b[1-4]\n")
    live = [{"name": f"{f}{i}", "state": ["IDLE"], "gres": "gpu:1"} for f in "ab" for i in range(1, 5)]
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": live, "meta": {"slurm": {}}}))
    request, _ = read_request(tmp_path)
    for count, fits in ((4, True), (6, False)):
        outcome = solve(request.model_copy(update={"jobs": (gang("a", count),)}))
        assert (outcome.reasons == ()) == fits


def test_a20_a_host_without_live_node_stays_in_the_tree(tmp_path: Path) -> None:
    """n2 is powered down: it keeps its place under l1 and takes no pod."""
    (tmp_path / "topology.conf").write_text("SwitchName=l1 Nodes=n[1-2]\n")
    live = {"nodes": [{"name": "n1", "state": ["IDLE"], "gres": "gpu:8"}], "meta": {"slurm": {}}}
    (tmp_path / "nodes.json").write_text(json.dumps(live))
    request, _ = read_request(tmp_path)
    assert build_fabric(request.fabric, request.nodes).nodes_of(("l1",)) == ("n1", "n2")
    reason = refused(solve(request.model_copy(update={"jobs": (gang("a", 2, 8),)})))
    assert {c.cause: c.nodes for c in reason.causes} == {"not schedulable": 1, "could hold a pod": 1}


def test_a21_gangs_tied_to_one_block() -> None:
    """9 + 4 = 13 nodes: 18 hold them, 10 do not; each gang alone would also fit in the block of 10."""
    jobs = (gang("prefill", 9), gang("decode", 4))
    tie = JobGroup(name="replica", jobs=("prefill", "decode"), together_level="block")
    request = blocks(18, 10, jobs=jobs, groups=(tie,))
    outcome = solve(request)
    assert domains(request, outcome, "prefill") == {"b1": 9}
    assert domains(request, outcome, "decode") == {"b1": 4}


def test_a24_a_host_named_like_its_block() -> None:
    """Identity is the path: the host x in block x takes its pod and counts as one of the block's two."""
    nodes = (Node(name="x", path=("x",), gpus=1), Node(name="y", path=("x",), gpus=1))
    request = Request(fabric=FabricSpec(levels=("block",)), nodes=nodes, jobs=(gang("a", 2, required_level="block"),))
    assert build_fabric(request.fabric, request.nodes).nodes_of(("x",)) == ("x", "y")
    assert pods(solve_best(request), "a") == {"x": 1, "y": 1}


def test_a25_rack_names_with_a_common_prefix() -> None:
    """r1 holds 1 and r10 holds 2: only r10 has room for 2, and the two never count as one rack of 3."""
    nodes = (
        Node(name="a", path=("r1",), gpus=1),
        Node(name="b", path=("r10",), gpus=1),
        Node(name="c", path=("r10",), gpus=1),
    )

    def request(count: int) -> Request:
        return Request(fabric=ONE_RACK, nodes=nodes, jobs=(gang("a", count, required_level="rack"),))

    assert pods(solve_best(request(2)), "a") == {"b": 1, "c": 1}
    assert refused(solve_best(request(3))).fits[0].fits == 2


def test_a26_the_limit_of_pods_per_node_counts() -> None:
    """n1 has 8 GPUs but one pod slot: the second pod goes elsewhere, or nowhere."""
    full, other = Node(name="n1", gpus=8, max_pods=1), Node(name="n2", gpus=1)
    assert pods(solve_best(Request(nodes=(full, other), jobs=(gang("a", 2),))), "a") == {"n1": 1, "n2": 1}
    reason = refused(solve_best(Request(nodes=(full,), jobs=(gang("a", 2),))))
    assert "1 of 2 fit" in reason.sentence


def test_a28_podsets_share_one_map_of_free_room() -> None:
    """6 + 4 exceed 8: on one host the gang is refused though each podset alone fits, on two each takes one."""
    sets = (podset("p", 6, required_level="node"), podset("q", 4, required_level="node"))
    job = Job(name="a", podsets=sets)
    assert refused(solve_best(Request(nodes=(Node(name="h1", gpus=8),), jobs=(job,)))).kind == "impossible"
    two = Request(nodes=(Node(name="h1", gpus=8), Node(name="h2", gpus=8)), jobs=(job,))
    outcome = solve_best(two)
    assert sorted([*pods(outcome, "a", "p").values(), *pods(outcome, "a", "q").values()]) == [4, 6]
    assert set(pods(outcome, "a", "p")) != set(pods(outcome, "a", "q"))


def test_a31_a_node_of_two_pools_is_free_once() -> None:
    """Both jobs want all 8 GPUs of the one node, each through another pool."""
    jobs = (gang("a", 1, 8, pools=("p1",)), gang("b", 1, 8, pools=("p2",)))
    outcome = solve_best(Request(nodes=(Node(name="n", gpus=8, pools=("p1", "p2")),), jobs=jobs))
    assert outcome.placement is not None
    assert len(outcome.placement.jobs) == 1
    assert [r.kind for r in outcome.reasons] == ["outbid"]


@pytest.mark.parametrize("turned", [False, True])
def test_a32_one_host_is_not_given_twice_in_one_batch(turned: bool) -> None:
    """24 GPUs are asked of 16. The gang of 16 is worth more than the job of 8, whichever is written first."""
    jobs = [gang("gang", 2, 8), gang("single", 1, 8)]
    request = racks("8,8", jobs=jobs[:: -1 if turned else 1])
    outcome = solve_best(request)
    assert pods(outcome, "gang") == {"r1n1": 1, "r1n2": 1}
    assert pods(outcome, "single") == {}


NWTOPO = ("n1 n2|n3 n4", "n5 n6|n7 n8", "n9 n10|n11 n12")
"""Spines of two leaves of two nodes."""


def test_a35_three_nodes_under_one_spine() -> None:
    """With n1, n3, n6, n11 and n12 busy, the spines have 2, 3 and 2 nodes free: three fit under the second alone."""
    nodes = [
        Node(name=name, path=(f"s{s}", f"s{s}l{i}"), gpus=1)
        for s, spine in enumerate(NWTOPO)
        for i, leaf in enumerate(spine.split("|"))
        for name in leaf.split()
    ]
    busy = {"n1", "n3", "n6", "n11", "n12"}
    nodes = [n.model_copy(update={"schedulable": n.name not in busy}) for n in nodes]
    request = Request(fabric=FabricSpec(levels=("spine", "leaf")), nodes=tuple(nodes), jobs=(gang("a", 3),))
    assert pods(solve_best(request), "a") == {"n5": 1, "n7": 1, "n8": 1}


SUPERPODS = ((11, 6, 6, 6, 5, 3, 2, 1, 1), (8, 5, 3, 3, 2, 2))
"""Hosts per leaf group under two superpods of 41 and 23 hosts."""


def test_a36_eight_gangs_over_fifteen_leaf_groups() -> None:
    """64 hosts hold 8 gangs of 8 exactly, so every leaf is used up.

    Draw a line between a gang and each leaf that it uses. A connected piece of k gangs and l leaves has at least
    k + l - 1 lines, so the lines are at least 8 + 15 less the number of pieces. Pieces are sets of leaves whose hosts
    are a multiple of 8; there are at most 7 of them, since {8}, {2, 6} x 3, {3, 5} x 2 and {11, 3, 1, 1} are 7 and the
    leaf of 11 cannot be in a piece of one gang: 8 pieces would be 8 gangs each with leaves of its own.
    """
    sizes = [size for superpod in SUPERPODS for size in superpod]
    assert sorted(sizes) == [1, 1, 2, 2, 2, 3, 3, 3, 5, 5, 6, 6, 6, 8, 11]
    request = blocks(*sizes, level="leaf", jobs=tuple(gang(f"g{i}", 8) for i in range(8)))
    outcome = solve(request)
    assert outcome.reasons == ()
    used = [len(domains(request, outcome, f"g{i}")) for i in range(8)]
    traffic = next(level for level in outcome.levels if level.name == "traffic")
    assert traffic.value == sum(used) - 8
    assert traffic.bound is not None
    assert traffic.bound <= 16 - 8, "a bound above what can be reached would be false"
    assert sum(used) == 16


def test_a36_gangs_inside_superpods() -> None:
    """41 hosts hold 5 gangs of 8 and 23 hold 2; the seven hosts left over in one and one in the other hold none."""
    assert [sum(superpod) for superpod in SUPERPODS] == [41, 23]
    nodes = [
        Node(name=f"s{s}l{leaf}n{n}", path=(f"s{s}", f"s{s}l{leaf}"), gpus=8)
        for s, superpod in enumerate(SUPERPODS)
        for leaf, size in enumerate(superpod)
        for n in range(size)
    ]
    jobs = tuple(gang(f"g{i}", 8, 8, required_level="superpod") for i in range(8))
    request = Request(fabric=FabricSpec(levels=("superpod", "leaf")), nodes=tuple(nodes), jobs=jobs)
    outcome = solve(request)
    homes = Counter(home for job in jobs for home in domains(request, outcome, job.name))
    assert homes == {"s0": 5, "s1": 2}
    (reason,) = outcome.reasons
    assert reason.kind == "outbid"
