"""Cases in one line: racks of nodes, gangs, placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PlacedJob, PlacedPods, Placement, PodSet, Request

Where = Mapping[str, int | list[tuple[int, ...]]]
"""Node -> number of pods, or the GPU indices of each pod."""


def racks(free: str, *, gpus_total: int | None = None, jobs: Iterable[Job] = (), **fields: Any) -> Request:
    """Return a request whose nodes have the free GPUs written, "," between nodes and "|" between racks.

    "/" between blocks of racks adds a level. Racks are r1, r2, ... and their nodes r1n1, r1n2, ... through all
    blocks b1, b2, ... With `gpus_total` each node has so many GPUs and a running job "old" holds the rest; without
    it a node has just the GPUs that are free. `fields` are further fields of the request, e.g. `queues`.

    >>> request = racks("3,4|4", gpus_total=4, jobs=[gang("a", 2, 4)])
    >>> [(n.name, n.path, n.gpus) for n in request.nodes]
    [('r1n1', ('r1',), 4), ('r1n2', ('r1',), 4), ('r2n1', ('r2',), 4)]
    >>> request.allocations[0].holds[0].node, request.allocations[0].holds[0].gpus
    ('r1n1', 1)
    """
    nodes, holds, rack = [], [], 0
    for b, block in enumerate(free.split("/"), start=1):
        for text in block.split("|"):
            rack += 1
            path = (f"b{b}", f"r{rack}") if "/" in free else (f"r{rack}",)
            for n, count in enumerate(map(int, text.split(",")), start=1):
                total = count if gpus_total is None else gpus_total
                nodes.append(Node(name=f"r{rack}n{n}", path=path, gpus=total))
                if count < total:
                    holds.append(Hold(node=f"r{rack}n{n}", gpus=total - count))
    if holds:
        fields["allocations"] = (Allocation(job="old", holds=tuple(holds)), *fields.get("allocations", ()))
    levels = ("block", "rack") if "/" in free else ("rack",)
    return Request(fabric=FabricSpec(levels=levels), nodes=tuple(nodes), jobs=tuple(jobs), **fields)


def gang(name: str, pods: int, gpus: int = 1, **rules: Any) -> Job:
    """Return a job of one podset "main". Each rule goes to the job or to the podset, whichever has such a field.

    Shares come as `gpus=0, gpu_milli=500`.

    >>> job = gang("a", 4, 8, required_level="rack", priority=3)
    >>> job.priority, job.podsets[0].required_level
    (3, 'rack')
    """
    of_job = {key: value for key, value in rules.items() if key in Job.model_fields}
    of_podset = {key: value for key, value in rules.items() if key not in Job.model_fields}
    return Job(name=name, podsets=(podset("main", pods, gpus, **of_podset),), **of_job)


def podset(name: str, pods: int, gpus: int = 1, **rules: Any) -> PodSet:
    """Return a podset, for gangs of several shapes: `Job(name="a", podsets=(podset("lead", 1), ...))`."""
    return PodSet(name=name, count=pods, gpus=gpus, **rules)


def placed(job: str, where: Where | None = None, **podsets: Where) -> PlacedJob:
    """Return the pods of a job: `where` those of podset "main", further podsets by name.

    >>> [(p.podset, p.node, p.count, p.gpus) for p in placed("a", {"n1": 2}, tail={"n2": [(3,)]}).pods]
    [('main', 'n1', 2, ()), ('tail', 'n2', 1, ((3,),))]
    """
    sets = {"main": where, **podsets} if where else podsets
    return PlacedJob(job=job, pods=tuple(_pods(s, node, n) for s, w in sets.items() for node, n in (w or {}).items()))


def placement(**jobs: Where) -> Placement:
    """Return a placement of jobs of one podset "main": `placement(a={"r1n1": 2})`."""
    return Placement(jobs=tuple(placed(job, where) for job, where in jobs.items()))


def running(job: str, holds: Mapping[str, int], *, gpus: int = 1, **fields: Any) -> Allocation:
    """Return a running job with so many pods of `gpus` GPUs each on each node."""
    return Allocation(job=job, holds=tuple(Hold(node=n, pods=p, gpus=p * gpus) for n, p in holds.items()), **fields)


def _pods(podset_name: str, node: str, pods: int | list[tuple[int, ...]]) -> PlacedPods:
    if isinstance(pods, int):
        return PlacedPods(podset=podset_name, node=node, count=pods)
    return PlacedPods(podset=podset_name, node=node, count=len(pods), gpus=tuple(pods))
