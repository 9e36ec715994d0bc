"""Jobs alike: those that may change places in any answer, so that it is enough to count how many of them are placed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from kant_opt.schema import Request
from kant_opt.view import Cluster, Gang, Part

Demand = tuple[Part, ...]
"""Parts to be placed as one: the parts of jobs alike, or one part by itself."""


def demands(cluster: Cluster, gangs: Iterable[Gang]) -> list[Demand]:
    """Return the parts with pods to place, those of jobs alike together, in the order of the first of each."""
    bound = _bound(cluster.request)
    found: dict[Hashable, list[Part]] = {}
    for gang in gangs:
        for i in gang.open_parts:
            part = gang.parts[i]
            key = _key(cluster, gang, part) if part.job.name not in bound else None
            found.setdefault(id(part) if key is None else key, []).append(part)
    return [tuple(parts) for parts in found.values()]


def each_alone(gangs: Sequence[Gang], *, also_empty: bool) -> list[Demand]:
    """Return every part by itself; with `also_empty` those without pods to place, too."""
    return [(part,) for gang in gangs for part in gang.parts if also_empty or part.target]


def _bound(request: Request) -> set[str]:
    """Return the names of jobs that somebody else's rule, a group or an allocation speaks of."""
    named = {name for group in request.groups for name in group.jobs}
    named |= {alloc.job for alloc in request.allocations}
    return named | {name for job in request.jobs for rule in job.apart for name in rule.jobs}


def _key(cluster: Cluster, gang: Gang, part: Part) -> Hashable | None:
    """Return what jobs alike have in common, None where a rule or a cost tells the job's pods from those of others.

    A single pod lies in one domain of every level, so levels mean nothing to it, nor do they to pods that one node has
    to hold. Other jobs of several pods are alike only where nothing speaks of levels: then it does not matter which
    pods are one job's.
    """
    job = part.job
    if len(gang.parts) > 1 or part.least != part.target or job.together or job.apart or job.exclusive_level:
        return None
    if any(part.target % size for _, size in part.slices):
        return None
    one = part.target == 1 or on_one_node(cluster, part)
    if not one and not _is_loose(cluster, part):
        return None
    return part.shape, part.eligible.tobytes(), part.podset.pools, part.target, one, job.priority, job.queue


def on_one_node(cluster: Cluster, part: Part) -> bool:
    """Return whether one node has to hold all new pods of a part that no spread would part."""
    depth = cluster.tree.node_depth
    return part.required == depth and part.least == part.target and not part.living and not part.spread


def _is_loose(cluster: Cluster, part: Part) -> bool:
    ruled = part.required or part.slices or part.spread
    rooted = cluster.tree.fabric.separate_roots and not part.job.may_span_fabrics
    costs = part.job.communication != "none" and cluster.tree.leaf_depth > 0
    return not (ruled or rooted or costs)
