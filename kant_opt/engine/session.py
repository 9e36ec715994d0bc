"""A cluster kept ready between placements, for schedulers that place one job at a time."""

from __future__ import annotations

from kant_opt.backends import Placer, Taken
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.engine.place import placed_job
from kant_opt.engine.reasons import Explainer
from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric, check_levels
from kant_opt.schema import Job, PlacedJob, Placement, Reason, Request
from kant_opt.verify import Violation, verify
from kant_opt.view import Cluster, Free, Gang, Quotas, compile_gang, living_pods


class Session:
    """Places jobs online with E-Binpack on the state of one request, whose own waiting jobs are not touched.

    Making it costs what reading the cluster costs; after that a job costs well under a millisecond on thousands of
    nodes, more the first time its pods have a new shape. Not safe for several threads at once.

    >>> from kant_opt.schema import FabricSpec, Node, PodSet
    >>> nodes = tuple(Node(name=f"n{i}", path=(f"leaf{i // 2}",), gpus=8) for i in range(4))
    >>> session = Session(Request(fabric=FabricSpec(levels=("leaf",)), nodes=nodes))
    >>> session.place(Job(name="a", podsets=(PodSet(count=2, gpus=8),))).nodes
    ('n0', 'n1')
    >>> session.release("a")
    """

    def __init__(self, request: Request) -> None:
        self._running = {alloc.job for alloc in request.allocations}
        kept = tuple(job for job in request.jobs if job.name in self._running)
        self._request = request.model_copy(update={"jobs": kept, "groups": ()})
        fabric = build_fabric(request.fabric, request.nodes)
        check_levels(request, fabric)
        self._cluster = Cluster(self._request, fabric)
        self._free = Free(self._cluster)
        self._placer = Placer(self._free, EBinpack(), Quotas(self._cluster), request.limits.search_states)
        self._jobs: dict[str, tuple[Gang, list[Taken]]] = {}

    def place(self, job: Job) -> PlacedJob | None:
        """Place one job and keep its room taken, or return None where it does not fit; `explain` tells why.

        Raises InputError for a name in use and UnknownName for a level that the fabric does not have.
        """
        gang = self._compile(job)
        taken = self._placer.place(gang)
        if isinstance(taken, str):
            return None
        self._jobs[job.name] = (gang, taken)
        self._cluster.note(job)
        return placed_job(self._cluster, job.name, taken)

    def explain(self, job: Job) -> Reason | None:
        """Return why the job does not fit now, None where it does; nothing is taken."""
        gang = self._compile(job)
        taken = self._placer.place(gang)
        if isinstance(taken, str):
            return Explainer(self._cluster, self._free, self._placer.work).one(gang, taken)
        self._placer.release(taken)
        return None

    def _compile(self, job: Job) -> Gang:
        if job.name in self._jobs:
            raise InputError(f"job {job.name!r} is placed already", way_out="release it first, or use another name")
        for level in (*job.levels_named, *(name for podset in job.podsets for name in podset.levels_named)):
            if level not in self._cluster.tree.levels:
                raise UnknownName("level", level, self._cluster.tree.levels)
        living = {}
        if job.name in self._running:
            living = living_pods(self._request.model_copy(update={"jobs": (job,)}), self._cluster.tree)
        return compile_gang(self._cluster, [job], living)

    def release(self, job: str) -> None:
        """Give back the room of a job placed here. Raises UnknownName where it is not."""
        if job not in self._jobs:
            raise UnknownName("placed job", job, self._jobs)
        gang, taken = self._jobs.pop(job)
        self._placer.release(taken)
        self._cluster.forget(gang.jobs[0])

    @property
    def placement(self) -> Placement:
        """All jobs placed here that were not released."""
        return Placement(jobs=tuple(placed_job(self._cluster, name, t) for name, (_, t) in self._jobs.items()))

    def verify(self) -> tuple[Violation, ...]:
        """Return what the independent verifier has against `placement`: nothing, unless there is a bug."""
        jobs = {job.name: job for job in self._request.jobs}
        jobs |= {name: gang.jobs[0] for name, (gang, _) in self._jobs.items()}
        return verify(
            self._request.model_copy(update={"jobs": tuple(jobs.values())}), self.placement, self._cluster.tree.fabric
        )
