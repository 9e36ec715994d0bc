"""Relaxations against all placements of small requests: each works, a proven one is minimal, no kind is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.engine import place
from kant_opt.engine.relax import relaxations
from kant_opt.engine.relaxed import kin, minimum, relaxed
from kant_opt.engine.what_if import WhatIf
from kant_opt.errors import InputError
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PodSet, Relaxation, Request, Slice, Spread, Taint
from kant_opt.testing.brute_force import feasible
from kant_opt.testing.strategies import requests

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


Draw = Callable[[st.SearchStrategy[Any]], Any]


class Judge:
    """One job that was not placed, and the cluster after the placement, judged by trying all placements."""

    def __init__(self, request: Request, job: str) -> None:
        outcome = place(request, prove=False)
        assert outcome.placement is not None
        case = WhatIf(request, outcome.placement, job)
        self.request, self.job, self.levels = case.request, job, case.tree.levels
        self.found = relaxations(request, outcome, job)

    def works(self, relaxation: Relaxation) -> bool:
        return feasible(relaxed(self.request, relaxation, frozenset({self.job}), self.levels), self.job)

    def check(self, *, complete: bool) -> None:
        for relaxation in self.found:
            assert self.works(relaxation), relaxation
            if relaxation.proven:
                for smaller in self.smaller(relaxation):
                    assert not self.works(smaller), (relaxation, smaller)
        if complete:
            kinds = {relaxation.kind for relaxation in self.found}
            mild = self.units("preemptible")
            if any(r.kind == "jobs" and set(r.names) <= set(mild) for r in self.found):
                kinds.add("preemptible")  # told as "jobs"
            for largest in self.largest():
                if largest.kind not in kinds and "retry" not in kinds:
                    assert not self.works(largest), largest

    def smaller(self, r: Relaxation) -> Iterator[Relaxation]:
        """Yield every next smaller change of the same kind."""
        depth = self.levels.index(r.level) + 1 if r.level else 0
        if r.kind in ("level", "slices"):
            yield from (r.model_copy(update={"level": level}) for level in self.levels[depth:])
        elif r.kind == "apart":
            outer = self.levels[: depth - 1] if depth else self.levels
            yield from (r.model_copy(update={"level": level}) for level in outer)
        elif r.kind in ("pods", "spread"):
            yield r.model_copy(update={"amount": r.amount - 1})
        elif r.kind in ("jobs", "preemptible", "nodes", "open"):
            for names in combinations(self.units(r.kind), r.amount - 1):
                yield r.model_copy(update={"names": names})
        elif r.kind == "quota":
            for i, raised in enumerate(r.quotas):
                less = (raised.model_copy(update={"more": raised.more - 1}),) if raised.more > 1 else ()
                yield r.model_copy(update={"quotas": (*r.quotas[:i], *less, *r.quotas[i + 1 :])})

    def units(self, kind: str) -> tuple[str, ...]:
        own = kin(self.request, frozenset({self.job}))
        if kind in ("nodes", "open"):
            return tuple(node.name for node in self.request.nodes)
        running = (a for a in self.request.allocations if a.job not in own and (kind == "jobs" or a.preemptible))
        return tuple(alloc.job for alloc in running)

    def largest(self) -> Iterator[Relaxation]:
        """Yield the largest change of every kind."""
        yield Relaxation(kind="level", proven=False)
        yield Relaxation(kind="slices", proven=False)
        yield Relaxation(kind="apart", proven=False)
        yield Relaxation(kind="spread", proven=False, amount=100)
        for kind in ("jobs", "preemptible", "nodes", "open"):
            yield Relaxation.model_validate({"kind": kind, "proven": False, "names": self.units(kind)})
        podset = next(job for job in self.request.jobs if job.name == self.job).podsets[0]
        alive = sum(h.pods for a in self.request.allocations if a.job == self.job for h in a.holds)
        if not podset.slices and minimum(podset) > alive + 1:
            yield Relaxation(kind="pods", proven=False, podset=podset.name, amount=minimum(podset) - alive - 1)


@st.composite
def full_clusters(draw: Draw) -> Request:
    """Draw four or five nodes in two racks, most of whose GPUs jobs hold, and a gang of one or two podsets."""

    def pick(options: Sequence[Any]) -> Any:
        return draw(st.sampled_from(options))

    size = pick((2, 4, 3))
    closed = {"schedulable": False}, {"taints": (Taint(key="k", effect="NoSchedule"),)}
    nodes = tuple(
        Node(name=f"n{i}", path=(f"r{i % 2}",), gpus=size, cpu_milli=4, **pick(({}, {}, {}, {}, *closed)))
        for i in range(pick((4, 5)))
    )
    left = {node.name: node.gpus for node in nodes}
    running = []
    for i in range(pick((5, 4, 6))):
        holds = []
        for node in draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=4, unique_by=lambda node: node.name)):
            gpus = min(left[node.name], pick((size, 1, 2)))
            left[node.name] -= gpus
            holds.append(Hold(node=node.name, gpus=gpus, cpu_milli=pick((0, 1))))
        running.append(Allocation(job=f"old{i}", holds=tuple(holds), preemptible=pick((True, False))))
    pods = pick((2, 1, 3))
    rules = {
        "required_level": pick((None, "rack", None)),
        "slices": (Slice(level="rack", size=pods),) if pick((False, True, False)) else (),
        "spread": (Spread(level="node", max_per_domain=1),) if pick((False, True, False)) else (),
    }
    podsets = [PodSet(count=pods, gpus=pick((1, 2, size)), cpu_milli=pick((0, 1, 2)), **rules)]
    if pods < 3 and pick((False, True)):
        podsets.append(PodSet(name="head", count=1, gpus=pick((0, 1)), cpu_milli=3))
    return Request(
        fabric=FabricSpec(levels=("rack",)),
        nodes=nodes,
        allocations=tuple(running),
        jobs=(Job(name="j", podsets=tuple(podsets)),),
    )


def judge(request: Request, *, complete: bool) -> None:
    outcome = place(request, prove=False)
    for reason in outcome.reasons:
        try:
            Judge(request, reason.job).check(complete=complete)
        except InputError:
            continue  # too many placements to try


@CALM
@given(requests(max_nodes=4, max_jobs=2, without=("groups", "quotas", "podsets")))
def test_jobs_of_one_podset(request: Request) -> None:
    judge(request, complete=True)


@CALM
@given(requests(max_nodes=3, max_jobs=2, without=("groups", "quotas")))
def test_jobs_of_several_podsets(request: Request) -> None:
    judge(request, complete=False)


@CALM
@given(requests(max_nodes=3, max_jobs=2, without=("groups", "podsets")))
def test_jobs_with_quotas(request: Request) -> None:
    judge(request, complete=False)


@CALM
@given(full_clusters())
def test_full_clusters(request: Request) -> None:
    judge(request, complete=True)
