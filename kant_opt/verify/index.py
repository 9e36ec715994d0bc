"""A request looked up by name: everything about it that no placement changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import Fabric, Path, build_fabric
from kant_opt.schema import Allocation, Hold, Job, Node, PodSet, Request, Reservation
from kant_opt.verify.gpus import GpuLedger

Pods = dict[str, int]
"""Node name -> number of pods."""


class RequestIndex:
    """Nodes, jobs, holds and living members by name."""

    def __init__(self, request: Request, fabric: Fabric | None = None) -> None:
        self.request = request
        self.fabric = build_fabric(request.fabric, request.nodes) if fabric is None else fabric
        self.nodes: dict[str, Node] = {node.name: node for node in request.nodes}
        self.jobs: dict[str, Job] = {job.name: job for job in request.jobs}
        self.podsets: dict[tuple[str, str], PodSet] = {(j.name, p.name): p for j in request.jobs for p in j.podsets}
        self.allocations: dict[str, Allocation] = {alloc.job: alloc for alloc in request.allocations}
        self._paths = self.fabric.paths
        self._depths = {level: depth for depth, level in enumerate(self.fabric.levels)}
        self._check_fabric_fits()
        self._ledgers: dict[str, GpuLedger] = {}

    def depth(self, level: str) -> int:
        """Return the position of `level`, 0 = outermost."""
        return self._depths[level]

    def domain(self, node: str, depth: int) -> Path:
        """Return the domain of `node` on the level at `depth`."""
        return self._paths[node][: depth + 1]

    @cached_property
    def holds(self) -> dict[str, list[Hold]]:
        """Node -> what runs there."""
        found: dict[str, list[Hold]] = {}
        for alloc in self.request.allocations:
            for hold in alloc.holds:
                found.setdefault(hold.node, []).append(hold)
        return found

    @cached_property
    def living(self) -> dict[str, dict[str, Pods]]:
        """Running job -> podset -> node -> pods. A hold that names no podset belongs to the job's first."""
        found: dict[str, dict[str, Pods]] = {}
        for alloc in self.request.allocations:
            job = self.jobs.get(alloc.job)
            first = job.podsets[0].name if job else ""
            sets = found.setdefault(alloc.job, {})
            for hold in alloc.holds:
                if hold.pods:
                    pods = sets.setdefault(hold.podset or first, {})
                    pods[hold.node] = pods.get(hold.node, 0) + hold.pods
        return found

    def living_of(self, job: str, podset: str) -> Pods:
        """Return node -> living pods of one podset."""
        return self.living.get(job, {}).get(podset, {})

    def to_place(self, job: str, podset: PodSet) -> tuple[int, int]:
        """Return (least, most) new pods of the podset: L and T of `models/README.md`."""
        living = sum(self.living_of(job, podset.name).values())
        wanted = podset.count - podset.finished
        most = max(0, wanted - living)
        if podset.min_count is None:
            return most, most
        return max(0, min(podset.min_count, wanted) - living), most

    def needs_nothing(self, job: Job) -> bool:
        """Return whether nothing is left to place, so that the job counts as admitted either way."""
        return all(self.to_place(job.name, podset)[1] == 0 for podset in job.podsets)

    def ledger(self, node: str) -> GpuLedger:
        """Return what running jobs use of the node's GPUs: not to be changed, only copied."""
        if node not in self._ledgers:
            self._ledgers[node] = GpuLedger.of(self.nodes[node], self.holds.get(node, ()))
        return self._ledgers[node]

    @cached_property
    def reservations(self) -> dict[str, list[Reservation]]:
        """Node -> reservations that name it."""
        found: dict[str, list[Reservation]] = {}
        for reservation in self.request.reservations:
            for node in dict.fromkeys(reservation.nodes):
                found.setdefault(node, []).append(reservation)
        return found

    def _check_fabric_fits(self) -> None:
        if missing := next((name for name in self.nodes if name not in self._paths), None):
            raise InputError(f"node {missing!r} is not in the fabric given", way_out="build it from this request")
        _check_levels(self.request.levels_named(), self._depths)


def _check_levels(named: Iterable[tuple[str, str]], known: Mapping[str, int]) -> None:
    # A request with node paths has checked this; the levels of a graph are known only now.
    for place, level in named:
        if level not in known:
            raise UnknownName("level", level, known, place=place)
