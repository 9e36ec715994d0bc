"""The objective terms of a placement, computed from the placement alone."""

from __future__ import annotations

from collections.abc import Callable

from kant_opt.fabric import Fabric
from kant_opt.metrics.admitted import admitted
from kant_opt.metrics.fragmentation import broken_leaves, broken_nodes
from kant_opt.metrics.placed import Placed
from kant_opt.metrics.traffic import traffic
from kant_opt.registry import Registry
from kant_opt.schema import Placement, Request

Measure = Callable[[Placed], dict[str, int]]
"""From a placement to the values of one term, by the name of the objective level they are the value of."""

MEASURES: Registry[Measure] = Registry("measure")
MEASURES.add("admitted", admitted)
MEASURES.add("traffic", lambda placed: {"traffic": traffic(placed)})
MEASURES.add("broken_nodes", lambda placed: {"broken_nodes": broken_nodes(placed)})
MEASURES.add("broken_leaves", lambda placed: {"broken_leaves": broken_leaves(placed)})


def measure(request: Request, placement: Placement, fabric: Fabric | None = None) -> dict[str, int]:
    """Return every term of `models/README.md` for `placement`: `admitted[p]` from the highest class p down, then
    traffic, broken_nodes, broken_leaves.

    `fabric` saves building it again; it must be of this request. The placement need not be valid, but its names must
    exist: InputError otherwise. Linear in nodes, holds and pods.

    >>> from kant_opt.schema import Job, Node, PlacedJob, PlacedPods, PodSet
    >>> request = Request(
    ...     nodes=(Node(name="a", gpus=8), Node(name="b", gpus=8)),
    ...     jobs=(Job(name="j", priority=7, podsets=(PodSet(count=2, gpus=4),)),),
    ... )
    >>> measure(request, Placement(jobs=(PlacedJob(job="j", pods=(PlacedPods(node="a"), PlacedPods(node="b"))),)))
    {'admitted[7]': 8000, 'traffic': 0, 'broken_nodes': 2, 'broken_leaves': 0}
    """
    placed = Placed(request, placement, fabric)
    return {name: value for _, term in MEASURES.items() for name, value in term(placed).items()}
