"""Single pods fill gaps so that the fewest nodes stay broken."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends.gaps import _loads
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Outcome
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, racks

pytestmark = pytest.mark.skipif(find_spec("highspy") is None, reason="needs HiGHS")


def values(outcome: Outcome) -> dict[str, int]:
    return {level.name: level.value for level in outcome.levels}


def test_two_small_pods_fill_what_the_greedy_gives_to_a_large_one() -> None:
    """Gaps of 4 and 5, pods of 3, 2 and 2. A greedy that goes by size puts 3 into the tighter gap, where it leaves 1;
    but 2 + 2 would fill it."""
    request = racks("4,5", gpus_total=8, jobs=[gang("a", 1, 3), gang("b", 1, 2), gang("c", 1, 2)])
    assert values(place(request, backend="e-binpack"))["broken_nodes"] == 2
    found = place(request, backend="search")
    assert values(found)["broken_nodes"] == 1
    assert found.reasons == ()


def test_every_choice_of_pods_that_fits_is_a_load() -> None:
    """Two of size 2 and one of size 3 in room for 5: by hand 2, 2 + 2, 3 and 3 + 2."""
    assert sorted(_loads([2, 3], [2, 1], 5)) == [(0, 1), (1, 0), (1, 1), (2, 0)]


POOLS = st.sampled_from([(), (), ("x",), ("y",)])
CASES = st.tuples(
    st.lists(st.integers(1, 4), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(1, 4), POOLS), min_size=1, max_size=5),
)


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(CASES)
def test_single_pods_alone_break_the_fewest_nodes(case: tuple[list[int], list[tuple[int, tuple[str, ...]]]]) -> None:
    """Where all pods are single and all are placed, no placement has fewer broken nodes: brute force tries all. Every
    second node is of pool y."""
    gaps, pods = case
    jobs = [gang(f"p{i}", 1, n, pools=pools) for i, (n, pools) in enumerate(pods)]
    request = racks("|".join(map(str, gaps)), gpus_total=4, jobs=jobs)
    nodes = tuple(n.model_copy(update={"pools": ("xy"[i % 2],)}) for i, n in enumerate(request.nodes))
    request = request.model_copy(update={"nodes": nodes})
    found = place(request, backend="search", prove=False)
    if found.reasons:
        return
    try:
        best = dict(brute_force(request, limit=3_000).values)
    except InputError:
        return
    assert values(found)["broken_nodes"] == best["broken_nodes"]
