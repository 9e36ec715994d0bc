"""The bound in whole numbers: at least that of the rents, never above what a placement costs."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends.arcflow import fewest_cuts
from kant_opt.backends.rents import best_rents
from kant_opt.backends.solver import Stop
from kant_opt.bounds import Market, markets
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.schema import Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, compile_gangs

pytestmark = pytest.mark.skipif(find_spec("highspy") is None, reason="needs HiGHS")


def market_of(request: Request) -> Market:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    weights = request.objective.weights_of(cluster.tree.levels[:-1]).values()
    (market,) = markets(Free(cluster), compile_gangs(cluster), [0, *weights, 0])
    return market


def bound_of(market: Market) -> int:
    found = fewest_cuts(market, 100, 20.0, Stop())
    assert found is not None
    return found


def test_whole_cuts_where_fractions_would_do() -> None:
    """Three racks of 10; six gangs of 4, 4, 4, 4, 7 and 7 fill them. 7 goes with no gang but a piece of 3, twice, and
    three 4s do not fill a rack: without a cut no rack is full. One cut, 4 = 3 + 1, fills one rack, and leaves
    7, 4, 4, 4 and 1 for two racks: 4 + 4 + 1 + 1 again needs a cut. So two cuts, found by trying all."""
    request = racks(
        "|".join([",".join(["8"] * 10)] * 3), jobs=[gang(f"g{i}", n, 8) for i, n in enumerate((4, 4, 4, 4, 7, 7))]
    )
    assert bound_of(market_of(request)) == 2


CASES = st.tuples(
    st.lists(st.integers(1, 3), min_size=2, max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.booleans(),
)


@settings(deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
def test_between_the_rents_and_the_best_placement(case: tuple[list[int], list[int], bool]) -> None:
    leaves, sizes, blocks = case
    while sum(sizes) > sum(leaves):
        sizes = sizes[:-1]
    if not sizes:
        return
    text = [",".join(["8"] * n) for n in leaves]
    spec = "|".join(text[:2]) + ("/" if blocks and text[2:] else "|" if text[2:] else "") + "|".join(text[2:])
    request = racks(spec, jobs=[gang(f"g{i}", n, 8) for i, n in enumerate(sizes)])
    market = market_of(request)
    rents = best_rents(market)
    assert rents is not None
    try:
        best = dict(brute_force(request, limit=4_000).values)
    except InputError:
        return
    assert best["admitted[0]"] == 8000 * sum(sizes)
    assert market.bound(rents) <= bound_of(market) <= best["traffic"]
