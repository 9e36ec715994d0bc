"""A request under one relaxation: what each kind of it changes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence, Set

from kant_opt.engine.after import without, without_on
from kant_opt.schema import Job, PodSet, Quota, QuotaRaise, Relaxation, Request, Slice


def relaxed(request: Request, relaxation: Relaxation, jobs: Set[str], levels: Sequence[str]) -> Request:
    """Return the request changed as the relaxation says for the gang of `jobs`.

    `request` is that after the placement, see `after`; `levels` are all of the fabric's, outermost first.
    """
    depth = levels.index(relaxation.level) + 1 if relaxation.level else 0
    rank = {level: i for i, level in enumerate(levels, start=1)}
    if relaxation.kind in _OF_JOB:
        change = _OF_JOB[relaxation.kind]
        changed = tuple(change(j, relaxation, depth, rank) if j.name in jobs else j for j in request.jobs)
        request = request.model_copy(update={"jobs": changed})
    if relaxation.kind == "level":
        groups = (
            g.model_copy(update={"together_level": _outwards(g.together_level, relaxation.level, depth, rank)})
            if not jobs.isdisjoint(g.jobs)
            else g
            for g in request.groups
        )
        return request.model_copy(update={"groups": tuple(groups)})
    if relaxation.kind in ("jobs", "preemptible"):
        return request.model_copy(update={"allocations": without(request.allocations, set(relaxation.names))})
    if relaxation.kind == "nodes":
        rest = without_on(request.allocations, set(relaxation.names), keep=kin(request, jobs))
        return request.model_copy(update={"allocations": rest})
    if relaxation.kind == "open":
        return opened(request, set(relaxation.names))
    if relaxation.kind == "quota":
        return _raised(request, relaxation.quotas)
    return request


def kin(request: Request, jobs: Set[str]) -> frozenset[str]:
    """Return the jobs of a gang and those that share a group with one: they are not to make room for it."""
    return frozenset(jobs).union(*(g.jobs for g in request.groups if not jobs.isdisjoint(g.jobs)))


def opened(request: Request, nodes: Collection[str]) -> Request:
    """Return the request with some nodes schedulable and without taints."""
    free = {"schedulable": True, "taints": ()}
    return request.model_copy(
        update={"nodes": tuple(n.model_copy(update=free) if n.name in nodes else n for n in request.nodes)}
    )


# -- changes of one job ------------------------------------------------------------------------------

Change = Callable[[Job, Relaxation, int, dict[str, int]], Job]


def _level(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    """Move required levels and ties that lie inside level `to` out to it."""
    podsets = (
        p.model_copy(update={"required_level": _outwards(p.required_level, to.level, depth, rank)}) for p in job.podsets
    )
    ties = ((t, _outwards(t.level, to.level, depth, rank)) for t in job.together)
    together = tuple(t.model_copy(update={"level": level}) for t, level in ties if level)
    return job.model_copy(update={"podsets": tuple(podsets), "together": together})


def _outwards(level: str | None, to: str, depth: int, rank: dict[str, int]) -> str | None:
    return (to or None) if level and rank[level] > depth else level


def _slices(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    """Move slices inside level `to` out to it; of those that meet there the largest stays, which the others divide."""

    def moved(podset: PodSet) -> PodSet:
        outer = [piece for piece in podset.slices if rank[piece.level] <= depth]
        inner = [piece for piece in podset.slices if rank[piece.level] > depth]
        inside = depth > 0 and (not podset.required_level or rank[podset.required_level] <= depth)
        if inner and inside and (not outer or rank[outer[-1].level] < depth):
            outer.append(Slice(level=to.level, size=inner[0].size))
        return podset.model_copy(update={"slices": tuple(outer)})

    return job.model_copy(update={"podsets": tuple(moved(podset) for podset in job.podsets)})


def _spread(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    def wider(podset: PodSet) -> PodSet:
        spread = (s.model_copy(update={"max_per_domain": max(s.max_per_domain, to.amount)}) for s in podset.spread)
        return podset.model_copy(update={"spread": tuple(spread)})

    return job.model_copy(update={"podsets": tuple(wider(podset) for podset in job.podsets)})


def _apart(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    """Move rules that keep pods apart in from levels outside `to`; drop them where `to` is none."""
    if not depth:
        return job.model_copy(update={"apart": (), "exclusive_level": None})
    apart = (r.model_copy(update={"level": to.level}) if rank[r.level] < depth else r for r in job.apart)
    own = job.exclusive_level
    return job.model_copy(
        update={"apart": tuple(apart), "exclusive_level": to.level if own and rank[own] < depth else own}
    )


def _span(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    return job.model_copy(update={"may_span_fabrics": True})


def _pods(job: Job, to: Relaxation, depth: int, rank: dict[str, int]) -> Job:
    """Let the job run with fewer pods of one podset: its minimum falls, and it still gets as many as fit."""

    def smaller(podset: PodSet) -> PodSet:
        if podset.name != to.podset:
            return podset
        return podset.model_copy(update={"min_count": minimum(podset) - to.amount})

    if to.names and job.name not in to.names:
        return job
    return job.model_copy(update={"podsets": tuple(smaller(podset) for podset in job.podsets)})


def minimum(podset: PodSet) -> int:
    """Return the pods, running ones with them, without which the podset does not run."""
    wanted = podset.count - podset.finished
    least = wanted if podset.min_count is None else min(podset.min_count, wanted)
    size = podset.slices[0].size if podset.slices else 1
    return min(wanted, -(-least // size) * size)


_OF_JOB: dict[str, Change] = {
    "level": _level,
    "slices": _slices,
    "spread": _spread,
    "apart": _apart,
    "span": _span,
    "pods": _pods,
}


# -- changes of the cluster --------------------------------------------------------------------------


def _raised(request: Request, raises: Sequence[QuotaRaise]) -> Request:
    more = {(r.queue, r.resource, r.pool): r.more for r in raises}
    queues = []
    for queue in request.queues:
        quotas = []
        for quota in queue.quotas:
            add = more.pop((queue.name, quota.resource, quota.pool), 0)
            limit = None if quota.limit is None else quota.limit + add
            quotas.append(quota.model_copy(update={"guaranteed": quota.guaranteed + add, "limit": limit}))
        for key in [key for key in more if key[0] == queue.name]:  # its cohort counts what it has no quota for
            quotas.append(Quota(resource=key[1], pool=key[2], guaranteed=more.pop(key)))
        queues.append(queue.model_copy(update={"quotas": tuple(quotas)}))
    return request.model_copy(update={"queues": tuple(queues)})
