"""Strips without waste: the area bound is the height, and no policy's plan ends before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kant_opt.planning import plan
from kant_opt.schema import Limits
from tests.benchmarks_time.strip import DEFECT, Strip, read_strips
from tests.benchmarks_time.strip_report import POLICIES, makespan, shuffled


@pytest.fixture(scope="module")
def strips(shared: Path) -> dict[str, Strip]:
    return {strip.name: strip for strip in read_strips(shared / "benchmarks" / "strip_zero_waste")}


def test_every_area_is_width_times_height(strips: dict[str, Strip]) -> None:
    """103 instances; of the one left out this is not so."""
    assert len(strips) == 103
    assert DEFECT not in strips
    for strip in strips.values():
        assert sum(gpus * seconds for gpus, seconds in strip.gangs) == strip.width * strip.height


def test_a_perfect_schedule_is_found_and_proven(strips: dict[str, Strip]) -> None:
    """BKW1: ten gangs on 40 GPUs in 40 s. Shuffled, first come first served needs much longer."""
    strip = shuffled(strips["BKW1"])
    assert makespan(strip, "fifo", 1) > strip.height
    found = plan(strip.request(), policy="optimal-batch", order="fifo", limits=Limits(search_states=2_000_000))
    (level,) = [level for level in found.levels if level.name == "makespan"]
    assert (level.value, level.bound, level.bound_source) == (40, 40, "energy")


@pytest.mark.parametrize("name", ["C1_3", "n2a"])
def test_no_plan_ends_before_the_height(strips: dict[str, Strip], name: str) -> None:
    """And `optimal` never ends later than EASY or conservative."""
    strip = shuffled(strips[name])
    ends = {policy: makespan(strip, policy, 0.1) for policy in POLICIES}
    assert min(ends.values()) >= strip.height
    assert ends["optimal-batch"] <= min(ends["easy"], ends["conservative"])
    assert ends["optimal-makespan"] <= min(ends["easy"], ends["conservative"])
