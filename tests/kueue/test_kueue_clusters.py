"""Kueue's timed clusters: the same verdicts, the fewest blocks and then the fewest racks, never more than Kueue."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from .cases import folder
from .clusters import CLUSTERS, Timed, place_all, session

SMALL = [name for name in CLUSTERS if not name.endswith("10000")]

needs_recordings = pytest.mark.skipif(folder() is None, reason="the recordings of Kueue are not beside the checkout")


def check_domains(found: Sequence[Timed]) -> None:
    """Assert what every run on every cluster must show; the least numbers are CP-SAT's, proven."""
    assert len(found) == 37, "46 requests, 9 of them balanced"
    for run in found:
        assert run.used == run.fewest, run.name
        if run.used and run.kueue:
            assert run.used["block"] <= run.kueue["block"], run.name
            assert run.used["rack"] <= run.kueue["rack"] or run.used["block"] < run.kueue["block"], run.name
        else:
            assert run.used is run.kueue is None, run.name


@needs_recordings
@pytest.mark.parametrize("name", SMALL)
def test_spans_the_fewest_blocks_then_racks(name: str) -> None:
    check_domains(list(place_all(name, session(name))))


@needs_recordings
@pytest.mark.parametrize("pattern", ["uniform", "clumped"])
def test_the_recorded_fewest_leave_kueue_behind_somewhere(pattern: str) -> None:
    """Guards the test above: were the recorded numbers Kueue's own, it would prove nothing."""
    found = list(place_all(f"{pattern}_2500", session(f"{pattern}_2500")))
    fewer = [run.name for run in found if run.used and run.kueue and run.used["rack"] < run.kueue["rack"]]
    assert len(fewer) >= 5
