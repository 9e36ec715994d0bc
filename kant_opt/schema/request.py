"""The whole question in one document: fabric, nodes, what runs, what waits, what is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from kant_opt.errors import InputError, UnknownName
from kant_opt.schema.base import Frozen, Seconds, check_known, check_unique
from kant_opt.schema.cluster import Allocation, Queue, Reservation, Zone
from kant_opt.schema.fabric import FabricSpec
from kant_opt.schema.job import Job, JobGroup
from kant_opt.schema.node import Node
from kant_opt.schema.objective import Limits, Objective


class Request(Frozen):
    """One JSON file; the same answer on every machine."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: str = ""
    now_s: Seconds = 0
    fabric: FabricSpec = FabricSpec()
    nodes: tuple[Node, ...]
    allocations: tuple[Allocation, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    queues: tuple[Queue, ...] = ()
    inference_zone: Zone | None = None
    jobs: tuple[Job, ...] = ()
    groups: tuple[JobGroup, ...] = ()
    objective: Objective = Objective()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        check_unique("node", (n.name for n in self.nodes))
        check_unique("job", (j.name for j in self.jobs))
        check_unique("allocation", (a.job for a in self.allocations))
        check_unique("queue", (q.name for q in self.queues))
        check_unique("group", (g.name for g in self.groups))
        return self

    @model_validator(mode="after")
    def _paths_fit_the_levels(self) -> Self:
        spec = self.fabric
        if spec.is_graph:
            for i, node in enumerate(self.nodes):
                if node.path:
                    raise InputError(
                        f"node {node.name!r} has a path though the fabric is a graph",
                        place=f"nodes.{i}.path",
                        way_out="leave `path` empty, or `fabric.switches`",
                    )
            names = {n.name for n in self.nodes} | {s.name for s in spec.switches}
            for i, link in enumerate(spec.links):
                for end in (link.a, link.b):
                    if end not in names:
                        raise InputError(f"link end {end!r} is neither a switch nor a node", place=f"fabric.links.{i}")
            return self
        for i, node in enumerate(self.nodes):
            if len(node.path) != len(spec.levels):
                raise InputError(
                    f"node {node.name!r} has {len(node.path)} path entries for {len(spec.levels)} levels "
                    f"({' > '.join(spec.levels) or 'none'})",
                    place=f"nodes.{i}.path",
                    way_out="give one entry per level, null where unknown",
                )
        return self

    @model_validator(mode="after")
    def _references_exist(self) -> Self:
        nodes = {n.name for n in self.nodes}
        jobs = {j.name for j in self.jobs}
        known_jobs = jobs | {a.job for a in self.allocations}
        for i, alloc in enumerate(self.allocations):
            for k, hold in enumerate(alloc.holds):
                if hold.node not in nodes:
                    raise InputError(
                        f"job {alloc.job!r} holds the unknown node {hold.node!r}",
                        place=f"allocations.{i}.holds.{k}.node",
                        way_out="list the node under `nodes`, closed if need be, or drop the hold",
                    )
        for i, res in enumerate(self.reservations):
            for name in res.nodes:
                if name not in nodes:
                    raise InputError(
                        f"reservation {res.name!r} names the unknown node {name!r}",
                        place=f"reservations.{i}.nodes",
                        way_out="list the node under `nodes`, or leave it out here",
                    )
        for group in self.groups:
            for job in group.jobs:
                check_known(f"job in group {group.name!r}", job, jobs)
        for job_ in self.jobs:
            for rule in job_.apart:
                for other in rule.jobs:
                    check_known(f"job to stay apart from ({job_.name!r})", other, known_jobs)
            for other in job_.after:
                check_known(f"job to start after ({job_.name!r})", other, known_jobs)
        _check_no_circle({job.name: job.after for job in self.jobs})
        if self.queues:
            queues = {q.name for q in self.queues}
            for job_ in self.jobs:
                if job_.queue:
                    check_known(f"queue of job {job_.name!r}", job_.queue, queues)
        return self

    @model_validator(mode="after")
    def _levels_exist(self) -> Self:
        if self.fabric.is_graph and not self.fabric.levels:
            return self  # levels are derived: checked when the fabric is built
        rank = {level: i for i, level in enumerate(self.fabric.all_levels)}
        for place, level in self.levels_named():
            if level not in rank:
                raise UnknownName("level", level, rank, place=place)
        for job in self.jobs:
            for podset in job.podsets:
                _check_slice_order(job, podset.required_level, [s.level for s in podset.slices], rank)
        for level in self.objective.traffic_weights:
            check_known("level", level, rank)
        return self

    def levels_named(self) -> Iterator[tuple[str, str]]:
        """Yield (place, level) for every level that a job, group or allocation names."""
        for i, job in enumerate(self.jobs):
            for level in job.levels_named:
                yield f"jobs.{i}", level
            for k, podset in enumerate(job.podsets):
                for level in podset.levels_named:
                    yield f"jobs.{i}.podsets.{k}", level
        for i, group in enumerate(self.groups):
            if group.together_level:
                yield f"groups.{i}", group.together_level
        for i, alloc in enumerate(self.allocations):
            if alloc.exclusive_level:
                yield f"allocations.{i}", alloc.exclusive_level


def _check_no_circle(after: dict[str, tuple[str, ...]]) -> None:
    """Raise ValueError naming the jobs of a circle, where jobs wait for one another."""
    done: set[str] = set()
    for first in after:
        path: list[str] = []
        stack = [(first, False)]
        while stack:
            job, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
            elif job in path:
                circle = " after ".join(repr(name) for name in [*path[path.index(job) :], job])
                raise ValueError(f"jobs wait for one another: {circle}; drop one of the `after`")
            elif job not in done:
                path.append(job)
                stack.append((job, True))
                stack += [(other, False) for other in after.get(job, ())]


def _check_slice_order(job: Job, required: str | None, slices: list[str], rank: dict[str, int]) -> None:
    order = [rank[level] for level in slices]
    if order != sorted(set(order)):
        raise ValueError(f"job {job.name!r}: slices go from outer to inner levels, each level once")
    if required and slices and order[0] < rank[required]:
        raise ValueError(
            f"job {job.name!r}: slice level {slices[0]!r} lies outside the required level {required!r}; "
            "a slice is inside it"
        )
