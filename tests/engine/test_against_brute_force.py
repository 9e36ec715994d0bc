"""The greedy against all placements of small requests: fits where any fit exists, never beats the best, bounds hold."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from kant_opt.backends import BACKENDS
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Request
from kant_opt.testing.brute_force import brute_force, feasible
from kant_opt.testing.strategies import requests
from kant_opt.verify import verify

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@CALM
@given(requests(max_nodes=4, max_jobs=1, without=("quotas",)))
def test_one_gang_is_placed_exactly_where_some_placement_exists(request: Request) -> None:
    job = request.jobs[0].name
    try:
        possible = feasible(request, job)
    except InputError:
        return  # too many candidates to try
    for backend in (name for name, part in BACKENDS.items() if not part.proves):
        outcome = place(request, backend=backend)
        assert outcome.placement is not None
        assert (not outcome.reasons) == possible, f"{backend}: {[r.sentence for r in outcome.reasons]}"


@CALM
@given(requests(max_nodes=4, max_jobs=3))
def test_values_never_beat_the_best_and_bounds_never_lie(request: Request) -> None:
    try:
        best = brute_force(request, limit=20_000)
    except InputError:
        return
    optimum = dict(best.values)
    for backend in ("e-binpack", "random"):
        outcome = place(request, backend=backend)
        assert outcome.placement is not None
        assert verify(request, outcome.placement) == ()
        for level in outcome.levels:
            value, limit = level.value, optimum[level.name]
            bound = level.bound
            assert bound is not None
            if level.sense == "max":
                assert value <= limit <= bound, level
            else:
                assert bound <= limit <= value, level
            if value != limit:
                break  # later levels compare only where this one is equal
