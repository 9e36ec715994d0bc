"""The six clusters at full size; the figures come from `report.py`, see docs/benchmarks/kueue.md."""

from __future__ import annotations

from statistics import geometric_mean

import pytest

from .clusters import CLUSTERS, place_all, session
from .test_kueue_clusters import check_domains, needs_recordings

pytestmark = [pytest.mark.bench, needs_recordings]
REPEATS = 5


@pytest.mark.parametrize("name", CLUSTERS)
def test_spans_the_fewest_blocks_then_racks_on_every_cluster(name: str) -> None:
    check_domains(list(place_all(name, session(name))))


@pytest.mark.parametrize("pattern", ["uniform", "clumped"])
def test_four_times_the_nodes_cost_less_than_four_times_the_time(pattern: str) -> None:
    """Kueue looks at every node for every gang; we look at classes, so time grows slower than nodes."""
    small, large = (
        {run.name: run.best_us for run in place_all(name, session(name), REPEATS)}
        for name in (f"{pattern}_2500", f"{pattern}_10000")
    )
    assert geometric_mean(large[name] / small[name] for name in small) < 4
