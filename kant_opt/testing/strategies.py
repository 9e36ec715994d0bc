"""Hypothesis strategies: small valid requests that mix every rule, and placements on them, good or not.

>>> from hypothesis import given
>>> @given(requests(max_nodes=3, without={"shares", "mib"}))
... def holds(request): ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from kant_opt.errors import UnknownName
from kant_opt.schema import (
    Allocation,
    Apart,
    FabricSpec,
    Gpu,
    Hold,
    Job,
    JobGroup,
    Node,
    Objective,
    PodSet,
    Queue,
    Quota,
    Request,
    Reservation,
    Slice,
    Spread,
    Taint,
    Together,
    Toleration,
)
from kant_opt.testing.placements import placements

__all__ = ["FAMILIES", "placements", "requests"]

_HALF = (
    "levels",  # none to three of them; else one
    "running",
    "living",
    "podsets",  # several of them in a job
    "required",
    "preferred",
    "slices",
    "spread",
    "together",
    "apart",
    "groups",
    "quotas",
    "reservations",
    "priorities",
    "communication",
)
_QUARTER = (
    "unknown_paths",
    "separate_roots",
    "closed_nodes",
    "sick_gpus",
    "taints",
    "labels",
    "node_lists",
    "pools",
    "counted",  # CPU, memory, number of pods
    "over_committed",
    "finished",
    "shares",
    "mib",
    "elastic",
    "exclusive",
    "objectives",
)
FAMILIES = (*_HALF, *_QUARTER)
"""What a request may contain beyond nodes with GPUs and gangs of one shape. The first are on in half of the draws, the
others in a quarter: with all at once hardly anything could be placed."""

_ONE_IN_FOUR = st.sampled_from((False, False, False, True))
_THREE_IN_FOUR = st.sampled_from((True, True, False, True))

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]


@st.composite
def requests(
    draw: Draw, *, max_nodes: int = 4, max_jobs: int = 3, max_pods: int = 3, without: Collection[str] = ()
) -> Request:
    """Draw a valid request; `without` names families to leave out. Most are small enough for `brute_force`."""
    for name in without:
        if name not in FAMILIES:
            raise UnknownName("family", name, FAMILIES)
    families = frozenset(
        name
        for names, on in ((_HALF, st.booleans()), (_QUARTER, _ONE_IN_FOUR))
        for name in names
        if name not in without and draw(on)
    )
    return _Builder(draw, families, max_nodes, max_jobs, max_pods).request()


class _Builder:
    """Draws the parts of one request in the order in which they need each other."""

    def __init__(self, draw: Draw, families: frozenset[str], max_nodes: int, max_jobs: int, max_pods: int) -> None:
        self.draw, self.families, self.max_pods = draw, families, max_pods
        self.num_nodes, self.num_jobs = self.up_to(max_nodes), self.up_to(max_jobs)
        depth = draw(st.integers(0, 3)) if "levels" in families else 1
        self.levels = ("zone", "block", "rack")[3 - depth :]
        self.all_levels = (*self.levels, "node")

    def request(self) -> Request:
        queues = self.queues()
        nodes = tuple(self.node(i) for i in range(self.num_nodes))
        jobs = tuple(self.job(i, nodes, queues) for i in range(self.num_jobs))
        allocations = (*self.running(nodes, queues, jobs),)
        return Request(
            fabric=FabricSpec(levels=self.levels, separate_roots=self.maybe("separate_roots")),
            nodes=nodes,
            allocations=allocations,
            jobs=self.with_ties_between(jobs, allocations),
            queues=queues,
            groups=self.groups(jobs),
            reservations=self.reservations(nodes, jobs),
            objective=self.objective(),
        )

    def up_to(self, most: int) -> int:
        """Draw 1 to `most`, which is more likely than all others together: few nodes make dull requests."""
        sizes = [*range(1, most), *[most] * 2 * most]
        size: int = self.draw(st.sampled_from(sizes))
        return size

    def maybe(self, family: str) -> bool:
        return family in self.families and self.pick((False, True))

    def rarely(self, family: str) -> bool:
        return family in self.families and bool(self.draw(_ONE_IN_FOUR))

    def pick(self, options: Iterable[T]) -> T:
        picked: T = self.draw(st.sampled_from(tuple(options)))
        return picked

    def some(self, options: Sequence[T], least: int = 1) -> tuple[T, ...]:
        chosen = self.draw(st.lists(st.sampled_from(range(len(options))), min_size=least, max_size=3, unique=True))
        return tuple(options[i] for i in sorted(chosen))

    # -- nodes

    def node(self, i: int) -> Node:
        gpus = self.pick((2, 2, 2, 1, 0) if self.families & {"shares", "mib"} else (4, 3, 4, 2, 4, 3, 1, 0))
        fields: dict[str, Any] = {}
        if self.maybe("counted"):
            fields = {"cpu_milli": self.pick((2000, 3000)), "max_pods": self.pick((3, 2, None))}
            fields["memory_bytes"] = self.pick((None, 4, 3))
        if self.rarely("pools"):
            fields["pools"] = self.pick((("h100",), ("a100", "h100"), ("a100",)))
        if self.rarely("labels"):
            fields["labels"] = {"zone": self.pick(("a", "b"))}
        if self.rarely("taints"):
            fields["taints"] = (Taint(key="k", effect=self.pick(("NoSchedule", "PreferNoSchedule", "NoExecute"))),)
        if gpus and self.rarely("sick_gpus"):
            fields["gpu_details"] = (Gpu(index=self.pick(range(gpus)), healthy=False),)
        if "mib" in self.families and self.draw(_THREE_IN_FOUR):
            fields["gpu_memory_mib"] = self.pick((3, 7))
        path = tuple(None if self.rarely("unknown_paths") else f"{level}{self.pick((0, 1))}" for level in self.levels)
        return Node(name=f"n{i}", path=path, gpus=gpus, schedulable=not self.rarely("closed_nodes"), **fields)

    # -- jobs

    def job(self, i: int, nodes: Sequence[Node], queues: Sequence[Queue]) -> Job:
        podsets = [self.podset("main", nodes, self.max_pods)]
        if podsets[0].count < self.max_pods and self.maybe("podsets"):
            podsets.append(self.podset("tail", nodes, self.max_pods - podsets[0].count))
        names = tuple(p.name for p in podsets)
        fields: dict[str, Any] = {}
        if self.maybe("together"):
            fields["together"] = (Together(level=self.pick(self.all_levels), podsets=self.pick(((), names))),)
        if len(names) > 1 and self.maybe("apart"):
            fields["apart"] = (Apart(level=self.pick(self.all_levels), podsets=names),)
        if self.maybe("exclusive"):
            fields["exclusive_level"] = self.pick(self.all_levels[::-1])
        if self.maybe("reservations"):
            fields["walltime_s"] = self.pick((5, 10, 20))
        if self.maybe("communication"):
            fields["communication"] = self.pick(("all_to_all", "none"))
        return Job(
            name=f"j{i}",
            podsets=tuple(podsets),
            queue=self.pick(("", *(q.name for q in queues))),
            priority=self.pick((0, 1)) if "priorities" in self.families else 0,
            preemptible=self.maybe("reservations"),
            may_span_fabrics=self.maybe("separate_roots"),
            **fields,
        )

    def podset(self, name: str, nodes: Sequence[Node], max_pods: int) -> PodSet:
        count = self.draw(st.integers(1, max_pods))
        fields: dict[str, Any] = {}
        if self.maybe("shares"):
            fields["gpu_milli"] = self.pick((500, 334, 999, 1))
        elif self.maybe("mib"):
            fields["gpu_memory_mib"] = self.pick((1, 2, 1, 3, 7))
        else:
            # one pod too many now and then, but not a gang of twice the cluster
            most = sum(node.healthy_gpus for node in nodes) // max(1, count - 1)
            fields["gpus"] = self.pick([gpus for gpus in (1, 2, 1, 2, 3, 0) if gpus <= most])
        if self.maybe("counted"):
            fields |= {"cpu_milli": self.pick((500, 1000)), "memory_bytes": self.pick((1, 2))}
        if self.maybe("elastic"):
            fields["min_count"] = self.draw(st.integers(1, count))
        if self.rarely("finished"):
            fields["finished"] = self.draw(st.integers(1, count))
        fields |= self.wishes(count) | self.suits(nodes)
        return PodSet(name=name, count=count, **fields)

    def wishes(self, count: int) -> dict[str, Any]:
        """Draw the levels, slices and spreads of a podset; slices lie inside the required level."""
        fields: dict[str, Any] = {}
        inside = self.all_levels
        if self.maybe("required"):
            fields["required_level"] = self.pick(self.all_levels)
            inside = inside[inside.index(fields["required_level"]) :]
        if self.maybe("preferred"):
            fields["preferred_level"] = self.pick(self.all_levels)
            fields["balance"] = self.draw(st.booleans())
        if self.maybe("slices"):
            slices = []
            for level in self.some(inside):
                count = self.pick([size for size in range(1, count + 1) if count % size == 0][::-1])
                slices.append(Slice(level=level, size=count))
            fields["slices"] = tuple(slices)
        if self.maybe("spread"):
            fields["spread"] = (Spread(level=self.pick(self.all_levels), max_per_domain=self.pick((1, 2))),)
        return fields

    def suits(self, nodes: Sequence[Node]) -> dict[str, Any]:
        """Draw which nodes suit a podset."""
        fields: dict[str, Any] = {}
        if self.rarely("pools"):
            fields["pools"] = self.pick((("h100",), ("h100", "a100"), ("default", "a100")))
        if self.rarely("labels"):
            fields["selector"] = {"zone": self.pick((("a",), ("a", "b")))}
        if self.rarely("taints"):
            fields["tolerations"] = (Toleration(key="k", operator="Exists", effect=self.pick(("", "NoSchedule"))),)
        if self.rarely("node_lists"):
            fields[self.pick(("nodes", "not_nodes"))] = tuple(node.name for node in self.some(nodes))
        return fields

    def with_ties_between(self, jobs: Sequence[Job], allocations: Sequence[Allocation]) -> tuple[Job, ...]:
        """Draw which jobs keep apart from other jobs, waiting or running."""
        known = sorted({job.name for job in jobs} | {alloc.job for alloc in allocations})
        found = []
        for job in jobs:
            others = [name for name in known if name != job.name]
            if others and self.maybe("apart"):
                ban = Apart(level=self.pick(self.all_levels), jobs=self.some(others))
                job = job.model_copy(update={"apart": (*job.apart, ban)})
            found.append(job)
        return tuple(found)

    # -- what runs

    def running(self, nodes: Sequence[Node], queues: Sequence[Queue], jobs: Sequence[Job]) -> list[Allocation]:
        room = {node.name: self.healthy(node) for node in nodes}
        found = []
        for job in jobs:
            if self.maybe("living"):
                holds = [h for p in job.podsets if (h := self.living_hold(p, self.pick(nodes), room)) is not None]
                found.append(Allocation(job=job.name, holds=tuple(holds), queue=job.queue))
        if "running" in self.families:
            for i in range(self.pick((1, 2))):
                holds = [self.hold(node, room) for node in self.some(nodes)]
                level = self.pick(self.all_levels) if self.maybe("exclusive") else None
                queue = self.pick(("", *(q.name for q in queues)))
                found.append(Allocation(job=f"old{i}", holds=tuple(holds), queue=queue, exclusive_level=level))
        return found

    @staticmethod
    def healthy(node: Node) -> list[int]:
        sick = {gpu.index for gpu in node.gpu_details}
        return [index for index in range(node.gpus) if index not in sick]

    def living_hold(self, podset: PodSet, node: Node, room: dict[str, list[int]]) -> Hold | None:
        free = room[node.name]
        pods = 1 if podset.has_share else self.draw(st.integers(1, podset.count))
        gpus = 1 if podset.has_share else pods * podset.gpus
        if gpus > len(free) and not self.maybe("over_committed"):
            return None
        indices = tuple(free[:gpus])
        del free[:gpus]
        fields: dict[str, Any] = {"podset": self.pick((podset.name, "")) if podset.name == "main" else podset.name}
        if podset.has_share:
            indices = indices or (node.gpus,)  # a GPU that is gone
            fields |= {"gpu_milli": podset.gpu_milli, "gpu_memory_mib": podset.gpu_memory_mib, "gpu_indices": indices}
        else:
            fields |= {"gpus": gpus, "gpu_indices": self.pick((indices if len(indices) == gpus else (), ()))}
        cpu = {"cpu_milli": pods * podset.cpu_milli, "memory_bytes": pods * podset.memory_bytes}
        return Hold(node=node.name, pods=pods, **fields, **cpu)

    def hold(self, node: Node, room: dict[str, list[int]]) -> Hold:
        free = room[node.name]
        fields: dict[str, Any] = {"node": node.name, "pods": self.pick((1, 2))}
        if self.maybe("counted"):
            fields |= {"cpu_milli": self.pick((500, 1500)), "memory_bytes": self.pick((1, 3))}
        if self.maybe("over_committed"):
            return Hold(**fields, gpus=len(free) + 1)
        if free and self.maybe("shares"):
            return Hold(**fields, gpu_milli=self.pick((500, 333, 999)), gpu_indices=(free.pop(),))
        if free and node.gpu_memory_mib and self.maybe("mib"):
            return Hold(**fields, gpu_memory_mib=self.pick((1, 3)), gpu_indices=(free.pop(),))
        gpus = self.draw(st.integers(0, len(free)))
        indices = tuple(free.pop() for _ in range(gpus))
        return Hold(**fields, gpus=gpus, gpu_indices=self.pick(((), indices)))

    # -- the rest

    def queues(self) -> tuple[Queue, ...]:
        if "quotas" not in self.families:
            return ()
        cohort = self.pick(("", "c"))
        return tuple(Queue(name=name, cohort=cohort, quotas=self.quotas()) for name in ("q0", "q1"))

    def quotas(self) -> tuple[Quota, ...]:
        whats = self.some(
            (("gpu", ""), ("gpu", "h100"), ("gpu", "default"), ("cpu_milli", ""), ("memory_bytes", "")), 0
        )
        found = []
        for resource, pool in whats:
            guaranteed = self.pick((2, 3, 4, 1, 0)) * (500 if resource == "cpu_milli" else 1)
            limit = self.pick((None, guaranteed, guaranteed + 1))
            found.append(
                Quota.model_validate({"resource": resource, "pool": pool, "guaranteed": guaranteed, "limit": limit})
            )
        return tuple(found)

    def groups(self, jobs: Sequence[Job]) -> tuple[JobGroup, ...]:
        if not self.maybe("groups"):
            return ()
        level = self.pick((None, *self.all_levels))
        members = tuple(job.name for job in self.some(jobs))
        return (JobGroup(name="g", jobs=members, all_or_none=self.pick((True, True, False)), together_level=level),)

    def reservations(self, nodes: Sequence[Node], jobs: Sequence[Job]) -> tuple[Reservation, ...]:
        if "reservations" not in self.families:
            return ()
        start = self.pick((0, 4, -10, 10))
        return (
            Reservation(
                name="res",
                nodes=tuple(node.name for node in self.some(nodes)),
                start_s=start,
                end_s=self.pick((None, start + 10, start + 11, start + 1)),
                jobs=self.pick(((), tuple(job.name for job in self.some(jobs)))),
            ),
        )

    def objective(self) -> Objective:
        if not self.maybe("objectives"):
            return Objective()
        orders = (
            ("admitted", "broken_nodes", "traffic"),
            ("admitted", "broken_leaves", "broken_nodes", "traffic"),
            ("traffic", "admitted"),
        )
        weights = {level: self.pick((0, 1, 5)) for level in self.some(self.levels, 0)} if self.levels else {}
        return Objective.model_validate({"order": self.pick(orders), "traffic_weights": weights})
