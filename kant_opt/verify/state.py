"""One placement over one request: new pods and living members, by job, podset, node and domain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kant_opt.fabric import Path
from kant_opt.schema import Job, PlacedPods, Placement, PodSet
from kant_opt.verify.index import Pods, RequestIndex


class NewPods(NamedTuple):
    """One entry of the placement whose job, podset and node all exist."""

    job: Job
    podset: PodSet
    entry: PlacedPods


@dataclass(slots=True)
class Presence:
    """Pods of one job in one domain."""

    living: int = 0
    new: int = 0


class State:
    """What the rules look at. Entries that name something unknown are left out: `gang` reports them."""

    def __init__(self, index: RequestIndex, placement: Placement) -> None:
        self.index = index
        self.request = index.request
        self.placement = placement
        self.placed: dict[str, Job] = {}
        self.new: dict[str, dict[str, Pods]] = {}
        self.on_node: dict[str, list[NewPods]] = {}
        for placed in placement.jobs:
            if (job := index.jobs.get(placed.job)) is not None:
                self.placed[job.name] = job
                self.new[job.name] = self._new_pods(job, placed.pods)
        self._presence: dict[tuple[str, int], dict[Path, Presence]] = {}

    def _new_pods(self, job: Job, entries: Iterable[PlacedPods]) -> dict[str, Pods]:
        sets: dict[str, Pods] = {}
        for entry in entries:
            podset = self.index.podsets.get((job.name, entry.podset))
            if podset is None or entry.node not in self.index.nodes:
                continue
            pods = sets.setdefault(podset.name, {})
            pods[entry.node] = pods.get(entry.node, 0) + entry.count
            self.on_node.setdefault(entry.node, []).append(NewPods(job, podset, entry))
        return sets

    def is_admitted(self, job: Job) -> bool:
        """Return whether the job is placed or has nothing left to place."""
        return job.name in self.placed or self.index.needs_nothing(job)

    def new_of(self, job: str, podset: str) -> Pods:
        """Return node -> new pods of one podset."""
        return self.new.get(job, {}).get(podset, {})

    def placed_podsets(self) -> Iterator[tuple[Job, PodSet]]:
        """Yield every podset of every placed job."""
        for job in self.placed.values():
            for podset in job.podsets:
                yield job, podset

    def pods_per_domain(self, job: str, podsets: Iterable[str], level: str) -> dict[Path, Presence]:
        """Return domain of `level` -> living and new pods of the podsets together."""
        depth = self.index.depth(level)
        found: dict[Path, Presence] = {}
        for podset in podsets:
            for node, pods in self.index.living_of(job, podset).items():
                found.setdefault(self.index.domain(node, depth), Presence()).living += pods
            for node, pods in self.new_of(job, podset).items():
                found.setdefault(self.index.domain(node, depth), Presence()).new += pods
        return found

    def job_per_domain(self, job: str, level: str) -> dict[Path, Presence]:
        """Return domain -> living and new pods of a whole job, also of a running one that is not in the queue."""
        key = (job, self.index.depth(level))
        if key not in self._presence:
            podsets = dict.fromkeys((*self.index.living.get(job, ()), *self.new.get(job, ())))
            self._presence[key] = self.pods_per_domain(job, podsets, level)
        return self._presence[key]

    def jobs_present(self) -> Iterator[str]:
        """Yield the name of every job that runs or is placed, once."""
        yield from dict.fromkeys((*self.index.living, *self.placed))
