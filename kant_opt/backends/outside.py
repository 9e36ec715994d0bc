"""Backends from other packages: entry points of the group `kant_opt.backends`, and plain functions as backends.

An entry point names a `Backend`, a class of one, or a function from a request to a placement. It is loaded when it is
first asked to place; that it exists costs a look at the installed packages' lists.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import NamedTuple

from kant_opt.backends.base import BACKENDS, Answer, Backend, Task
from kant_opt.backends.placer import Taken
from kant_opt.errors import BackendUnavailable, InputError
from kant_opt.registry import Registry
from kant_opt.schema import PlacedJob, PlacedPods, Placement, Request
from kant_opt.verify import verify
from kant_opt.view import Gang, Part

log = logging.getLogger("kant_opt")
GROUP = "kant_opt.backends"
PlaceFunction = Callable[[Request], Placement]


class FromFunction(Backend):
    """A function from a request to a placement as a backend: verified, measured and bounded as any other.

    A placement that breaks a rule is the function's mistake: `InputError` names the rule. The deadline is not enforced.
    """

    def __init__(self, name: str, function: PlaceFunction) -> None:
        self.name, self.function = name, function

    def solve(self, task: Task) -> Answer:
        request = task.cluster.request
        placement = self.function(request)
        if not isinstance(placement, Placement):
            raise InputError(
                f"backend {self.name!r} returned a {type(placement).__name__}", way_out="return a kant_opt.Placement"
            )
        if broken := verify(request, placement, task.cluster.tree.fabric):
            raise InputError(f"backend {self.name!r} breaks a rule: {'; '.join(map(str, broken[:3]))}")
        placed = {job.job: job for job in placement.jobs}
        answer = Answer()
        for gang in task.gangs:
            jobs = [placed[job.name] for job in gang.jobs if job.name in placed]
            if jobs or not gang.open_parts:
                answer.taken.append((gang, _taken(task, gang, jobs)))
            else:
                answer.failed.append((gang, "limit"))  # no proof that there is no room: the engine looks for a reason
        return answer


class _Pods(NamedTuple):
    """Pods of one part on one node."""

    part: Part
    node: int
    pods: PlacedPods


def _taken(task: Task, gang: Gang, jobs: Iterable[PlacedJob]) -> list[Taken]:
    """Take room for the pods of one gang, those with named GPUs first: the others get what these leave."""
    part_of = {(part.job.name, part.podset.name): part for part in gang.parts}
    index = task.cluster.tree.index
    wanted = [_Pods(part_of[job.job, pods.podset], index[pods.node], pods) for job in jobs for pods in job.pods]
    found = []
    for part, node, pods in sorted(wanted, key=lambda w: not w.pods.gpus):
        gpus = task.free.take(node, part.shape, pods.count, part.job.name, pods.gpus or None)
        task.quotas.charge(part, node, pods.count)
        found.append(Taken(part, node, pods.count, tuple(gpus)))
    return found


class Outside(Backend):
    """A backend of another package."""

    def __init__(self, entry: EntryPoint) -> None:
        self.name, self.entry = entry.name, entry
        self.__doc__ = f"from {entry.value}" + (f" of {entry.dist.name}" if entry.dist is not None else "")

    def solve(self, task: Task) -> Answer:
        return self._loaded().solve(task)

    def _loaded(self) -> Backend:
        """Return what the entry point names, as a backend; raises BackendUnavailable where that is none."""
        try:
            found = self.entry.load()
        except Exception as error:
            raise BackendUnavailable(
                f"backend {self.name!r} ({self.entry.value}) does not load: {type(error).__name__}: {error}"
            ) from error
        if isinstance(found, type) and issubclass(found, Backend):
            found = found()
        if isinstance(found, Backend):
            return found
        if callable(found):
            return FromFunction(self.name, found)
        raise BackendUnavailable(
            f"backend {self.name!r} ({self.entry.value}) is a {type(found).__name__}: let it name a Backend, or a "
            "function from a Request to a Placement"
        )


def add_outside(registry: Registry[Backend] = BACKENDS) -> None:
    """Register what installed packages offer. A name that is taken stays with its first owner, and the log says so."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        if entry.name in registry:
            log.warning("backend %r of %s is left out: the name is taken", entry.name, entry.value)
        else:
            registry.add(entry.name, Outside(entry))
