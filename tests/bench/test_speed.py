"""How long it takes: run by `make bench`, figures in docs/benchmarks/speed.md. Nothing here asserts a time.

Processor time, which a busy machine changes least; imports are new processes and take the wall clock.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from random import Random
from time import perf_counter, process_time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kant_opt.engine import Session, place
from kant_opt.fabric import leaf_spine
from kant_opt.schema import Allocation, Hold, Job, Node, PodSet, Request

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(timer=process_time)]

SPINES = {2_048: 8, 20_480: 80}
SIZES = (1, 16, 128, 512)
GANGS = (1, 1, 1, 1, 1, 1, 2, 2, 4, 8)
"""Pods of 8 GPUs; gangs of one pod take 1, 2, 4 or 8 GPUs."""

IMPORTS = {
    "bare interpreter": "pass",
    "import kant_opt": "import kant_opt",
    "import kant_opt; kant_opt.place": "import kant_opt; kant_opt.place",
}


@pytest.mark.benchmark(timer=perf_counter)
@pytest.mark.parametrize("code", IMPORTS.values(), ids=IMPORTS)
def test_import(benchmark: BenchmarkFixture, code: str) -> None:
    """A new process each time, so the interpreter's own start is in every figure."""
    command = [sys.executable, "-c", code]
    done = benchmark(subprocess.run, command, check=True)
    assert done.returncode == 0


@pytest.mark.parametrize("pods", SIZES)
@pytest.mark.parametrize("nodes", SPINES)
def test_one_gang(benchmark: BenchmarkFixture, nodes: int, pods: int) -> None:
    """Place a gang of whole nodes and release it, on a cluster where two nodes of three are free."""
    session = _sessions(nodes)
    gang = Job(name="gang", podsets=(PodSet(count=pods, gpus=8),))

    def once() -> int:
        placed = session.place(gang)
        assert placed is not None
        session.release("gang")
        return len(placed.nodes)

    assert benchmark(once) == pods


@pytest.mark.parametrize("nodes", SPINES)
def test_one_small_pod(benchmark: BenchmarkFixture, nodes: int) -> None:
    """Place a pod of two GPUs, which goes on a node in use, and release it."""
    session = _sessions(nodes)
    job = Job(name="small", podsets=(PodSet(count=1, gpus=2),))

    def once() -> bool:
        found = session.place(job) is not None
        session.release("small")
        return found

    assert benchmark(once)


@pytest.mark.parametrize("nodes", SPINES)
def test_a_session_is_made(benchmark: BenchmarkFixture, nodes: int) -> None:
    """Read the cluster once; gangs are placed on it afterwards."""
    request = busy_cluster(nodes)
    assert benchmark(Session, request).placement.jobs == ()


@pytest.mark.parametrize("nodes", SPINES)
def test_queue_of_700_gangs(benchmark: BenchmarkFixture, nodes: int) -> None:
    """The whole of `place`: greedy, verifier, bounds, measures. All fit."""
    request = busy_cluster(nodes).model_copy(update={"jobs": tuple(queue(700))})
    outcome = benchmark(place, request)
    assert len(outcome.placement.jobs) == len(request.jobs) == 700


@pytest.mark.parametrize("pods", [1, 64])
def test_refusal_on_500_full_nodes(benchmark: BenchmarkFixture, pods: int) -> None:
    """The whole of `place` for one gang, with its reason."""
    spec, nodes = leaf_spine(spines=5, leaves=10, nodes_per_leaf=10)
    full = tuple(Allocation(job=f"r{i}", holds=(Hold(node=node.name, gpus=8),)) for i, node in enumerate(nodes))
    gang = Job(name="late", podsets=(PodSet(count=pods, gpus=8),))
    request = Request(fabric=spec, nodes=nodes, allocations=full, jobs=(gang,))
    outcome = benchmark(place, request)
    assert [reason.kind for reason in outcome.reasons] == ["not_now"]


@pytest.mark.parametrize("pods", [1, 64])
def test_refusal_in_a_session(benchmark: BenchmarkFixture, pods: int) -> None:
    """The refusal alone, as a scheduler asks for it that keeps its session."""
    spec, nodes = leaf_spine(spines=5, leaves=10, nodes_per_leaf=10)
    full = tuple(Allocation(job=f"r{i}", holds=(Hold(node=node.name, gpus=8),)) for i, node in enumerate(nodes))
    session = Session(Request(fabric=spec, nodes=nodes, allocations=full))
    assert benchmark(session.place, Job(name="late", podsets=(PodSet(count=pods, gpus=8),))) is None


def busy_cluster(nodes: int) -> Request:
    """Return 8-GPU nodes, 16 a leaf and 16 leaves a spine, of which about a third run a job of 1 to 8 GPUs."""
    draw = Random(nodes)
    spec, free = leaf_spine(spines=SPINES[nodes], leaves=16, nodes_per_leaf=16)
    return Request(fabric=spec, nodes=free, allocations=tuple(_running(free, draw)))


def queue(number: int) -> Iterator[Job]:
    """Yield gangs of mixed sizes, 15 GPUs on average: 700 of them take most of what 2,048 nodes have free."""
    draw = Random(number)
    for i in range(number):
        pods = draw.choice(GANGS)
        gpus = 8 if pods > 1 else draw.choice((1, 2, 4, 8))
        yield Job(name=f"q{i:03}", podsets=(PodSet(count=pods, gpus=gpus),))


def _running(nodes: tuple[Node, ...], draw: Random) -> Iterator[Allocation]:
    for i, node in enumerate(nodes):
        if draw.random() < 1 / 3:
            gpus = draw.choice((1, 2, 4, 8, 8, 8, 8, 8))
            yield Allocation(job=f"r{i}", holds=(Hold(node=node.name, gpus=gpus),))


_kept: dict[int, Session] = {}


def _sessions(nodes: int) -> Session:
    if nodes not in _kept:
        _kept[nodes] = Session(busy_cluster(nodes))
    return _kept[nodes]
