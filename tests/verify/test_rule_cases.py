"""Each rule: a placement that meets it narrowly, and one, a single step away, that breaks it and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from kant_opt.schema import (
    Allocation,
    Apart,
    FabricSpec,
    Gpu,
    Hold,
    Job,
    JobGroup,
    Node,
    Placement,
    Queue,
    Quota,
    Request,
    Reservation,
    Slice,
    Spread,
    Taint,
    Together,
    Toleration,
)
from kant_opt.testing.builders import gang, placed, placement, podset, racks, running
from kant_opt.verify import RULES, verify


@dataclass(frozen=True)
class Case:
    """`text` is what the one violation of `bad` must say."""

    name: str
    rule: str
    request: Request
    good: Placement
    bad: Placement
    text: str


def nodes(*given: Node, jobs: tuple[Job, ...], **fields: Any) -> Request:
    """Return a request without levels."""
    return Request(nodes=given, jobs=jobs, **fields)


def one(pods: int = 1, gpus: int = 1, **rules: Any) -> tuple[Job, ...]:
    return (gang("a", pods, gpus, **rules),)


NOTHING = Placement()

GANG = [
    Case(
        "all-pods",
        "gang",
        racks("4", jobs=one(3)),
        placement(a={"r1n1": 3}),
        placement(a={"r1n1": 2}),
        "2 new pods placed, 3 wanted",
    ),
    Case(
        "not-more-pods",
        "gang",
        racks("4", jobs=one(3)),
        placement(a={"r1n1": 3}),
        placement(a={"r1n1": 4}),
        "4 new pods",
    ),
    Case(
        "elastic-minimum",
        "gang",
        racks("4", jobs=one(4, min_count=2)),
        placement(a={"r1n1": 2}),
        placement(a={"r1n1": 1}),
        "2 to 4 wanted",
    ),
    Case(
        "elastic-maximum",
        "gang",
        racks("5", jobs=one(4, min_count=2)),
        placement(a={"r1n1": 4}),
        placement(a={"r1n1": 5}),
        "2 to 4 wanted",
    ),
    Case(
        "finished-pods-need-no-place",
        "gang",
        racks("4", jobs=one(4, finished=1)),
        placement(a={"r1n1": 3}),
        placement(a={"r1n1": 4}),
        "4 new pods placed, 3 wanted",
    ),
    Case(
        "the-minimum-shrinks-to-what-is-not-finished",
        "gang",
        racks("4", jobs=one(4, min_count=3, finished=2)),
        placement(a={"r1n1": 2}),
        placement(a={"r1n1": 1}),
        "1 new pods placed, 2 wanted",
    ),
    Case(
        "living-members-count",
        "gang",
        racks("4,4", gpus_total=5, jobs=one(4), allocations=(running("a", {"r1n2": 1}),)),
        placement(a={"r1n1": 3}),
        placement(a={"r1n1": 4}),
        "4 new pods placed, 3 wanted",
    ),
    Case(
        "every-podset",
        "gang",
        racks("4", jobs=(Job(name="a", podsets=(podset("main", 1), podset("tail", 2))),)),
        Placement(jobs=(placed("a", {"r1n1": 1}, tail={"r1n1": 2}),)),
        placement(a={"r1n1": 1}),
        "a/tail: 0 new pods placed, 2 wanted",
    ),
    Case(
        "known-job",
        "gang",
        racks("4", jobs=one()),
        placement(a={"r1n1": 1}),
        placement(a={"r1n1": 1}, b={"r1n1": 1}),
        "b: no job",
    ),
    Case(
        "whole-group",
        "gang",
        racks("4", jobs=(gang("a", 1), gang("b", 1)), groups=(JobGroup(name="g", jobs=("a", "b")),)),
        placement(a={"r1n1": 1}, b={"r1n1": 1}),
        placement(a={"r1n1": 1}),
        "g: a placed without b",
    ),
    Case(
        # loose says nothing about the gang rule; strict does
        "only-groups-that-say-so",
        "gang",
        racks(
            "4",
            jobs=(gang("a", 1), gang("b", 1), gang("c", 1)),
            groups=(
                JobGroup(name="loose", jobs=("a", "b"), all_or_none=False),
                JobGroup(name="strict", jobs=("b", "c")),
            ),
        ),
        placement(a={"r1n1": 1}),
        placement(b={"r1n1": 1}),
        "strict: b placed without c,",
    ),
    Case(
        "a-running-member-is-admitted",
        "gang",
        racks(
            "4",
            jobs=(gang("a", 1), gang("b", 1), gang("c", 1)),
            allocations=(running("b", {"r1n1": 1}, gpus=0),),
            groups=(JobGroup(name="g", jobs=("a", "b", "c")),),
        ),
        placement(a={"r1n1": 1}, c={"r1n1": 1}),
        placement(c={"r1n1": 1}),
        "g: c placed without a,",
    ),
    Case(
        "living-members-count-for-the-minimum",
        "gang",
        racks("4", jobs=one(4, min_count=3), allocations=(running("a", {"r1n1": 1}, gpus=0),)),
        placement(a={"r1n1": 2}),
        placement(a={"r1n1": 1}),
        "1 new pods placed, 2 to 3 wanted",
    ),
    Case(
        "living-members-above-the-minimum",
        "gang",
        racks("4", jobs=one(4, min_count=1), allocations=(running("a", {"r1n1": 2}, gpus=0),)),
        Placement(jobs=(placed("a"),)),
        placement(a={"r1n1": 3}),
        "3 new pods placed, 0 to 2 wanted",
    ),
]

CAPACITY = [
    Case(
        # o takes GPU 0, the lowest and last free one; what is left of GPU 1 beside its share stays free
        "exactly-committed-is-not-over-committed",
        "capacity",
        nodes(
            Node(name="n", gpus=2),
            jobs=(gang("a", 1, 0, gpu_milli=500), gang("b", 1, 0, gpu_milli=501)),
            allocations=(
                Allocation(job="o", holds=(Hold(node="n", gpu_indices=(1,), gpu_milli=500), Hold(node="n", gpus=1))),
            ),
        ),
        placement(a={"n": [(1,)]}),
        placement(b={"n": [(1,)]}),
        "GPU 1, 500 are taken",
    ),
    Case(
        "gpus",
        "capacity",
        racks("2,1", gpus_total=4, jobs=one(2)),
        placement(a={"r1n1": 2}),
        placement(a={"r1n2": 2}),
        "2 whole GPUs needed, 1 of 4 healthy ones free",
    ),
    Case(
        "sick-gpus",
        "capacity",
        nodes(Node(name="n", gpus=2, gpu_details=(Gpu(index=0, healthy=False),)), Node(name="m", gpus=2), jobs=one(2)),
        placement(a={"m": 2}),
        placement(a={"n": 2}),
        "2 whole GPUs needed, 1 of 1 healthy",
    ),
    Case(
        "named-sick-gpu",
        "capacity",
        nodes(Node(name="n", gpus=2, gpu_details=(Gpu(index=0, healthy=False),)), jobs=one()),
        placement(a={"n": [(1,)]}),
        placement(a={"n": [(0,)]}),
        "GPU 0, which is not healthy",
    ),
    Case(
        "named-gpu-of-nowhere",
        "capacity",
        racks("2", jobs=one()),
        placement(a={"r1n1": [(1,)]}),
        placement(a={"r1n1": [(2,)]}),
        "GPU 2, which is not there",
    ),
    Case(
        "holds-take-the-lowest",
        "capacity",
        racks("2", gpus_total=4, jobs=one()),
        placement(a={"r1n1": [(2,)]}),
        placement(a={"r1n1": [(1,)]}),
        "a/main needs 1000 thousandths of GPU 1, 1000 are taken",
    ),
    Case(
        "holds-take-the-lowest-free-of-those-named",
        "capacity",
        nodes(
            Node(name="n", gpus=4),
            jobs=one(),
            allocations=(
                Allocation(job="o", holds=(Hold(node="n", gpus=2), Hold(node="n", gpus=1, gpu_indices=(1,)))),
            ),
        ),
        placement(a={"n": [(3,)]}),
        placement(a={"n": [(2,)]}),
        "GPU 2, 1000 are taken",
    ),
    Case(
        "one-gpu-serves-one-pod",
        "capacity",
        racks("2", jobs=one(2)),
        placement(a={"r1n1": [(0,), (1,)]}),
        placement(a={"r1n1": [(1,), (1,)]}),
        "GPU 1, 1000 are taken",
    ),
    Case(
        "a-pod-names-distinct-gpus",
        "capacity",
        racks("2", jobs=one(1, 2)),
        placement(a={"r1n1": [(0, 1)]}),
        placement(a={"r1n1": [(1, 1)]}),
        "GPU 1, 1000 are taken",
    ),
    Case(
        "a-pod-names-all-its-gpus",
        "capacity",
        racks("2", jobs=one(1, 2)),
        placement(a={"r1n1": [()]}),
        placement(a={"r1n1": [(0,)]}),
        "names 1 GPUs, it needs 2",
    ),
    Case(
        "pods-without-gpus-name-none",
        "capacity",
        racks("2", jobs=one(1, 0)),
        placement(a={"r1n1": 1}),
        placement(a={"r1n1": [(0,)]}),
        "names 1 GPUs, it needs 0",
    ),
    Case(
        "a-share-names-its-gpu",
        "capacity",
        racks("1", jobs=one(1, 0, gpu_milli=1)),
        placement(a={"r1n1": [(0,)]}),
        placement(a={"r1n1": 1}),
        "names 0 GPUs, it needs 1",
    ),
    Case(
        "shares-fill-a-gpu-exactly",
        "capacity",
        racks("2", jobs=(gang("a", 2, 0, gpu_milli=500), gang("b", 1, 0, gpu_milli=501))),
        placement(a={"r1n1": [(0,), (0,)]}, b={"r1n1": [(1,)]}),
        placement(a={"r1n1": [(0,), (1,)]}, b={"r1n1": [(1,)]}),
        "b/main needs 501 thousandths of GPU 1, 500 are taken",
    ),
    Case(
        # 333/1000 of 3000 MiB is 999 MiB: 2001 MiB fit beside it, 2002 do not
        "thousandths-beside-mib",
        "capacity",
        nodes(
            Node(name="n", gpus=1, gpu_memory_mib=3000),
            Node(name="m", gpus=1, gpu_memory_mib=2999),
            jobs=(gang("a", 1, 0, gpu_milli=333), gang("b", 1, 0, gpu_memory_mib=2001)),
        ),
        placement(a={"n": [(0,)]}, b={"n": [(0,)]}),
        placement(a={"m": [(0,)]}, b={"m": [(0,)]}),
        "333 are taken",
    ),
    Case(
        "more-memory-than-a-gpu-has",
        "capacity",
        nodes(
            Node(name="n", gpus=1, gpu_memory_mib=80),
            Node(name="m", gpus=1, gpu_memory_mib=79),
            jobs=one(1, 0, gpu_memory_mib=80),
        ),
        placement(a={"n": [(0,)]}),
        placement(a={"m": [(0,)]}),
        "GPU 0, 0 are taken",
    ),
    Case(
        "a-whole-gpu-is-not-shared",
        "capacity",
        racks("2", jobs=(gang("a", 1, 0, gpu_milli=1), gang("b", 1, 1))),
        placement(a={"r1n1": [(0,)]}, b={"r1n1": [(1,)]}),
        placement(a={"r1n1": [(0,)]}, b={"r1n1": [(0,)]}),
        "GPU 0, 1 are taken",
    ),
    Case(
        "unnamed-whole-gpus-find-none-beside-shares",
        "capacity",
        racks("3", jobs=(gang("a", 2, 0, gpu_milli=1), gang("b", 2, 1))),
        placement(a={"r1n1": [(2,), (2,)]}, b={"r1n1": 2}),
        placement(a={"r1n1": [(1,), (2,)]}, b={"r1n1": 2}),
        "2 whole GPUs needed, 1 of 3",
    ),
    Case(
        "over-committed-node-has-nothing-free",
        "capacity",
        nodes(
            Node(name="n", gpus=2),
            Node(name="m", gpus=1),
            jobs=one(1, 0, gpu_milli=1),
            allocations=(
                Allocation(job="o", holds=(Hold(node="n", gpu_indices=(1,), gpu_milli=500), Hold(node="n", gpus=2))),
            ),
        ),
        placement(a={"m": [(0,)]}),
        placement(a={"n": [(1,)]}),
        "GPU 1, 1000 are taken",
    ),
    Case(
        "cpu",
        "capacity",
        nodes(Node(name="n", cpu_milli=2000), jobs=(gang("a", 2, 0, cpu_milli=1000), gang("b", 1, 0, cpu_milli=1))),
        placement(a={"n": 2}),
        placement(a={"n": 2}, b={"n": 1}),
        "0 milli-CPU held and 2001 new exceed 2000",
    ),
    Case(
        "memory",
        "capacity",
        nodes(
            Node(name="n", memory_bytes=10),
            Node(name="m", memory_bytes=10),
            jobs=one(1, 0, memory_bytes=8),
            allocations=(Allocation(job="o", holds=(Hold(node="n", memory_bytes=2), Hold(node="m", memory_bytes=3))),),
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "3 bytes of memory held and 8 new exceed 10",
    ),
    Case(
        "pods",
        "capacity",
        nodes(
            Node(name="n", max_pods=3),
            Node(name="m", max_pods=2),
            jobs=one(2, 0),
            allocations=(running("o", {"n": 1, "m": 1}, gpus=0),),
        ),
        placement(a={"n": 2}),
        placement(a={"m": 2}),
        "1 pods held and 2 new exceed 2",
    ),
    Case(
        # 9 of 8 GPUs are used; a pod that asks for none of them takes nothing that is not there
        "over-committed-gpus-do-not-stop-cpu-pods",
        "capacity",
        nodes(Node(name="n", gpus=8), jobs=(gang("a", 1, 0), gang("b", 1, 1)), allocations=(running("o", {"n": 9}),)),
        placement(a={"n": 1}),
        placement(b={"n": 1}),
        "1 whole GPUs needed, 0 of 8",
    ),
]

HARD = Taint(key="k", value="v")
ELIGIBLE = [
    Case(
        "open",
        "eligible",
        nodes(Node(name="n"), Node(name="m", schedulable=False, why_closed="drained"), jobs=one(1, 0)),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "node 'm' is not schedulable (drained)",
    ),
    Case(
        "pool",
        "eligible",
        nodes(
            Node(name="n", pools=("x", "h100")), Node(name="m", pools=("x",)), jobs=one(1, 0, pools=("h100", "h200"))
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "in pool x, wanted h100, h200",
    ),
    Case(
        "label-value",
        "eligible",
        nodes(
            Node(name="n", labels={"zone": "b"}),
            Node(name="m", labels={"zone": "c"}),
            jobs=one(1, 0, selector={"zone": ("a", "b")}),
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "'zone' = 'c', wanted a, b",
    ),
    Case(
        "label-missing",
        "eligible",
        nodes(Node(name="n", labels={"zone": ""}), Node(name="m"), jobs=one(1, 0, selector={"zone": ("",)})),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "no label 'zone'",
    ),
    Case(
        "listed",
        "eligible",
        racks("1,1", jobs=one(nodes=("r1n1",))),
        placement(a={"r1n1": 1}),
        placement(a={"r1n2": 1}),
        "not among the 1 nodes listed",
    ),
    Case(
        "ruled-out",
        "eligible",
        racks("1,1", jobs=one(not_nodes=("r1n2",))),
        placement(a={"r1n1": 1}),
        placement(a={"r1n2": 1}),
        "ruled out",
    ),
    Case(
        "taint",
        "eligible",
        nodes(
            Node(name="n", taints=(Taint(key="k", effect="PreferNoSchedule"),)),
            Node(name="m", taints=(HARD,)),
            jobs=one(1, 0),
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "taint k=v:NoSchedule",
    ),
    Case(
        "every-taint-is-tolerated",
        "eligible",
        nodes(
            Node(name="n", taints=(HARD,)),
            Node(name="m", taints=(HARD, Taint(key="k", value="w", effect="NoExecute"))),
            jobs=one(1, 0, tolerations=(Toleration(key="k", value="v"),)),
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "taint k=w:NoExecute",
    ),
    Case(
        "toleration-of-another-effect",
        "eligible",
        nodes(
            Node(name="n", taints=(HARD,)),
            Node(name="m", taints=(Taint(key="k", effect="NoExecute"),)),
            jobs=one(1, 0, tolerations=(Toleration(key="k", operator="Exists", effect="NoSchedule"),)),
        ),
        placement(a={"n": 1}),
        placement(a={"m": 1}),
        "taint k=:NoExecute",
    ),
    Case(
        "gpu-memory-known",
        "eligible",
        nodes(Node(name="n", gpus=1, gpu_memory_mib=8), Node(name="m", gpus=1), jobs=one(1, 0, gpu_memory_mib=8)),
        placement(a={"n": [(0,)]}),
        placement(a={"m": [(0,)]}),
        "does not tell the memory",
    ),
    Case(
        "after-others",
        "eligible",
        nodes(
            Node(name="n", gpus=2),
            jobs=(*one(), gang("b", 1, after=("old",))),
            allocations=(running("old", {"n": 1}, gpus=0),),
        ),
        placement(a={"n": 1}),
        placement(b={"n": 1}),
        "it is to start after old, not ended yet",
    ),
]

TWO_UNKNOWN = Request(
    fabric=FabricSpec(levels=("rack",)),
    nodes=(Node(name="n", path=(None,), gpus=2), Node(name="m", path=(None,), gpus=2)),
    jobs=one(2, required_level="rack"),
)
REQUIRED = [
    Case(
        "one-rack",
        "required_level",
        racks("1,1|1", jobs=one(2, required_level="rack")),
        placement(a={"r1n1": 1, "r1n2": 1}),
        placement(a={"r1n1": 1, "r2n1": 1}),
        "2 domains of level 'rack', one allowed: r1 (1 pod), r2 (1 pod)",
    ),
    Case(
        "one-node",
        "required_level",
        racks("2,2", jobs=one(2, required_level="node")),
        placement(a={"r1n1": 2}),
        placement(a={"r1n1": 1, "r1n2": 1}),
        "r1/r1n1 (1 pod)",
    ),
    Case(
        "one-block",
        "required_level",
        racks("1|1/1", jobs=one(2, required_level="block")),
        placement(a={"r1n1": 1, "r2n1": 1}),
        placement(a={"r2n1": 1, "r3n1": 1}),
        "b1 (1 pod), b2 (1 pod)",
    ),
    Case(
        "unknown-is-not-shared",
        "required_level",
        TWO_UNKNOWN,
        placement(a={"n": 2}),
        placement(a={"n": 1, "m": 1}),
        "2 domains",
    ),
    Case(
        "with-living-members",
        "required_level",
        racks(
            "1|1", gpus_total=2, jobs=one(2, required_level="rack"), allocations=(running("a", {"r1n1": 1}, gpus=0),)
        ),
        placement(a={"r1n1": 1}),
        placement(a={"r2n1": 1}),
        "2 domains",
    ),
    Case(
        "racks-of-one-name-differ",
        "required_level",
        Request(
            fabric=FabricSpec(levels=("block", "rack")),
            nodes=tuple(Node(name=f"n{b}{i}", path=(b, "r"), gpus=1) for b in "xy" for i in "12"),
            jobs=one(2, required_level="rack"),
        ),
        placement(a={"nx1": 1, "nx2": 1}),
        placement(a={"nx1": 1, "ny1": 1}),
        "x/r (1 pod), y/r (1 pod)",
    ),
]

SLICE = [
    Case(
        "pairs-per-node",
        "slice",
        racks("3,3", jobs=one(4, slices=(Slice(level="node", size=2),))),
        placement(a={"r1n1": 2, "r1n2": 2}),
        placement(a={"r1n1": 3, "r1n2": 1}),
        "whole slices of 2 per domain of level 'node': r1/r1n1 (3 pods), r1/r1n2 (1 pod)",
    ),
    Case(
        # 4 + 4 pods per rack are whole outer slices both times; the inner slices break in the second rack alone
        "nested",
        "slice",
        racks("4|3,3", jobs=one(8, slices=(Slice(level="rack", size=4), Slice(level="node", size=2)))),
        placement(a={"r1n1": 4, "r2n1": 2, "r2n2": 2}),
        placement(a={"r1n1": 4, "r2n1": 3, "r2n2": 1}),
        "slices of 2",
    ),
    Case(
        "outer-of-nested",
        "slice",
        racks("4|2,2", jobs=one(4, slices=(Slice(level="rack", size=4), Slice(level="node", size=2)))),
        placement(a={"r2n1": 2, "r2n2": 2}),
        placement(a={"r1n1": 2, "r2n1": 2}),
        "slices of 4",
    ),
    Case(
        "elastic-in-whole-slices",
        "slice",
        racks("4", jobs=one(4, min_count=1, slices=(Slice(level="rack", size=2),))),
        placement(a={"r1n1": 2}),
        placement(a={"r1n1": 3}),
        "r1 (3 pods)",
    ),
    Case(
        "living-members-fill-slices",
        "slice",
        racks(
            "1|1",
            gpus_total=1,
            jobs=one(2, slices=(Slice(level="rack", size=2),)),
            allocations=(running("a", {"r1n1": 1}, gpus=0),),
        ),
        placement(a={"r1n1": 1}),
        placement(a={"r2n1": 1}),
        "r1 (1 pod), r2 (1 pod)",
    ),
]

SPREAD = [
    Case(
        "one-per-node",
        "spread",
        racks("2,2", jobs=one(2, spread=(Spread(level="node", max_per_domain=1),))),
        placement(a={"r1n1": 1, "r1n2": 1}),
        placement(a={"r1n1": 2}),
        "more than 1 pods in one domain of level 'node': r1/r1n1 (2 pods)",
    ),
    Case(
        "two-per-rack",
        "spread",
        racks("3|1", jobs=one(3, spread=(Spread(level="rack", max_per_domain=2),))),
        placement(a={"r1n1": 2, "r2n1": 1}),
        placement(a={"r1n1": 3}),
        "r1 (3 pods)",
    ),
    Case(
        "living-members-count",
        "spread",
        racks(
            "1|1",
            jobs=one(2, spread=(Spread(level="rack", max_per_domain=1),)),
            allocations=(running("a", {"r1n1": 1}, gpus=0),),
        ),
        placement(a={"r2n1": 1}),
        placement(a={"r1n1": 1}),
        "r1 (2 pods)",
    ),
]


def pair(**rules: Any) -> Job:
    return Job(name="a", podsets=(podset("main", 1), podset("tail", 1), podset("free", 1)), **rules)


def three(main: str, tail: str, free: str) -> Placement:
    return Placement(jobs=(placed("a", {main: 1}, tail={tail: 1}, free={free: 1}),))


TOGETHER = [
    Case(
        "all-podsets",
        "together",
        racks("2,1|1", jobs=(pair(together=(Together(level="rack"),)),)),
        three("r1n1", "r1n1", "r1n2"),
        three("r1n1", "r1n1", "r2n1"),
        "podsets lie in 2 domains of level 'rack'",
    ),
    Case(
        "named-podsets",
        "together",
        racks("1,1|1", jobs=(pair(together=(Together(level="rack", podsets=("main", "tail")),)),)),
        three("r1n1", "r1n2", "r2n1"),
        three("r1n1", "r2n1", "r1n2"),
        "podsets main, tail",
    ),
    Case(
        "group",
        "together",
        racks(
            "1,1|1",
            jobs=(gang("a", 1), gang("b", 1)),
            groups=(JobGroup(name="g", jobs=("a", "b"), all_or_none=False, together_level="rack"),),
        ),
        placement(a={"r1n1": 1}, b={"r1n2": 1}),
        placement(a={"r1n1": 1}, b={"r2n1": 1}),
        "g: jobs lie in 2 domains",
    ),
    Case(
        "group-with-a-running-member",
        "together",
        racks(
            "1,1|1",
            jobs=(gang("a", 1), gang("b", 1)),
            allocations=(running("b", {"r1n2": 1}, gpus=0),),
            groups=(JobGroup(name="g", jobs=("a", "b"), together_level="rack"),),
        ),
        placement(a={"r1n1": 1}),
        placement(a={"r2n1": 1}),
        "g: jobs lie in 2 domains",
    ),
    Case(
        "separate-roots",
        "together",
        racks("1|1", jobs=(gang("a", 2, 0), gang("b", 2, 0, may_span_fabrics=True))).model_copy(
            update={"fabric": FabricSpec(levels=("rack",), separate_roots=True)}
        ),
        placement(a={"r1n1": 2}, b={"r1n1": 1, "r2n1": 1}),
        placement(a={"r1n1": 1, "r2n1": 1}),
        "separate roots lie in 2 domains of level 'rack'",
    ),
]

APART = [
    Case(
        "podsets",
        "apart",
        racks("3|1", jobs=(pair(apart=(Apart(level="rack", podsets=("main", "tail")),)),)),
        three("r1n1", "r2n1", "r1n1"),
        three("r1n1", "r1n1", "r2n1"),
        "podsets 'main' and 'tail' share rack r1",
    ),
    Case(
        "jobs",
        "apart",
        racks("2|1", jobs=(gang("a", 1), gang("b", 1, apart=(Apart(level="rack", jobs=("a",)),)))),
        placement(a={"r1n1": 1}, b={"r2n1": 1}),
        placement(a={"r1n1": 1}, b={"r1n1": 1}),
        "b: shares rack r1 with job 'a'",
    ),
    Case(
        "a-running-job",
        "apart",
        racks("1|2", gpus_total=2, jobs=one(apart=(Apart(level="rack", jobs=("old",)),))),
        placement(a={"r2n1": 1}),
        placement(a={"r1n1": 1}),
        "with job 'old'",
    ),
    Case(
        # b runs and is not placed now; its rule still binds the new pods of a
        "the-rule-of-a-running-job",
        "apart",
        racks(
            "1|1",
            jobs=(gang("a", 1), gang("b", 1, apart=(Apart(level="rack", jobs=("a",)),))),
            allocations=(running("b", {"r1n1": 1}, gpus=0),),
        ),
        placement(a={"r2n1": 1}),
        placement(a={"r1n1": 1}),
        "b: shares rack r1 with job 'a'",
    ),
    Case(
        # a and old share r1 already: that stays; r2 is where a new pod would join old
        "what-runs-side-by-side-stays",
        "apart",
        racks(
            "1|1|1",
            jobs=one(3, apart=(Apart(level="rack", jobs=("old",)),)),
            allocations=(running("old", {"r1n1": 1, "r2n1": 1}, gpus=0), running("a", {"r1n1": 2}, gpus=0)),
        ),
        placement(a={"r3n1": 1}),
        placement(a={"r2n1": 1}),
        "shares rack r2",
    ),
    Case(
        "exclusive",
        "apart",
        racks("2,1|1", jobs=(gang("a", 1, exclusive_level="node"), gang("b", 1))),
        placement(a={"r1n1": 1}, b={"r1n2": 1}),
        placement(a={"r1n1": 1}, b={"r1n1": 1}),
        "a: is to be alone in node r1/r1n1, there is b",
    ),
    Case(
        "exclusive-beside-running",
        "apart",
        racks("1|2", gpus_total=2, jobs=one(exclusive_level="rack")),
        placement(a={"r2n1": 1}),
        placement(a={"r1n1": 1}),
        "there is old",
    ),
    Case(
        # room kept by a job is not a pod of it
        "holds-without-pods",
        "apart",
        racks(
            "1|1|1",
            jobs=one(exclusive_level="rack"),
            allocations=(running("x", {"r1n1": 0}), running("y", {"r2n1": 1}, gpus=0)),
        ),
        placement(a={"r1n1": 1}),
        placement(a={"r2n1": 1}),
        "there is y",
    ),
    Case(
        "running-with-the-mark",
        "apart",
        racks("1,1|1", jobs=one(), allocations=(running("old", {"r1n1": 1}, gpus=0, exclusive_level="rack"),)),
        placement(a={"r2n1": 1}),
        placement(a={"r1n2": 1}),
        "old: is to be alone in rack r1, there is a",
    ),
]


def queues(*quotas: Quota, cohort: str = "") -> tuple[Queue, ...]:
    return (
        Queue(name="q", cohort=cohort, quotas=quotas),
        Queue(name="lender", cohort=cohort, quotas=(Quota(guaranteed=2),)),
    )


def queued(pods: int, gpus: int = 1, **rules: Any) -> tuple[Job, ...]:
    return (gang("a", pods, gpus, queue="q", **rules), gang("b", 1, gpus, queue="q", **rules))


FULL = {"a": {"r1n1": 2}}
OVER = {"a": {"r1n1": 2}, "b": {"r1n1": 1}}
QUOTA = [
    Case(
        "isolated",
        "quota",
        racks("8", jobs=queued(2), queues=queues(Quota(guaranteed=2, limit=5))),
        placement(**FULL),
        placement(**OVER),
        "queue q: gpu: 0 running and 3 new exceed 2",
    ),
    Case(
        "cohort-lends",
        "quota",
        racks("8", jobs=queued(2, 2), queues=queues(Quota(guaranteed=2), cohort="c")),
        placement(**FULL),
        placement(**OVER),
        "cohort c (q, lender): gpu: 0 running and 6 new exceed 4",
    ),
    Case(
        "limit-in-a-cohort",
        "quota",
        racks("8", jobs=queued(2), queues=queues(Quota(guaranteed=1, limit=2), cohort="c")),
        placement(**FULL),
        placement(**OVER),
        "queue q: gpu: 0 running and 3 new exceed 2",
    ),
    Case(
        "running-jobs-count",
        "quota",
        racks(
            "8", jobs=queued(2), queues=queues(Quota(guaranteed=4)), allocations=(running("o", {"r1n1": 2}, queue="q"),)
        ),
        placement(**FULL),
        placement(**OVER),
        "2 running and 3 new exceed 4",
    ),
    Case(
        "a-lender-that-uses-its-own",
        "quota",
        racks(
            "8",
            jobs=queued(2),
            queues=queues(Quota(guaranteed=2), cohort="c"),
            allocations=(running("o", {"r1n1": 2}, queue="lender"),),
        ),
        placement(**FULL),
        placement(**OVER),
        "2 running and 3 new exceed 4",
    ),
    Case(
        "shares-in-thousandths",
        "quota",
        racks("2", jobs=queued(2, 0, gpu_milli=500), queues=queues(Quota(guaranteed=1))),
        placement(a={"r1n1": [(0,), (0,)]}),
        placement(a={"r1n1": [(0,), (0,)]}, b={"r1n1": [(1,)]}),
        "0 running and 1.5 new exceed 1",
    ),
    Case(
        # 1 of 3 MiB is 334 thousandths rounded up: two are 668, three 1002
        "mib-rounded-up",
        "quota",
        nodes(
            Node(name="n", gpus=2, gpu_memory_mib=3),
            jobs=queued(2, 0, gpu_memory_mib=1),
            queues=queues(Quota(guaranteed=1)),
        ),
        placement(a={"n": [(0,), (0,)]}),
        placement(a={"n": [(0,), (0,)]}, b={"n": [(0,)]}),
        "1.002 new exceed 1",
    ),
    Case(
        "cpu",
        "quota",
        racks("8", jobs=queued(2, cpu_milli=10), queues=queues(Quota(resource="cpu_milli", guaranteed=29))),
        placement(**FULL),
        placement(**OVER),
        "cpu_milli: 0 running and 30 new exceed 29",
    ),
    Case(
        "memory",
        "quota",
        racks("8", jobs=queued(2, memory_bytes=10), queues=queues(Quota(resource="memory_bytes", guaranteed=29))),
        placement(**FULL),
        placement(**OVER),
        "memory_bytes: 0 running and 30 new exceed 29",
    ),
    Case(
        # n has both pools; the pod is charged to y, the first of its own that the node has, not to the node's first
        "charged-to-the-pods-pool",
        "quota",
        nodes(
            Node(name="n", gpus=3, pools=("x", "y")),
            jobs=queued(2, pools=("z", "y", "x")),
            queues=queues(Quota(pool="y", guaranteed=2)),
        ),
        placement(a={"n": 2}),
        placement(a={"n": 2}, b={"n": 1}),
        "gpu in pool 'y': 0 running and 3 new exceed 2",
    ),
    Case(
        "charged-to-the-nodes-pool",
        "quota",
        nodes(
            Node(name="n", gpus=1, pools=("y", "x")),
            Node(name="m", gpus=3, pools=("x", "y")),
            jobs=queued(1),
            queues=queues(Quota(pool="x", guaranteed=2)),
            allocations=(running("o", {"m": 1}, queue="q"),),
        ),
        placement(a={"n": 1}, b={"m": 1}),
        placement(a={"m": 1}, b={"m": 1}),
        "gpu in pool 'x': 1 running and 2 new exceed 2",
    ),
    Case(
        # the queue is over its quota already; pods that add nothing to it may come
        "only-what-new-pods-add-to",
        "quota",
        racks(
            "8",
            jobs=(gang("a", 1, 0, queue="q"), gang("b", 1, 1, queue="q")),
            queues=queues(Quota(guaranteed=1)),
            allocations=(running("o", {"r1n1": 2}, queue="q"),),
        ),
        placement(a={"r1n1": 1}),
        placement(b={"r1n1": 1}),
        "2 running and 1 new exceed 1",
    ),
]


def kept(start: int, end: int | None, *jobs: str) -> tuple[Reservation, ...]:
    return (Reservation(name="res", nodes=("r1n1",), start_s=start, end_s=end, jobs=jobs),)


A1, B1 = placement(a={"r1n1": 1}), placement(b={"r1n1": 1})
WINDOW = [
    Case(
        "ends-when-it-starts",
        "window",
        racks(
            "1", now_s=100, jobs=(gang("a", 1, walltime_s=50), gang("b", 1, walltime_s=51)), reservations=kept(150, 200)
        ),
        A1,
        B1,
        "node 'r1n1' is reserved by 'res' in [150, 200), the job runs in [100, 151)",
    ),
    Case(
        "over-now",
        "window",
        racks(
            "1,1",
            now_s=100,
            jobs=one(walltime_s=5),
            reservations=(*kept(0, 101), Reservation(name="old", nodes=("r1n2",), start_s=0, end_s=100)),
        ),
        placement(a={"r1n2": 1}),
        A1,
        "[0, 101)",
    ),
    Case(
        "for-those-named",
        "window",
        racks("1", jobs=(gang("a", 1), gang("b", 1)), reservations=kept(0, None, "a", "c")),
        A1,
        B1,
        "reserved by 'res'",
    ),
    Case(
        "unknown-length",
        "window",
        racks("1", jobs=(gang("a", 1, preemptible=True), gang("b", 1)), reservations=kept(1, 2)),
        A1,
        B1,
        "[0, inf)",
    ),
    Case(
        "preemptible-needs-a-second",
        "window",
        racks("1,1", jobs=one(preemptible=True), reservations=kept(0, None)),
        placement(a={"r1n2": 1}),
        A1,
        "[0, 1)",
    ),
    Case(
        "preemptible-with-a-length",
        "window",
        racks(
            "1",
            jobs=(gang("a", 1, walltime_s=9, preemptible=True), gang("b", 1, walltime_s=10, preemptible=True)),
            reservations=kept(9, 99),
        ),
        A1,
        B1,
        "[0, 10)",
    ),
]

CASES = [*GANG, *CAPACITY, *ELIGIBLE, *REQUIRED, *SLICE, *SPREAD, *TOGETHER, *APART, *QUOTA, *WINDOW]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.name}")
def test_good_is_valid(case: Case) -> None:
    assert verify(case.request, case.good) == ()


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.name}")
def test_bad_breaks_this_rule_only(case: Case) -> None:
    found = verify(case.request, case.bad)
    assert {v.rule for v in found} == {case.rule}
    assert any(case.text in str(v) for v in found), [str(v) for v in found]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.name}")
def test_nothing_placed_is_valid(case: Case) -> None:
    assert verify(case.request, NOTHING) == ()


def test_every_rule_has_cases() -> None:
    assert {case.rule for case in CASES} == set(RULES)
