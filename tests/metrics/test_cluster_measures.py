"""Allocation and fragmentation ratios, the largest gangs, Slurm's block sum."""

from __future__ import annotations

import pytest

from kant_opt.errors import InputError
from kant_opt.metrics import (
    ClusterMeasures,
    Placed,
    before_and_after,
    block_sum,
    cluster_measures,
    largest_gangs,
)
from kant_opt.schema import Allocation, Gpu, Hold, Node, Request
from kant_opt.testing.builders import gang, placement, racks


def test_ratios_before_and_after_a_placement() -> None:
    request = racks("8,8|8,4", gpus_total=8, jobs=[gang("a", 2, 6)])
    before, after = before_and_after(Placed(request, placement(a={"r1n1": 1, "r1n2": 1})))
    assert (before.gar, before.gfr) == (4 / 32, 1 / 4)
    assert (after.gar, after.gfr) == ((4 + 12) / 32, 3 / 4)
    assert (before.free_gpus, after.free_gpus) == (28, 16)
    assert (before.broken_leaves, after.broken_leaves) == (1, 1)


def test_gar_is_the_gpus_that_pods_ask_for() -> None:
    jobs = [gang("whole", 3, 2), gang("milli", 2, 0, gpu_milli=250), gang("mib", 1, 0, gpu_memory_mib=30)]
    nodes = tuple(Node(name=n, gpus=4, gpu_memory_mib=80) for n in "xy")
    where = placement(whole={"x": 1, "y": 2}, milli={"x": [(3,), (3,)]}, mib={"x": [(2,)]})
    found = cluster_measures(Placed(Request(nodes=nodes, jobs=tuple(jobs)), where))
    asked = 3 * 2 + 2 * 0.250 + 30 / 80
    assert found.gar == pytest.approx(asked / 8)
    assert found.free_gpus == 0
    assert found.free_parts == pytest.approx(0.5 + 50 / 80)
    assert found.allocated_gpus + found.free_gpus + found.free_parts == pytest.approx(found.gpus)


def test_closed_nodes_and_ill_gpus_are_in_neither_part_of_a_ratio() -> None:
    ill = Node(name="ill", gpus=4, gpu_details=(Gpu(index=3, healthy=False),))
    closed = Node(name="closed", gpus=8, schedulable=False)
    running = Allocation(job="x", holds=(Hold(node="closed", gpus=8), Hold(node="ill", gpus=3)))
    found = cluster_measures(Placed(Request(nodes=(ill, closed), allocations=(running,))))
    assert (found.gpus, found.nodes, found.gar, found.gfr) == (3, 1, 1.0, 0.0)


def test_a_cluster_without_gpus_has_no_ratio() -> None:
    found = cluster_measures(Placed(Request(nodes=(Node(name="cpu"),))))
    assert found == ClusterMeasures(
        gpus=0, nodes=0, allocated_gpus=0.0, free_gpus=0, free_parts=0.0, gar=None, gfr=None, broken_nodes=0,
        broken_leaves=0, largest=(),
    )  # fmt: skip


def test_largest_gang_per_level_and_pod_size() -> None:
    # free GPUs: rack r1 8 and 3, r2 5 and 5, r3 (other block) 8, 8 and 1
    placed = Placed(racks("8,3|5,5/8,8,1", gpus_total=8))
    found = {(g.level, g.pod_gpus): (g.pods, g.domain) for g in largest_gangs(placed, [5, 2])}
    assert found == {
        ("block", None): (2, ("b2",)),
        ("block", 2): (9, ("b1",)),  # 4 + 1 + 2 + 2 against 4 + 4 + 0
        ("block", 5): (3, ("b1",)),  # 8, 5, 5
        ("rack", None): (2, ("b2", "r3")),
        ("rack", 2): (8, ("b2", "r3")),
        ("rack", 5): (2, ("b1", "r2")),
        ("node", None): (1, ("b1", "r1", "r1n1")),
        ("node", 2): (4, ("b1", "r1", "r1n1")),
        ("node", 5): (1, ("b1", "r1", "r1n1")),
    }


def test_largest_gang_per_pool_leaves_out_ill_and_closed_nodes() -> None:
    nodes = (
        Node(name="a1", gpus=4, pools=("A",)),
        Node(name="ab", gpus=4, pools=("A", "B")),
        Node(name="b-ill", gpus=4, pools=("B",), gpu_details=(Gpu(index=0, healthy=False),)),
        Node(name="a-closed", gpus=4, pools=("A",), schedulable=False),
        Node(name="cpu", pools=("C",)),
    )
    request = Request(fabric={"levels": ("all",)}, nodes=tuple(n.model_copy(update={"path": ("x",)}) for n in nodes))
    found = {(g.pool, g.pod_gpus): g.pods for g in largest_gangs(Placed(request), [3]) if g.level == "all"}
    # three of the ill node's GPUs take a pod of three, but a whole-node pod wants four
    assert found == {("A", None): 2, ("A", 3): 2, ("B", None): 1, ("B", 3): 2}


def test_a_pod_size_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="a pod size of 0 GPUs: give sizes of 1 or more"):
        cluster_measures(Placed(racks("8")), [0])


@pytest.mark.parametrize(
    ("text", "total", "why"),
    [
        ("8,8|8,8/8,8|8,8", 0, "empty"),
        ("7,8|8,8/8,8|8,8", 1 + 2 + 4, "one node: itself, its rack of 2, its block of 4"),
        ("7,7|8,8/8,8|8,8", 2 + 2 + 4, "the next in the same rack adds itself only"),
        ("7,8|7,8/8,8|8,8", 2 + 4 + 4, "in another rack it spoils that one too"),
        ("7,8|8,8/7,8|8,8", 2 + 4 + 8, "in another block both levels again"),
        ("0,0|0,0/0,0|0,0", 8 + 8 + 8, "full: every node on every level"),
    ],
)
def test_block_sum_by_hand(text: str, total: int, why: str) -> None:
    assert block_sum(Placed(racks(text, gpus_total=8))) == total, why


def test_block_sum_takes_closed_and_ill_nodes_for_used_and_cpu_nodes_for_absent() -> None:
    spoiled = [
        Node(name="n", path=("r",), gpus=2, schedulable=False),
        Node(name="n", path=("r",), gpus=2, gpu_details=(Gpu(index=0, healthy=False),)),
    ]
    others = (Node(name="m", path=("r",), gpus=2), Node(name="cpu", path=("r",), schedulable=False))
    for node in spoiled:
        assert block_sum(Placed(Request(fabric={"levels": ("rack",)}, nodes=(node, *others)))) == 1 + 2
