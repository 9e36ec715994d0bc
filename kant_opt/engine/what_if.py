"""What if: one gang tried on the cluster as it is after a placement, under changes of the request."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

from kant_opt.backends import Placer
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.engine.after import after
from kant_opt.engine.relaxed import relaxed
from kant_opt.fabric import build_fabric, check_levels
from kant_opt.schema import Job, Placement, Relaxation, Request
from kant_opt.view import Cluster, Free, Gang, Quotas, compile_gang, compile_gangs, living_pods


class WhatIf:
    """One gang and the cluster after a placement. `request` is the request as it stands there."""

    def __init__(self, request: Request, placement: Placement, job: str) -> None:
        self.request = after(request, placement)
        running = {alloc.job for alloc in request.allocations}
        self.placed = tuple(placed.job for placed in placement.jobs if placed.job not in running)
        """Jobs that run since the placement."""
        fabric = build_fabric(request.fabric, request.nodes)
        check_levels(request, fabric)
        self.cluster = Cluster(self.request, fabric)
        self.tree = self.cluster.tree
        self.gang: Gang = next(
            gang for gang in compile_gangs(self.cluster) if any(member.name == job for member in gang.jobs)
        )
        self.names = frozenset(member.name for member in self.gang.jobs)
        self.free = Free(self.cluster)
        self._living = living_pods(self.request, self.tree)

    def under(self, changed: Request) -> WhatIf:
        """Return the same gang on the cluster as it is in `changed`, where the same runs."""
        case = copy(self)
        case.request, case.cluster = changed, self._cluster(changed)
        case.gang = self.compile(changed, case.cluster)
        return case

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The gang's jobs."""
        return self.gang.jobs

    @property
    def smallest_gang(self) -> Gang:
        """The gang in the size without which it does not run."""
        return replace(self.gang, parts=tuple(replace(part, target=part.least) for part in self.gang.parts))

    def try_(self, relaxation: Relaxation) -> bool | None:
        """Return whether the relaxation lets the gang in; None where the search's limit was hit."""
        return self.fits(relaxed(self.request, relaxation, self.names, self.tree.levels))

    def fits(self, changed: Request) -> bool | None:
        """Return whether the gang can be placed beside what runs in `changed`; None where the search's limit was hit.

        Nodes keep their places. Costs a pass over the nodes, and over what runs where that has changed.
        """
        cluster = self._cluster(changed)
        if changed.allocations is self.request.allocations:
            free = copy(self.free)  # the same room: what is taken below is given back
            free.cluster = cluster
        else:
            free = Free(cluster)
        placer = Placer(free, EBinpack(), Quotas(cluster), changed.limits.search_states)
        taken = placer.place(self.compile(changed, cluster))
        if isinstance(taken, str):
            return None if taken == "limit" else False
        placer.release(taken)
        return True

    def compile(self, changed: Request, cluster: Cluster | None = None) -> Gang:
        """Return the gang as it is in `changed`."""
        jobs = [job for job in changed.jobs if job.name in self.names]
        return compile_gang(cluster or self._cluster(changed), jobs, self._living)

    def _cluster(self, changed: Request) -> Cluster:
        if changed.nodes is not self.request.nodes:
            return Cluster(changed, self.tree.fabric)
        cluster = copy(self.cluster)
        cluster.request = changed
        cluster.exclusive = [alloc for alloc in changed.allocations if alloc.exclusive_level]
        return cluster
