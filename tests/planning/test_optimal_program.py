"""The scheduling program: its bounds never exceed, and its solver meets, what trying every order finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product
from pathlib import Path
from time import monotonic, sleep

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.backends import Deadline
from kant_opt.backends.cpsat_schedule import CpSatSchedule
from kant_opt.backends.schedule import FixedGoals, Scheduled, ScheduleSolver, solve_schedule
from kant_opt.backends.solver import Effort, OnEvent, RawAnswer, Stop
from kant_opt.formulation.schedule import Activity, Busy, Goal, Resource, Schedule, ScheduleProgram
from kant_opt.formulation.schedule_bounds import earliest_starts, schedule_bound
from kant_opt.schema import Limits

LIMITS = Limits(search_states=2_000_000)
MAKESPAN = Goal("makespan")


def solve(program: ScheduleProgram, start: Schedule | None = None) -> Scheduled:
    return solve_schedule(program, start, CpSatSchedule(), LIMITS, Deadline(None))


# -- every order, on arrays second by second --------------------------------------------------------


def best_of_all_orders(program: ScheduleProgram) -> tuple[int, ...] | None:
    """Return the lexicographically least goals over all orders and modes, each activity at its earliest second.

    No goal rewards waiting, so one of these schedules is best; None where no one keeps every latest start.
    """
    found = [
        tuple(program.value(goal, schedule) for goal in program.goals)
        for order in permutations(range(len(program.activities)))
        for modes in product(*(range(len(a.modes)) for a in program.activities))
        if (schedule := _laid(program, order, modes)) is not None
    ]
    return min(found, default=None)


def _laid(program: ScheduleProgram, order: tuple[int, ...], modes: tuple[int, ...]) -> Schedule | None:
    length = program.horizon + 1
    free = [[_free_at(resource, second) for second in range(length)] for resource in program.resources]
    starts: dict[int, int] = {}
    for i in order:
        a, demand = program.activities[i], program.activities[i].modes[modes[i]]
        if not all(k in starts for k in a.after):
            return None
        start = max([a.release, *(starts[k] + program.activities[k].duration for k in a.after)])
        while not all(free[r][s] >= d for s in range(start, start + a.duration) for r, d in demand.items()):
            start += 1
            if start + a.duration > length:
                return None
        if a.latest is not None and start > a.latest:
            return None
        starts[i] = start
        for r, d in demand.items():
            for second in range(start, start + a.duration):
                free[r][second] -= d
    return Schedule(tuple(starts[i] for i in range(len(starts))), modes)


def _free_at(resource: Resource, second: int) -> int:
    taken = sum(b.amount for b in resource.busy if b.start <= second and (b.end is None or second < b.end))
    return max(0, resource.capacity - taken)


@st.composite
def programs(draw: st.DrawFn) -> ScheduleProgram:
    """Up to four activities on two resources, some busy for a while, with two goals."""
    number = st.integers
    resources = []
    for r in range(2):
        busy = draw(
            st.lists(st.builds(lambda s, n, a: Busy(s, s + n, a), number(0, 6), number(1, 4), number(1, 4)), max_size=2)
        )
        resources.append(Resource(f"r{r}", draw(number(2, 4)), tuple(busy)))
    count = draw(number(1, 4))
    activities = []
    for i in range(count):
        demands = st.fixed_dictionaries({0: number(0, 2), 1: number(0, 2)})
        modes = draw(st.lists(demands, min_size=1, max_size=2))
        after = tuple(k for k in range(i) if draw(number(0, 4)) == 0)
        latest = draw(st.none() | number(8, 14)) if i == 0 else None
        activities.append(Activity(f"a{i}", draw(number(0, 4)), tuple(modes), draw(number(0, 3)), latest, after))
    costs = Goal("cost", tuple((draw(number(0, 3)), draw(number(0, 5))) for _ in range(count)))
    goals = draw(st.permutations([MAKESPAN, costs]))
    return ScheduleProgram(tuple(resources), tuple(activities), tuple(goals))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(programs())
def test_the_solver_meets_what_trying_every_order_finds(program: ScheduleProgram) -> None:
    best, found = best_of_all_orders(program), solve(program)
    if best is None:
        assert found.schedule is None
        return
    assert found.schedule is not None
    assert list(program.broken(found.schedule)) == []
    assert tuple(found.values) == best
    assert found.proven
    assert found.notes == []


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs())
def test_bounds_of_our_own_hold(program: ScheduleProgram) -> None:
    """Each goal alone, so that the goals before it take no part in its optimum."""
    for goal in program.goals:
        single = replace(program, goals=(goal,))
        if (best := best_of_all_orders(single)) is not None:
            assert schedule_bound(single, goal).value <= best[0]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs(), st.data())
def test_the_judge_knows_a_schedule_when_it_sees_one(program: ScheduleProgram, data: st.DataObject) -> None:
    """`broken` against the arrays, on starts that are mostly wrong."""
    count = len(program.activities)
    starts = data.draw(st.lists(st.integers(0, 10), min_size=count, max_size=count))
    modes = [data.draw(st.integers(0, len(a.modes) - 1)) for a in program.activities]
    schedule = Schedule(tuple(starts), tuple(modes))
    assert bool(list(program.broken(schedule))) == any(_faults(program, schedule))


def _faults(program: ScheduleProgram, schedule: Schedule) -> Iterator[bool]:
    rows = list(zip(program.activities, schedule.starts, schedule.modes, strict=True))
    for a, start, _ in rows:
        yield start < a.release
        yield a.latest is not None and start > a.latest
        yield any(start < schedule.starts[k] + program.activities[k].duration for k in a.after)
    for second in range(30):
        for r, resource in enumerate(program.resources):
            used = sum(a.modes[m].get(r, 0) for a, s, m in rows if s <= second < s + a.duration)
            yield used > _free_at(resource, second)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(programs())
def test_an_hour_is_like_a_second(program: ScheduleProgram) -> None:
    """All times 3600-fold: so are all values and bounds. And a schedule given to start from changes nothing."""
    found = solve(program)
    if found.schedule is None:
        return
    hours = _stretched(program, 3600)
    start = Schedule(tuple(3600 * start for start in found.schedule.starts), found.schedule.modes)
    for known in (None, start):
        longer = solve(hours, known)
        assert longer.values == [3600 * value for value in found.values]
        assert longer.proven


def _stretched(program: ScheduleProgram, times: int) -> ScheduleProgram:
    def busy(b: Busy) -> Busy:
        return Busy(b.start * times, None if b.end is None else b.end * times, b.amount)

    return ScheduleProgram(
        tuple(replace(r, busy=tuple(busy(b) for b in r.busy)) for r in program.resources),
        tuple(
            replace(
                a,
                duration=a.duration * times,
                release=a.release * times,
                latest=None if a.latest is None else a.latest * times,
            )
            for a in program.activities
        ),
        tuple(
            replace(g, costs=None if g.costs is None else tuple((w, s * times) for w, s in g.costs))
            for g in program.goals
        ),
    )


# -- bounds that are argued ------------------------------------------------------------------------


def gangs(sizes: list[int], lengths: list[int] | int, busy: tuple[Busy, ...] = ()) -> ScheduleProgram:
    """Gangs of whole nodes on one pool of 4."""
    durations = [lengths] * len(sizes) if isinstance(lengths, int) else lengths
    activities = tuple(
        Activity(f"g{i}", length, ({0: size},)) for i, (size, length) in enumerate(zip(sizes, durations, strict=True))
    )
    return ScheduleProgram((Resource("nodes", 4, busy),), activities, (MAKESPAN,))


@dataclass(frozen=True)
class Case:
    name: str
    program: ScheduleProgram
    value: int
    source: str
    why: str
    goal: Goal = MAKESPAN


EACH = Goal("starts", ((1, 0), (1, 0)))
CHAIN = ScheduleProgram((), (Activity("a", 3, ({},)), Activity("b", 4, ({},), release=5, after=(0,))), (MAKESPAN,))
CASES = [
    Case("area", gangs([1, 1, 2, *[1] * 8, 4, 3, 2, 2, 2, 3], 60), 420, "energy", "28 node-minutes on 4 nodes"),
    Case("longest", gangs([1, 1], [100, 3]), 100, "longest job", "no sooner than its length"),
    Case("busy at first", gangs([1, 1], 10, (Busy(0, 50, 4),)), 60, "longest job", "nothing runs before 50"),
    Case("busy in between", gangs([4, 4], 10, (Busy(10, 50, 4),)), 60, "energy", "40 units until 10, 40 from 50 on"),
    Case("half busy", gangs([2] * 4, 10, (Busy(0, 10, 2),)), 25, "energy", "20 units until 10, then 60 at 4 a second"),
    Case("no hole", gangs([1], 10, (Busy(5, 9, 4),)), 19, "longest job", "5 seconds are too few for 10"),
    Case("chain", CHAIN, 9, "critical path", "b is released at 5, after a, and takes 4"),
    Case("short first", gangs([4, 4], [20, 10]), 10, "energy", "one waits for the other, 10 s at best", EACH),
    Case("free each", gangs([1, 1], 10, (Busy(0, 7, 4),)), 14, "earliest starts", "both wait for 7 s", EACH),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bounds_by_hand(case: Case) -> None:
    found = schedule_bound(case.program, case.goal)
    assert (found.value, found.source) == (case.value, case.source), case.why


def test_a_window_is_found_behind_what_is_busy() -> None:
    """3 of 4 nodes for 10 s: [0, 5) is too short, [9, 20) has one node too few, 20 is the first."""
    program = gangs([3], 10, (Busy(5, 9, 4), Busy(9, 20, 2)))
    assert earliest_starts(program) == [20]


def test_what_fits_at_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="g0 fits at no time"):
        solve(gangs([3], 10, (Busy(5, None, 2),)))  # 5 s are too few, and then there are 2 nodes for ever


def test_a_circle_is_refused() -> None:
    circle = ScheduleProgram((), (Activity("a", 1, ({},), after=(1,)), Activity("b", 1, ({},), after=(0,))), ())
    with pytest.raises(ValueError, match="a comes after itself"):
        solve(replace(circle, goals=(MAKESPAN,)))


def test_an_early_bound_needs_no_solver() -> None:
    """A start that meets our own bound is optimal before any solver is asked."""

    def nobody(*_: object) -> RawAnswer:
        raise AssertionError("asked")

    program = gangs([4, 4], 10)
    found = solve_schedule(program, Schedule((0, 10), (0, 0)), Fake(nobody), LIMITS, Deadline(None), apart=False)
    assert found.proven
    assert found.notes == []


# -- solvers that crash, lie or hang ----------------------------------------------------------------


@pytest.fixture(autouse=True)
def _found_in_processes(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Processes look for what they are to call where this one does."""
    monkeypatch.syspath_prepend(root / "tests")


Behave = Callable[[ScheduleProgram, Schedule | None], RawAnswer]


@dataclass
class Fake(ScheduleSolver):
    """Does what it is told to."""

    behave: Behave
    name = "fake"
    loads = (__name__,)

    def solve(
        self,
        program: ScheduleProgram,
        goal: Goal,
        fixed: FixedGoals,
        effort: Effort,
        hint: Schedule | None,
        on_event: OnEvent,
        stop: Stop,
    ) -> RawAnswer:
        return self.behave(program, hint)


# Two gangs of 3 and one of 1 on 4 nodes, 10 s each: the area bound is 18 s (70 / 4), the optimum 20 s.
TIGHT = gangs([3, 3, 1], 10)
START = Schedule((0, 10, 20), (0, 0, 0))  # 30 s
BEST = [0, 10, 10, 0, 0, 0]  # 20 s


def crash(*_: object) -> RawAnswer:
    raise MemoryError("no more")


FAULTS: dict[str, tuple[Behave, int, str]] = {
    "crashes": (crash, 30, "no more"),
    "calls it impossible": (lambda *_: RawAnswer("INFEASIBLE"), 30, "disproves"),
    "overlaps": (lambda *_: RawAnswer("OPTIMAL", [0, 0, 0, 0, 0, 0], bound=10), 30, "4 units at 0, and 7 are used"),
    "stops short": (lambda *_: RawAnswer("OPTIMAL", [0], bound=1), 30, "1 starts and 0 modes for 3 activities"),
    "invents a mode": (lambda *_: RawAnswer("OPTIMAL", [0, 10, 10, 0, 0, 7], bound=20), 30, "has no mode 7"),
    "crosses its bound": (lambda *_: RawAnswer("OPTIMAL", BEST, bound=21), 20, "beaten by its own schedule of 20"),
    "is worse": (lambda *_: RawAnswer("FEASIBLE", [0, 10, 30, 0, 0, 0]), 30, ""),
    "says nothing": (lambda *_: RawAnswer("UNKNOWN"), 30, ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_solver_costs_nothing_but_its_answer(name: str) -> None:
    behave, value, note = FAULTS[name]
    found = solve_schedule(TIGHT, START, Fake(behave), LIMITS, Deadline(None), apart=False)
    assert found.values == [value]
    assert found.bounds[0].value == 18
    assert not found.proven
    assert note in "; ".join(found.notes)
    assert found.schedule is not None
    assert list(TIGHT.broken(found.schedule)) == []


def test_an_honest_one_is_believed() -> None:
    found = solve_schedule(
        TIGHT, START, Fake(lambda *_: RawAnswer("OPTIMAL", BEST, bound=20)), LIMITS, Deadline(None), apart=False
    )
    assert (found.values, found.bounds[0].source, found.proven) == ([20], "fake", True)


def hang(*_: object) -> RawAnswer:
    sleep(60)
    return RawAnswer("UNKNOWN")


def end_process(*_: object) -> RawAnswer:
    os._exit(3)


def test_one_that_hangs_is_ended() -> None:
    started = monotonic()
    found = solve_schedule(TIGHT, START, Fake(hang), LIMITS, Deadline(600))
    assert found.values == [30]
    assert found.notes == ["fake: did not stop in time and was ended"]
    assert found.limit_hit == "deadline"
    assert monotonic() - started < 20  # far below the minute that it sleeps, whatever else the machine does


def test_one_whose_process_ends_is_forgotten() -> None:
    found = solve_schedule(TIGHT, START, Fake(end_process), LIMITS, Deadline(None))
    assert found.values == [30]
    assert "WorkerDied" in found.notes[0]
    assert "with code 3" in found.notes[0]
    assert solve(TIGHT, START).values == [20]  # the next one has a process again


def take_memory(*_: object) -> RawAnswer:
    return RawAnswer("FEASIBLE", [*BEST, len(bytearray(1 << 33))][:6])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on a process's own memory")
def test_memory_is_limited_and_the_limit_named() -> None:
    """Eight gibibytes are asked for, and 500 MiB were allowed."""
    limits = LIMITS.model_copy(update={"memory_mb": 500})
    found = solve_schedule(TIGHT, START, Fake(take_memory), limits, Deadline(None))
    assert (found.values, found.limit_hit, found.notes) == ([30], "memory", ["fake: ran out of memory"])


def test_a_start_that_does_not_hold_is_noted() -> None:
    found = solve(TIGHT, Schedule((0, 0, 0), (0, 0, 0)))
    assert found.values == [20]
    assert "does not hold" in found.notes[0]
