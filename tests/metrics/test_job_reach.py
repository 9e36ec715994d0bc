"""How far jobs reach (spans) and how much further than they must (JTTED)."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.metrics import JobSpan, Placed, job_spans, job_stretch
from kant_opt.metrics.least import LeastDomains
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Link, Node, Placement, Request
from kant_opt.testing.builders import gang, placement, podset, racks

FOUR_RACKS = "8,8|8,8/8,8|8,8"


def test_spans_count_domains_of_new_and_living_pods() -> None:
    held = Allocation(job="a", holds=(Hold(node="r4n1", pods=2, gpus=2),))
    request = racks(FOUR_RACKS, jobs=[gang("b", 2), gang("a", 4)], allocations=(held,))
    spans = job_spans(Placed(request, placement(a={"r1n1": 1, "r1n2": 1}, b={"r1n1": 2})))
    assert spans == (
        JobSpan("b", pods=2, nodes=1, domains={"block": 1, "rack": 1}),
        JobSpan("a", pods=4, nodes=3, domains={"block": 2, "rack": 2}),
    )
    assert [s.extra for s in spans] == [{"block": 0, "rack": 0}, {"block": 1, "rack": 1}]


def test_stretch_is_what_was_used_over_the_least() -> None:
    request = racks(FOUR_RACKS, jobs=[gang("a", 4, 4), gang("left-out", 1)])
    (found,) = job_stretch(Placed(request, placement(a={"r1n1": 1, "r2n1": 1, "r3n1": 2})))
    # four pods of 4 GPUs need two nodes of 8, which one rack has
    assert found.used == {"block": 2, "rack": 3, "node": 3}
    assert found.least == {"block": 1, "rack": 1, "node": 2}
    assert found.ratio == {"block": 2.0, "rack": 3.0, "node": 1.5}


@pytest.mark.parametrize(
    ("job", "least", "why"),
    [
        (gang("a", 3, 3), 2, "8 GPUs hold two pods of 3 and not three"),
        (gang("a", 3, 4, pools=("small",)), 3, "nodes of the small pool hold one pod of 4 each"),
        (gang("a", 3, 1, cpu_milli=600), 3, "one pod's CPU per node"),
        (gang("a", 3, 0, gpu_milli=334), 1, "two such shares per GPU, 8 GPUs"),
        (gang("a", 81, 0, gpu_milli=91), 2, "ten such shares per GPU make 80, though 81 x 91 is below 8 GPUs"),
        (Job(name="a", podsets=(podset("lead", 1, 4), podset("rest", 1, 4))), 1, "4 and 4 fill one node"),
        (gang("a", 9, 0, gpu_memory_mib=50), 2, "80 MiB hold one share of 50, so a node holds 8"),
        (Job(name="a", podsets=(podset("lead", 1, 5), podset("rest", 1, 4))), 2, "each fits one node, 9 GPUs do not"),
    ],
)
def test_least_nodes_by_hand(job: Job, least: int, why: str) -> None:
    big = tuple(Node(name=f"big{i}", gpus=8, gpu_memory_mib=80, cpu_milli=1000) for i in range(3))
    small = tuple(Node(name=f"small{i}", gpus=4, pools=("small",), cpu_milli=1000) for i in range(9))
    closed = Node(name="closed", gpus=64, schedulable=False)
    # the pods run on the closed node: only how many they are counts
    running = Allocation(job="a", holds=tuple(Hold(node="closed", pods=p.count, podset=p.name) for p in job.podsets))
    request = Request(nodes=(*big, *small, closed), jobs=(job,), allocations=(running,))
    assert LeastDomains(Placed(request, placement(a={}))).of("a", "node") == least, why


def test_least_is_at_most_what_is_used() -> None:
    """Two nodes of 4 would be needed by counting; the job runs on one of 64 that has been closed since."""
    nodes = (*(Node(name=f"n{i}", gpus=4) for i in range(3)), Node(name="closed", gpus=64, schedulable=False))
    running = Allocation(job="a", holds=(Hold(node="closed", pods=2, gpus=8),))
    request = Request(nodes=nodes, jobs=(gang("a", 2, 4),), allocations=(running,))
    (found,) = job_stretch(Placed(request, placement(a={})))
    assert (found.used, found.least, found.slowdown) == ({"node": 1}, {"node": 1}, 1.0)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(1, 3), st.data())
def test_least_is_exact_for_one_shape(gpus: list[int], size: int, data: st.DataObject) -> None:
    """Against every subset of nodes."""
    room = [g // size for g in gpus]
    assume(sum(room))
    pods = data.draw(st.integers(1, sum(room)))
    least = min(k for k in range(1, len(room) + 1) if any(sum(c) >= pods for c in combinations(room, k)))
    nodes = tuple(Node(name=f"n{i}", gpus=g) for i, g in enumerate(gpus))
    running = Allocation(job="a", holds=(Hold(node="n0", pods=pods),))
    request = Request(nodes=nodes, jobs=(gang("a", pods, size),), allocations=(running,))
    assert LeastDomains(Placed(request, placement(a={}))).of("a", "node") == least


def slowdown(request: Request, where: Placement, **options: float) -> float:
    (found,) = job_stretch(Placed(request, where), **options)  # type: ignore[arg-type]
    return found.slowdown


def test_slowdown_by_hand_from_the_defaults() -> None:
    request = racks(FOUR_RACKS, jobs=[gang("a", 2, 4)])  # fits one node: ideal 3600
    for where, narrowest in (
        ({"r1n1": 2}, 3600),
        ({"r1n1": 1, "r1n2": 1}, 400),  # out of the nodes
        ({"r1n1": 1, "r2n1": 1}, 200),  # out of the racks
        ({"r1n1": 1, "r3n1": 1}, 100),  # out of the blocks
    ):
        assert slowdown(request, placement(a=where)) == pytest.approx(1 + 0.3 * (3600 / narrowest - 1))
        assert slowdown(request, placement(a=where), communication_share=0) == 1


def test_what_a_gang_must_cross_is_no_slowdown() -> None:
    request = racks(FOUR_RACKS, jobs=[gang("a", 2, 8)])
    assert slowdown(request, placement(a={"r1n1": 1, "r1n2": 1})) == 1
    assert slowdown(request, placement(a={"r1n1": 1, "r2n2": 1})) == pytest.approx(1 + 0.3 * (400 / 200 - 1))


def test_uplinks_of_the_fabric_come_before_the_table() -> None:
    nodes = tuple(Node(name=f"{r}{i}", path=(r,), gpus=8) for r in "xyz" for i in range(2))
    links = (Link(a="x", gbps=400, links=8), Link(a="y", gbps=400, links=2))  # 200 and 50 Gbit/s per GPU, z unknown
    request = Request(fabric=FabricSpec(levels=("rack",), links=links), nodes=nodes, jobs=(gang("a", 2, 8),))
    table = {"rack": 100.0, "node": 500.0}
    for where, narrowest in (({"x0": 1, "z0": 1}, 100), ({"x0": 1, "y0": 1}, 50)):
        (found,) = job_stretch(Placed(request, placement(a=where)), gbps_per_gpu=table)
        assert found.slowdown == pytest.approx(1 + 0.3 * (500 / narrowest - 1))  # one rack would do, not one node


def test_the_ideal_takes_the_widest_uplink() -> None:
    """Three pods of a node each cannot stay in a rack of two nodes; the best uplink has 100 Gbit/s per GPU."""
    nodes = tuple(Node(name=f"{r}{i}", path=(r,), gpus=8) for r in "xy" for i in range(2))
    links = (Link(a="x", gbps=400, links=4), Link(a="y", gbps=400))  # 100 and 25 Gbit/s per GPU
    request = Request(fabric=FabricSpec(levels=("rack",), links=links), nodes=nodes, jobs=(gang("a", 3, 8),))
    assert slowdown(request, placement(a={"x0": 1, "x1": 1, "y0": 1})) == pytest.approx(1 + 0.3 * (100 / 25 - 1))


def test_gangs_that_do_not_talk_are_not_slowed() -> None:
    request = racks(FOUR_RACKS, jobs=[gang("a", 2, 4, communication="none")])
    assert slowdown(request, placement(a={"r1n1": 1, "r3n1": 1})) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"communication_share": 1.5}, "a share of communication of 1.5: give 0 to 1"),
        ({"gbps_per_gpu": {"rak": 1.0}}, "bandwidth for the unknown level 'rak': levels: block, rack, node"),
        ({"gbps_per_gpu": {"rack": 0.0}}, "a bandwidth of 0.0 Gbit/s: give positive numbers"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        job_stretch(Placed(racks(FOUR_RACKS)), **options)  # type: ignore[arg-type]
