"""News on the way and a search that the caller ends: what is told is true at last, what was found is kept."""

from __future__ import annotations

import logging

import pytest

from kant_opt import Event, Stop
from kant_opt.engine import place
from kant_opt.schema import Limits
from kant_opt.testing.builders import gang, racks

# 3 + 2 + 2 fills either rack of seven; the greedy begins with both threes in one rack and has to cut a gang.
SEVENS = racks("1,1,1,1,1,1,1|1,1,1,1,1,1,1", jobs=[gang(f"g{i}", n) for i, n in enumerate((3, 3, 2, 2, 2, 2))])
# More than fits, in sizes that do not divide one another: no proof within many seconds.
ODD = racks(
    "|".join(["8,8,8,8,8,8,8,8"] * 8),
    jobs=[gang(f"g{i:02}", 1 + i * 5 % 6, (1, 2, 3, 4, 5, 6, 8)[i % 7], priority=i % 2) for i in range(40)],
)


def test_what_is_told_last_is_the_outcome() -> None:
    told: list[Event] = []
    outcome = place(SEVENS, backend="cp-sat", on_event=told.append)
    last = {(event.level, event.kind): event.value for event in told}
    assert last == {
        (level.name, kind): value
        for level in outcome.levels
        for kind, value in (("incumbent", level.value), ("bound", level.bound))
    }
    traffic = [event.value for event in told if (event.level, event.kind) == ("traffic", "incumbent")]
    assert traffic[0] > traffic[-1] == 0, "the greedy's value first, the solver's better one later"


def test_a_listener_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("no ears")

    with caplog.at_level(logging.WARNING, "kant_opt"):
        assert place(SEVENS, backend="cp-sat", on_event=fail).status == "OPTIMAL"
    assert "whoever listens to events failed" in caplog.text


def test_a_solver_stops_when_its_listener_wants_it_to() -> None:
    stop = Stop()
    told: list[Event] = []

    def listen(event: Event) -> None:
        told.append(event)
        if sum(event.source == "cp-sat" for event in told) > 5:  # five levels at hand were told; now the solver speaks
            stop.ask()

    greedy = place(ODD, backend="e-binpack").levels
    outcome = place(ODD, backend="cp-sat", on_event=listen, stop=stop)
    assert outcome.run.limit_hit == "stopped"
    assert outcome.status == "FEASIBLE"
    assert [-level.value for level in outcome.levels[:2]] <= [-level.value for level in greedy[:2]]


@pytest.mark.parametrize("backend", ["e-binpack", "search", "cp-sat", "milp"])
def test_stopped_before_it_began_is_an_answer_too(backend: str) -> None:
    stop = Stop()
    stop.ask()
    outcome = place(SEVENS, backend=backend, stop=stop)
    assert outcome.run.limit_hit == "stopped"
    assert outcome.status == "UNKNOWN"
    assert all(level.bound is not None for level in outcome.levels)
    assert {reason.kind for reason in outcome.reasons} == {"not_found"}


def test_a_stop_after_the_end_changes_nothing() -> None:
    stop = Stop()
    outcome = place(SEVENS, backend="cp-sat", stop=stop, limits=Limits(seed=1))
    stop.ask()
    assert outcome.status == "OPTIMAL"
    assert place(SEVENS, backend="cp-sat").status == "OPTIMAL", "the worker was not told to stop"
