"""What is admitted as one: a job, or the jobs of a group, with all rules as depths and counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kant_opt.schema import Job, PodSet, Request
from kant_opt.view.cluster import Cluster, Shape, shape_of
from kant_opt.view.tree import Mask, Tree


@dataclass(frozen=True, eq=False)
class Part:
    """One podset: how many pods are still to be placed and under which rules, levels as depths of the tree."""

    job: Job
    podset: PodSet
    shape: Shape
    eligible: Mask
    target: int
    """New pods wanted."""
    least: int
    """New pods without which the gang does not run."""
    living: Mapping[int, int]
    """Pods that run already, by node index."""
    required: int
    """Depth of the required level, 0 = none."""
    preferred: int
    slices: tuple[tuple[int, int], ...]
    """(depth, size), outermost first."""
    spread: tuple[tuple[int, int], ...]

    @cached_property
    def unit(self) -> int:
        """Pods come in multiples of this at and above the outermost slice level."""
        return self.slices[0][1] if self.slices else 1

    @property
    def balance_depth(self) -> int:
        """Depth of the level over whose domains the pods are to be even, 0 = none."""
        return self.preferred if self.podset.balance else 0

    @property
    def gpu_milli(self) -> int:
        """GPU thousandths of one pod; for MiB shares counted as one GPU at most, for ordering only."""
        return 1000 * self.shape.gpus or self.shape.milli or (1000 if self.shape.mib else 0)

    @property
    def worth(self) -> int:
        """What one pod adds to the term `admitted`: its GPU thousandths, one where it has none."""
        return max(1, self.gpu_milli)


@dataclass(frozen=True, eq=False)
class Gang:
    """Parts that start together. Rules name parts by their index.

    `scopes`: (depth, parts) that lie in one domain of that depth; `apart`: (depth, sets of parts) of which no domain
    holds two. Rules towards other jobs are read from the jobs when the gang is placed.
    """

    name: str
    jobs: tuple[Job, ...]
    parts: tuple[Part, ...]
    scopes: tuple[tuple[int, frozenset[int]], ...] = ()
    apart: tuple[tuple[int, tuple[frozenset[int], ...]], ...] = ()
    groups: tuple[str, ...] = ()
    """Names of the all-or-none groups it stands for."""
    position: int = field(default=0, compare=False)

    @cached_property
    def priority(self) -> int:
        return max(job.priority for job in self.jobs)

    @cached_property
    def gpu_milli(self) -> int:
        return sum(part.target * part.gpu_milli for part in self.parts)

    @cached_property
    def open_parts(self) -> tuple[int, ...]:
        """Indices of the parts with pods to place."""
        return tuple(i for i, part in enumerate(self.parts) if part.target)

    @cached_property
    def common_depth(self) -> int:
        """Depth of the innermost domain that has to hold the whole gang, 0 = none."""
        everyone = frozenset(self.open_parts)
        return max((depth for depth, parts in self.scopes if parts >= everyone), default=0)


def compile_gangs(cluster: Cluster) -> list[Gang]:
    """Return the request's gangs in the order given; a group stands where its first job stood."""
    request = cluster.request
    living = living_pods(request, cluster.tree)
    members = _bound_together(request, living)
    return [compile_gang(cluster, jobs, living, position) for position, jobs in enumerate(members)]


def compile_gang(
    cluster: Cluster,
    jobs: Iterable[Job],
    living: Mapping[tuple[str, str], Mapping[int, int]],
    position: int = 0,
) -> Gang:
    """Return one gang of `jobs`, which are admitted together."""
    jobs = tuple(jobs)
    tree = cluster.tree
    parts: list[Part] = []
    scopes: list[tuple[int, frozenset[int]]] = []
    apart: list[tuple[int, tuple[frozenset[int], ...]]] = []
    own: dict[str, frozenset[int]] = {}
    for job in jobs:
        first = len(parts)
        for podset in job.podsets:
            parts.append(_part(cluster, job, podset, living.get((job.name, podset.name), {})))
            if parts[-1].required:
                scopes.append((parts[-1].required, frozenset({len(parts) - 1})))
        own[job.name] = frozenset(range(first, len(parts)))
        at = {podset.name: first + i for i, podset in enumerate(job.podsets)}
        if tree.fabric.separate_roots and not job.may_span_fabrics:
            scopes.append((1, own[job.name]))
        for tie in job.together:
            scopes.append((tree.depth(tie.level), frozenset(at[p] for p in tie.podsets) or own[job.name]))
        for rule in job.apart:
            if len(rule.podsets) > 1:
                apart.append((tree.depth(rule.level), tuple(frozenset({at[p]}) for p in rule.podsets)))
    for job in jobs:
        for rule in job.apart:
            for other in rule.jobs:
                if other in own:
                    apart.append((tree.depth(rule.level), (own[job.name], own[other])))
        if job.exclusive_level:
            depth = tree.depth(job.exclusive_level)
            apart += [(depth, (own[job.name], own[other.name])) for other in jobs if other is not job]
    groups = [g for g in cluster.request.groups if not own.keys().isdisjoint(g.jobs)]
    for group in groups:
        if group.together_level:
            members = frozenset(k for name in group.jobs if name in own for k in own[name])
            scopes.append((tree.depth(group.together_level), members))
    return Gang(
        name=jobs[0].name,
        jobs=jobs,
        parts=tuple(parts),
        scopes=tuple(scopes),
        apart=tuple(apart),
        groups=tuple(group.name for group in groups if group.all_or_none),
        position=position,
    )


def _bound_together(request: Request, living: Mapping[tuple[str, str], Mapping[int, int]]) -> list[list[Job]]:
    """Return the jobs in sets that are admitted together, by all-or-none groups that share jobs.

    A job with nothing to place is admitted as it is and binds nobody.
    """
    root = {job.name: job.name for job in request.jobs}
    waiting = {
        job.name
        for job in request.jobs
        if any(p.count - p.finished > sum(living.get((job.name, p.name), {}).values()) for p in job.podsets)
    }

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    for group in request.groups:
        if group.all_or_none:
            together = [name for name in group.jobs if name in waiting]
            for name in together:
                root[find(name)] = find(together[0])
    members: dict[str, list[Job]] = {}
    for job in request.jobs:
        members.setdefault(find(job.name), []).append(job)
    return list(members.values())


def living_pods(request: Request, tree: Tree) -> dict[tuple[str, str], dict[int, int]]:
    """Return pods that run already per (job, podset) and node index, for the jobs of the request."""
    first = {job.name: job.podsets[0].name for job in request.jobs}
    found: dict[tuple[str, str], dict[int, int]] = {}
    for alloc in request.allocations:
        if alloc.job not in first:
            continue
        for hold in alloc.holds:
            if hold.pods:
                nodes = found.setdefault((alloc.job, hold.podset or first[alloc.job]), {})
                node = tree.index[hold.node]
                nodes[node] = nodes.get(node, 0) + hold.pods
    return found


def _part(cluster: Cluster, job: Job, podset: PodSet, living: Mapping[int, int]) -> Part:
    tree = cluster.tree
    alive = sum(living.values())
    wanted = podset.count - podset.finished
    target = max(0, wanted - alive)
    least = target
    if podset.min_count is not None:
        least = max(0, min(podset.min_count, wanted) - alive)
        if podset.slices:  # whole slices only
            size = podset.slices[0].size
            least = min(target, -(-(least + alive) // size) * size - alive)
    return Part(
        job=job,
        podset=podset,
        shape=shape_of(podset),
        eligible=cluster.eligible(job, podset),
        target=target,
        least=least,
        living=living,
        required=tree.depth(podset.required_level) if podset.required_level else 0,
        preferred=tree.depth(podset.preferred_level) if podset.preferred_level else 0,
        slices=tuple((tree.depth(s.level), s.size) for s in podset.slices),
        spread=tuple((tree.depth(s.level), s.max_per_domain) for s in podset.spread),
    )


def domain_counts(tree: Tree, pods: Mapping[int, int], depth: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return pods per domain of `depth` of a map from node index to pods."""
    counts = np.zeros(tree.num_domains(depth), dtype=np.int64)
    for node, number in pods.items():
        counts[tree.of_node[depth][node]] += number
    return counts
