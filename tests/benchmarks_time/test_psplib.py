"""PSPLIB: optimal makespans are met and proven, by the program and through `plan`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kant_opt.backends import Deadline
from kant_opt.backends.cpsat_schedule import CpSatSchedule
from kant_opt.backends.schedule import solve_schedule
from kant_opt.formulation.schedule_bounds import schedule_bound
from kant_opt.planning import plan
from kant_opt.schema import Limits
from tests.benchmarks_time.psplib import Project, best_known, project_request, read_project

HANDFUL = ("j30_1_1", "j30_3_1", "j30_10_1", "j30_18_1", "j30_32_1")
"""Of weak, middling and strong conflict about resources."""
NOT_PROVEN_QUICKLY = 20
"""Of the 480, those that 3 units of work may leave without a proof: see docs/benchmarks/schedule.md."""


@pytest.fixture(scope="module")
def psplib(shared: Path) -> Path:
    return shared / "benchmarks" / "psplib"


def test_a_project_by_hand() -> None:
    """Two of three units each: one after the other, 3 + 4, and the free one behind the first only."""
    project = Project("hand", (3,), (3, 4, 2), ((2,), (2,), (1,)), ((), (), (0,)))
    found = solve_schedule(project.program(), None, CpSatSchedule(), Limits(), Deadline(None))
    assert (found.values, found.proven) == ([7], True)
    planned = plan(project_request(project), policy="optimal-batch", order="fifo")
    assert [(level.value, level.bound) for level in planned.levels if level.name == "makespan"] == [(7, 7)]


@pytest.mark.parametrize("name", HANDFUL)
def test_optimal_makespans_are_met(psplib: Path, name: str) -> None:
    """Through `plan`, which lays the gangs on nodes and verifies them: value and bound are the published optimum."""
    project = read_project(psplib / "j30" / f"{name}.rcp")
    (optimum, _) = best_known(psplib, "j30")[name]
    limits = Limits(search_states=3_000_000)
    found = plan(project_request(project), policy="optimal-batch", order="fifo", limits=limits)
    (level,) = [level for level in found.levels if level.name == "makespan"]
    assert (level.value, level.bound) == (optimum, optimum)


def test_bounds_of_our_own_keep_below_every_optimum(psplib: Path) -> None:
    """All 480: critical path and energy."""
    for name, (optimum, _) in best_known(psplib, "j30").items():
        program = read_project(psplib / "j30" / f"{name}.rcp").program()
        assert optimum is not None
        assert schedule_bound(program, program.goals[0]).value <= optimum


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_of_j30(psplib: Path) -> None:
    """Nothing is called optimal that is not, no bound exceeds an optimum, and nearly all are met and proven."""
    met = proven = 0
    for name, (optimum, _) in sorted(best_known(psplib, "j30").items()):
        program = read_project(psplib / "j30" / f"{name}.rcp").program()
        found = solve_schedule(program, None, CpSatSchedule(), Limits(search_states=3_000_000), Deadline(None))
        assert optimum is not None
        assert found.bounds[0].value <= optimum <= found.values[0]
        met += found.values[0] == optimum
        proven += found.proven
    assert met >= 480 - NOT_PROVEN_QUICKLY / 2
    assert proven >= 480 - NOT_PROVEN_QUICKLY
