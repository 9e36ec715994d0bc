"""Free room: slot counts keep up with what is taken, and what is given back is as it was."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.fabric import build_fabric
from kant_opt.schema import Allocation, Gpu, Hold, Job, Node, PodSet, Request
from kant_opt.testing.builders import racks, running
from kant_opt.testing.strategies import requests
from kant_opt.view import Cluster, Free, Shape, compile_gangs

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=120,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def free_of(request: Request) -> Free:
    return Free(Cluster(request, build_fabric(request.fabric, request.nodes)))


@CALM
@given(requests(max_nodes=4, max_jobs=3), st.data())
def test_counts_after_taking_are_the_counts_of_a_fresh_look(request: Request, data: st.DataObject) -> None:
    free = free_of(request)
    parts = [part for gang in compile_gangs(free.cluster) for part in gang.parts]
    for part in parts:
        free.slots(part.shape, part.eligible)  # cached before anything is taken
    before = (free.units.copy(), free.cpu.copy(), free.memory.copy(), free.pods.copy(), free.whole.copy())
    taken = []
    for _ in range(data.draw(st.integers(0, 4))):
        part = data.draw(st.sampled_from(parts))
        room = free.slots(part.shape, part.eligible)
        if room.any():
            node = int(data.draw(st.sampled_from(np.flatnonzero(room).tolist())))
            taken.append((node, part.shape, free.take(node, part.shape, 1, part.job.name), part.job.name))
    for part in parts:
        kept_up = free.slots(part.shape, part.eligible).copy()
        free._slots.clear()
        assert kept_up.tolist() == free.slots(part.shape, part.eligible).tolist()
    assert (free.units >= 0).all()
    assert (free.cpu >= 0).all()
    for node, shape, gpus, job in reversed(taken):
        free.release(node, shape, 1, job, gpus)
    after = (free.units, free.cpu, free.memory, free.pods, free.whole)
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_shares_in_mib_are_exact() -> None:
    """46,068 MiB hold 23 pods of 2,000 MiB and 68 MiB more, not 24 as with shares rounded to hundredths."""
    node = Node(name="n", gpus=1, gpu_memory_mib=46_068)
    job = Job(name="j", podsets=(PodSet(count=30, gpu_memory_mib=2_000),))
    free = free_of(Request(nodes=(node,), jobs=(job,)))
    (gang,) = compile_gangs(free.cluster)
    assert free.slots(gang.parts[0].shape, gang.parts[0].eligible).tolist() == [23]


def test_thousandths_and_mib_share_one_gpu_exactly() -> None:
    """700/1000 and 301 of 1000 MiB exceed the GPU by 1/1000; 300 of them do not."""
    node = Node(name="n", gpus=1, gpu_memory_mib=1000)
    held = Allocation(job="old", holds=(Hold(node="n", gpu_indices=(0,), gpu_milli=700),))
    free = free_of(Request(nodes=(node,), allocations=(held,)))
    anywhere = np.ones(1, dtype=bool)
    assert free.slots(Shape(0, 0, 301, 0, 0), anywhere).tolist() == [0]
    assert free.slots(Shape(0, 0, 300, 0, 0), anywhere).tolist() == [1]


def test_over_committed_node_has_nothing_free_and_is_flagged() -> None:
    request = racks("6", allocations=(running("old", {"r1n1": 8}),))
    free = free_of(request)
    assert free.whole.tolist() == [0]
    assert [flag.subject for flag in free.flags] == ["r1n1"]
    assert "2 GPUs" in free.flags[0].text


def test_whole_gpus_come_from_the_tightest_island_that_holds_the_pod() -> None:
    """Islands {0, 1, 2, 3} and {4, 5}: two GPUs leave the four together, three do not fit the pair."""
    details = tuple(Gpu(index=i, island=0 if i < 4 else 1) for i in range(6))
    free = free_of(Request(nodes=(Node(name="n", gpus=6, gpu_details=details),)))
    assert free.take(0, Shape(3, 0, 0, 0, 0), 1, "a") == ((0, 1, 2),)
    assert free.take(0, Shape(2, 0, 0, 0, 0), 1, "b") == ((4, 5),)


def test_a_share_goes_on_the_fullest_gpu_that_holds_it() -> None:
    held = Allocation(
        job="old",
        holds=(
            Hold(node="n", gpu_indices=(0,), gpu_milli=300),
            Hold(node="n", gpu_indices=(1,), gpu_milli=600),
            Hold(node="n", gpu_indices=(2,), gpu_milli=900),
        ),
    )
    free = free_of(Request(nodes=(Node(name="n", gpus=4),), allocations=(held,)))
    assert free.take(0, Shape(0, 400, 0, 0, 0), 1, "a") == ((1,),)
    assert free.take(0, Shape(0, 400, 0, 0, 0), 1, "b") == ((0,),)
    assert free.take(0, Shape(0, 400, 0, 0, 0), 1, "c") == ((3,),)
