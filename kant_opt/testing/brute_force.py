"""The best placement of a small request, by trying them all.

Slow on purpose: it shares nothing with the solvers. `verify` judges every candidate, and the objective is computed
here from the definitions in `models/README.md`.

The only pruning: every rule but `gang`'s all-or-none groups is inherited by parts, that is, leaving a placed job
out of a valid placement breaks nothing else. So partial placements are judged too, with those groups set aside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

from kant_opt.errors import InputError
from kant_opt.schema import Job, Node, PlacedJob, PlacedPods, Placement, PodSet, Request
from kant_opt.testing.objective import Values, better, evaluate
from kant_opt.testing.relax import without_groups
from kant_opt.verify import RequestIndex, check

MOST_CANDIDATES = 200_000
"""Placements of one job looked at, and of all jobs together; more is no small request."""


@dataclass(frozen=True)
class BruteAnswer:
    """The best vector, and one placement that reaches it.

    `values` is in order of the objective: ("admitted[7]", 8000), ..., ("traffic", 3), ...; see `evaluate`.
    """

    values: Values
    placement: Placement
    candidates: int
    """Complete placements that were compared."""


def brute_force(request: Request, *, limit: int = MOST_CANDIDATES) -> BruteAnswer:
    """Return the best of all valid placements; placing nothing is one.

    Raises InputError where there are more than `limit` candidates.
    """
    index = RequestIndex(request)
    single = RequestIndex(without_groups(request), index.fabric)
    budget = _Budget(limit)
    options = [list(_of_job(single, job, budget)) for job in request.jobs if not index.needs_nothing(job)]
    best: BruteAnswer | None = None
    for count, jobs in enumerate(_combine(single, options, (), budget), start=1):
        placement = Placement(jobs=jobs)
        values = evaluate(index, placement)
        if (best is None or better(values, best.values)) and not check(index, placement):
            best = BruteAnswer(values, placement, count)
    assert best is not None, "nothing placed is always valid"
    return BruteAnswer(best.values, best.placement, count)


def feasible(request: Request, job: str) -> bool:
    """Return whether that job alone can be placed beside what runs, its group set aside; True if it needs nothing."""
    index = RequestIndex(request)
    wanted = index.jobs[job]
    return index.needs_nothing(wanted) or any(job_placements(request, job))


def job_placements(request: Request, job: str, *, limit: int = MOST_CANDIDATES) -> Iterator[PlacedJob]:
    """Yield every valid way to place the job alone, all-or-none groups set aside."""
    index = RequestIndex(request)
    yield from _of_job(RequestIndex(without_groups(request), index.fabric), index.jobs[job], _Budget(limit))


class _Budget:
    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise InputError(f"more than {self.limit} placements to try", way_out="make the request smaller")


def _combine(
    index: RequestIndex, options: list[list[PlacedJob]], chosen: tuple[PlacedJob, ...], budget: _Budget
) -> Iterator[tuple[PlacedJob, ...]]:
    """Yield every choice of at most one option per job that breaks no rule, groups set aside."""
    if not options:
        yield chosen
        return
    for option in options[0]:
        budget.spend()
        more = (*chosen, option)
        if not chosen or not check(index, Placement(jobs=more)):
            yield from _combine(index, options[1:], more, budget)
    yield from _combine(index, options[1:], chosen, budget)


def _of_job(index: RequestIndex, job: Job, budget: _Budget) -> Iterator[PlacedJob]:
    for podsets in product(*(list(_of_podset(index, job, podset, budget)) for podset in job.podsets)):
        budget.spend()
        placed = PlacedJob(job=job.name, pods=tuple(pods for podset in podsets for pods in podset))
        if not check(index, Placement(jobs=(placed,))):
            yield placed


def _of_podset(index: RequestIndex, job: Job, podset: PodSet, budget: _Budget) -> Iterator[tuple[PlacedPods, ...]]:
    least, most = index.to_place(job.name, podset)
    for count in range(least, most + 1):
        for pods in _over_nodes(index, podset, count, list(index.request.nodes)):
            budget.spend()
            yield pods


def _over_nodes(index: RequestIndex, podset: PodSet, count: int, nodes: list[Node]) -> Iterator[tuple[PlacedPods, ...]]:
    """Yield every split of `count` alike pods over the nodes, with every choice of GPU for pods with shares."""
    if not nodes:
        if count == 0:
            yield ()
        return
    for here in range(min(count, _most_on(nodes[0], podset, count)) + 1):
        for gpus in _gpus(nodes[0], podset, here):
            pods = (PlacedPods(podset=podset.name, node=nodes[0].name, count=here, gpus=gpus),) if here else ()
            yield from ((*pods, *rest) for rest in _over_nodes(index, podset, count - here, nodes[1:]))


def _most_on(node: Node, podset: PodSet, count: int) -> int:
    """Return how many of the pods the empty node could hold by GPUs alone: more need not be tried."""
    return min(count, node.healthy_gpus // podset.gpus) if podset.gpus else count


def _gpus(node: Node, podset: PodSet, pods: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    if not podset.has_share or not pods:
        yield ()
    else:
        yield from combinations_with_replacement([(gpu,) for gpu in range(node.gpus)], pods)
