"""The openb trace replayed as FGD's authors do: pods arrive one by one until 130 % of all GPUs were asked for.

Pods are drawn from the list with replacement; nobody leaves; a pod that does not fit is dropped. CPU, memory and GPUs
count, on the nodes that have GPUs.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX
ATC 2023.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from time import process_time

from kant_opt.backends import BACKENDS, Deadline, Task
from kant_opt.engine.place import to_placement
from kant_opt.fabric import Fabric, build_fabric
from kant_opt.io.openb import read_pair
from kant_opt.metrics import Placed, expected_unusable
from kant_opt.schema import Job, Limits, Placement, Request
from kant_opt.units import MILLI
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

LOAD = 1.30
"""GPUs asked for in the end, as a share of all GPUs."""


@dataclass(frozen=True)
class Replay:
    """One run: the arrivals, where those that fitted went, and the processor time spent on choosing."""

    arrivals: Request
    mix: Request
    """The pod list the arrivals were drawn from."""
    fabric: Fabric
    placement: Placement
    seconds: float

    @cached_property
    def total_milli(self) -> int:
        """GPUs of all nodes, thousandths."""
        return MILLI * sum(node.gpus for node in self.arrivals.nodes)

    def allocated_percent(self, load: float = LOAD) -> float:
        """Return GPUs in use, % of all, when `load` x all GPUs had been asked for."""
        demand = {job.name: gpu_milli(job) for job in self.arrivals.jobs}
        return 100 * sum(demand[job.job] for job in self.placed_until(load).jobs) / self.total_milli

    def unusable_percent(self, load: float) -> float:
        """Return FGD's fragmentation at `load`, % of all GPUs."""
        mix = ((podset, 1.0) for job in self.mix.jobs for podset in job.podsets)
        found = expected_unusable(Placed(self.arrivals, self.placed_until(load), self.fabric), mix).of_all
        assert found is not None
        return 100 * found

    def placed_until(self, load: float) -> Placement:
        """Return what was placed when `load` x all GPUs had been asked for: nobody leaves, so a part of the whole."""
        arrived: set[str] = set()
        asked = 0
        for job in self.arrivals.jobs:
            if asked >= load * self.total_milli:
                break
            asked += gpu_milli(job)
            arrived.add(job.name)
        return Placement(jobs=tuple(job for job in self.placement.jobs if job.job in arrived))


def folder() -> Path | None:
    """Return the folder of the trace, found as the `shared` fixture does it; None where it is missing."""
    root = Path(__file__).resolve().parents[2]
    found = Path(os.environ.get("KANT_OPT_SHARED", root.parent / "shared" / "data")) / "traces" / "openb"
    return found if found.is_dir() else None


def read_trace(workload: str = "default") -> Request:
    """Return the GPU nodes and the pods of one list of the trace."""
    data = folder()
    assert data is not None, "the trace is not beside the checkout"
    name = f"openb_pod_list_{workload}.csv"
    pods = data / name if workload == "default" else data / "pods" / f"{name}.gz"
    return read_pair(data / "openb_node_list_gpu_node.csv", pods)


def gpu_milli(job: Job) -> int:
    """Return the thousandths of GPUs that a job of one pod asks for."""
    (podset,) = job.podsets
    return MILLI * podset.gpus + (podset.gpu_milli or 0)


def draw_arrivals(trace: Request, seed: int, load: float = LOAD) -> Request:
    """Return a request whose jobs are drawn from the trace's until they ask for `load` x all GPUs."""
    draw = Random(seed)
    left = load * MILLI * sum(node.gpus for node in trace.nodes)
    jobs: list[Job] = []
    while left > 0:
        job = draw.choice(trace.jobs)
        left -= gpu_milli(job)
        jobs.append(job.model_copy(update={"name": f"{len(jobs):05}"}))
    return trace.model_copy(update={"jobs": tuple(jobs)})


def replay(trace: Request, backend: str, seed: int, load: float = LOAD) -> Replay:
    """Return one run of a backend. The engine's parts without its reasons: thousands are dropped here."""
    arrivals = draw_arrivals(trace, seed, load)
    fabric = build_fabric(arrivals.fabric, arrivals.nodes)
    cluster = Cluster(arrivals, fabric)
    gangs = compile_gangs(cluster)
    limits = Limits(seed=seed)
    started = process_time()
    answer = BACKENDS[backend].solve(
        Task(cluster, Free(cluster), Quotas(cluster), gangs, "online", limits, Deadline(None))
    )
    seconds = process_time() - started
    return Replay(arrivals, trace, fabric, to_placement(cluster, answer), seconds)
