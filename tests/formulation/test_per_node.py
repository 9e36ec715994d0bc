"""The rows mean what the rules say and the levels what the measures say, for placements good and bad."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import DataObject, data

from kant_opt.fabric import build_fabric
from kant_opt.formulation.per_node import PerNode
from kant_opt.formulation.registry import CONSTRAINTS, TERMS
from kant_opt.metrics import MEASURES, measure
from kant_opt.schema import Placement, Request
from kant_opt.testing.calm import calm
from kant_opt.testing.strategies import placements, requests
from kant_opt.verify import RULES, verify
from kant_opt.view import Cluster, Free, compile_gangs

CALM = calm(200)


def program_of(request: Request, *, everywhere: bool = False) -> PerNode:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    return PerNode(cluster, Free(cluster), compile_gangs(cluster), everywhere=everywhere)


def costs(request: Request, placement: Placement) -> dict[str, int]:
    """Return the levels of the request's objective as the measures see them."""
    values = measure(request, placement)
    return {n: v for term in request.objective.order for n, v in values.items() if n.split("[")[0] == term}


def test_constraints_and_terms_are_those_of_the_verifier_and_the_measures() -> None:
    assert set(CONSTRAINTS) == set(RULES)
    assert set(TERMS) == set(MEASURES)


@CALM
@given(requests(max_nodes=4, max_jobs=3), data())
def test_rows_mean_what_the_rules_say(request: Request, draw: DataObject) -> None:
    placement = draw.draw(placements(request))
    written = program_of(request, everywhere=True)
    values = written.encode(placement)
    broken = {violation.rule for violation in verify(request, placement)}
    assert written.program.broken_parts(values) == broken, list(written.program.broken(values))
    if not broken & {"gang", "capacity"}:  # what exists twice has no use that two counts would agree on
        assert written.program.cost(values) == costs(request, placement)


@CALM
@given(requests(max_nodes=4, max_jobs=3), data())
def test_the_lean_program_holds_every_valid_placement(request: Request, draw: DataObject) -> None:
    placement = draw.draw(placements(request))
    if verify(request, placement):
        return
    lean = program_of(request)
    if any(job.job not in lean.vars.placed for job in placement.jobs):
        return  # a job with nothing to place is not listed in answers
    values = lean.encode(placement)
    assert list(lean.program.broken(values)) == []
    assert lean.program.cost(values) == costs(request, placement)
    jobs, pods = lean.decode(values)
    assert jobs == {job.job for job in placement.jobs}
    assert lean.values_of(jobs, pods) == values
