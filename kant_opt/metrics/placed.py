"""A placement beside its request: looked up and counted once, shared by every measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import Fabric, build_fabric
from kant_opt.metrics.usage import Integers, Usage, usage_of
from kant_opt.schema import NODE_LEVEL, Job, PlacedPods, Placement, PodSet, Request


@dataclass(frozen=True)
class NewPods:
    """One entry of a placement with the names resolved; `node` is the position in `request.nodes`."""

    job: Job
    podset: PodSet
    node: int
    entry: PlacedPods


class Placed:
    """Request, placement and fabric, and what all measures need of them. Arrays follow `request.nodes`.

    Any placement whose names exist can be measured, valid or not; that is for `verify` to say. Without a placement
    it is the state before. Raises InputError where a job, podset or node is unknown, or the fabric lacks a node.
    """

    def __init__(self, request: Request, placement: Placement | None = None, fabric: Fabric | None = None) -> None:
        self.request = request
        self.placement = placement or Placement()
        self.fabric = fabric or build_fabric(request.fabric, request.nodes)
        self.jobs = {job.name: job for job in request.jobs}
        self.node_index = {node.name: n for n, node in enumerate(request.nodes)}
        if missing := [name for name in self.node_index if name not in self.fabric.paths]:
            raise InputError(
                f"the fabric does not know node {missing[0]!r} of the request ({len(missing)} such)",
                way_out="build it from this request's nodes",
            )
        self.new_pods = tuple(self._new_pods())

    def _new_pods(self) -> Iterator[NewPods]:
        for j, placed in enumerate(self.placement.jobs):
            job = self.jobs.get(placed.job)
            if job is None:
                raise UnknownName("job", placed.job, self.jobs, place=f"jobs.{j}.job")
            podsets = {p.name: p for p in job.podsets}
            for i, entry in enumerate(placed.pods):
                if entry.podset not in podsets:
                    raise UnknownName(f"podset of job {job.name!r}", entry.podset, podsets, place=f"jobs.{j}.pods.{i}")
                if entry.node not in self.node_index:
                    raise UnknownName("node", entry.node, self.node_index, place=f"jobs.{j}.pods.{i}")
                yield NewPods(job, podsets[entry.podset], self.node_index[entry.node], entry)

    @cached_property
    def usage(self) -> Usage:
        """What is used and free on every node after the placement."""
        return usage_of(self.request, self.new_pods, self.node_index)

    @cached_property
    def outer_levels(self) -> tuple[str, ...]:
        """The levels above `node`, outermost first."""
        return tuple(level for level in self.fabric.levels if level != NODE_LEVEL)

    @cached_property
    def pods_on(self) -> dict[str, dict[str, int]]:
        """Job -> node -> pods, new and living, for every job placed; jobs in order of the request."""
        found: dict[str, dict[str, int]] = {placed.job: {} for placed in self.placement.jobs}
        for new in self.new_pods:
            on = found[new.job.name]
            on[new.entry.node] = on.get(new.entry.node, 0) + new.entry.count
        for allocation in self.request.allocations:
            if allocation.job not in found:
                continue
            on = found[allocation.job]
            for hold in allocation.holds:
                if hold.pods:
                    on[hold.node] = on.get(hold.node, 0) + hold.pods
        return {name: found[name] for name in self.jobs if name in found}

    @cached_property
    def pods_of(self) -> dict[str, dict[str, int]]:
        """Job -> podset -> pods, new and living, for every job placed; a hold without podset is of the first."""
        found: dict[str, dict[str, int]] = {name: {} for name in self.pods_on}
        for new in self.new_pods:
            of = found[new.job.name]
            of[new.podset.name] = of.get(new.podset.name, 0) + new.entry.count
        for allocation in self.request.allocations:
            if allocation.job not in found:
                continue
            of = found[allocation.job]
            first = self.jobs[allocation.job].podsets[0].name
            for hold in allocation.holds:
                of[hold.podset or first] = of.get(hold.podset or first, 0) + hold.pods
        return found

    def pods_per_domain(self, job: str, level: str) -> list[int]:
        """Return how many pods of a placed job lie in each domain of `level` that it uses, in no special order."""
        depth = self.fabric.depth(level) + 1
        paths = self.fabric.paths
        counts: dict[tuple[str, ...], int] = {}
        for node, pods in self.pods_on[job].items():
            domain = paths[node][:depth]
            counts[domain] = counts.get(domain, 0) + pods
        return list(counts.values())

    def domain_ids(self, level: str) -> Integers:
        """Return the position in `fabric.domains(level)` of each node's domain: (n_nodes,)."""
        if level not in self._domain_ids:
            number = {path: i for i, path in enumerate(self.fabric.domains(level))}
            depth, paths = self.fabric.depth(level) + 1, self.fabric.paths
            ids = (number[paths[node.name][:depth]] for node in self.request.nodes)
            self._domain_ids[level] = np.fromiter(ids, np.int64, len(self.request.nodes))
        return self._domain_ids[level]

    @cached_property
    def _domain_ids(self) -> dict[str, Integers]:
        return {}

    def sum_per_domain(self, level: str, values: Integers) -> Integers:
        """Return the sum of a per-node array inside each domain: (n_domains,), in order of `fabric.domains(level)`."""
        sums = np.zeros(len(self.fabric.domains(level)), dtype=np.int64)
        np.add.at(sums, self.domain_ids(level), values)
        return sums
