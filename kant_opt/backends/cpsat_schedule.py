"""CP-SAT of OR-Tools on the scheduling program: intervals, one cumulative per resource, a choice where there are modes.

Three things make it faster and change no optimum: time is counted in the largest unit that divides every duration,
release and end of what is busy; a resource that can never be short is left out; activities that are alike start in
the order in which the goals want them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import gcd
from time import perf_counter
from typing import Any

from kant_opt.backends.cpsat import search
from kant_opt.backends.schedule import FixedGoals, ScheduleSolver
from kant_opt.backends.solver import Aim, Effort, OnEvent, RawAnswer, Stop
from kant_opt.formulation.program import Level
from kant_opt.formulation.schedule import Goal, Schedule, ScheduleProgram
from kant_opt.formulation.schedule_bounds import earliest_starts


class CpSatSchedule(ScheduleSolver):
    """One worker repeats itself under a work limit; under a wall limit eight are faster even on two cores."""

    name = "cp-sat"
    needs = ("ortools",)
    loads = ("ortools.sat.python.cp_model",)

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
        from ortools.sat.python import cp_model

        started = perf_counter()
        built = _Model(cp_model, program, goal, fixed, hint)
        return search(cp_model, built.model, built.aim, effort, started, on_event, stop, built.read)


class _Model:
    """The program in CP-SAT's terms. Starts are in units of `unit`; `aim` turns its objective into the goal's value."""

    def __init__(
        self, cp_model: Any, program: ScheduleProgram, goal: Goal, fixed: FixedGoals, hint: Schedule | None
    ) -> None:
        self.program = program
        self.unit = _unit(program)
        self.model = cp_model.CpModel()
        self.sizes = [a.duration // self.unit for a in program.activities]
        self.first = [-(-head // self.unit) for head in earliest_starts(program)]
        self.starts = [self._start(i) for i in range(len(program.activities))]
        self.chosen = [
            [self.model.new_bool_var("") for _ in a.modes] if len(a.modes) > 1 else [] for a in program.activities
        ]
        self.followers: list[tuple[Any, Callable[[Sequence[int]], int]]] = []
        """Variables that follow from the starts, and how."""
        self._order()
        for r in range(len(program.resources)):
            self._share(r)
        self.alike = list(_alike(program, [goal, *(known for known, _ in fixed)]))
        for group in self.alike:
            for i, k in pairwise(group):
                self.model.add(self.starts[i] <= self.starts[k])
        for known, value in fixed:
            terms, constant = self._terms(known)
            self.model.add(_sum(cp_model, terms) <= value - constant)
        terms, constant = self._terms(goal)
        self.aim = Aim.of(Level(goal.name, {i: weight for i, (_, weight) in enumerate(terms)}, constant, "min"))
        self.model.minimize(_sum(cp_model, [(terms[i][0], weight) for i, weight in self.aim.terms.items()]))
        if hint is not None:
            self._hint(hint)

    def read(self, solver: Any) -> list[int]:
        """Return the starts, then the modes."""
        starts = [self.unit * int(solver.value(start)) for start in self.starts]
        modes = [next((m for m, one in enumerate(ones) if solver.value(one)), 0) for ones in self.chosen]
        return starts + modes

    def _start(self, i: int) -> Any:
        activity = self.program.activities[i]
        latest = self.program.horizon - activity.duration
        if activity.latest is not None:
            latest = min(latest, activity.latest)
        return self.model.new_int_var(self.first[i], max(self.first[i], latest // self.unit), "")

    def _order(self) -> None:
        for i, activity in enumerate(self.program.activities):
            if self.chosen[i]:
                self.model.add_exactly_one(self.chosen[i])
            for k in sorted(set(activity.after)):
                self.model.add(self.starts[i] >= self.starts[k] + self.sizes[k])

    def _share(self, r: int) -> None:
        """Add the cumulative of one resource, unless all activities together cannot make it short."""
        steps, activities = self.program.resources[r].steps, self.program.activities
        most = max(free for _, free in steps)
        if sum(max(mode.get(r, 0) for mode in a.modes) for a in activities) <= min(free for _, free in steps):
            return
        intervals, amounts = [], []
        for i, activity in enumerate(activities):
            for m, mode in enumerate(activity.modes):
                if self.sizes[i] and (amount := mode.get(r, 0)):
                    intervals.append(self._interval(i, m))
                    amounts.append(amount)
        ends = [*(time for time, _ in steps[1:]), max(self.program.horizon, steps[-1][0])]
        for (begin, free), end in zip(steps, ends, strict=True):
            if free < most and end > begin:
                size = -(-end // self.unit) - begin // self.unit
                intervals.append(self.model.new_fixed_size_interval_var(begin // self.unit, size, ""))
                amounts.append(most - free)
        self.model.add_cumulative(intervals, amounts, most)

    def _interval(self, i: int, mode: int) -> Any:
        if not self.chosen[i]:
            return self.model.new_fixed_size_interval_var(self.starts[i], self.sizes[i], "")
        return self.model.new_optional_fixed_size_interval_var(self.starts[i], self.sizes[i], self.chosen[i][mode], "")

    # -- goals -----------------------------------------------------------------------------------

    def _terms(self, goal: Goal) -> tuple[list[tuple[Any, int]], int]:
        """Return the goal as (variable, weight) and a constant."""
        if goal.costs is None:
            sizes = self.sizes
            end = self._follower(lambda starts: max((s + p for s, p in zip(starts, sizes, strict=True)), default=0))
            for start, size in zip(self.starts, sizes, strict=True):
                self.model.add(end >= start + size)
            return [(end, self.unit)], 0
        terms, constant = [], 0
        for i, (weight, since) in enumerate(goal.costs):
            if weight and since <= self.unit * self.first[i]:
                terms.append((self.starts[i], weight * self.unit))
                constant -= weight * since
            elif weight:
                unit = self.unit if since % self.unit == 0 else 1
                late = self._follower(partial(_late, i, self.unit // unit, since // unit))
                self.model.add(late >= self.starts[i] * (self.unit // unit) - since // unit)
                terms.append((late, weight * unit))
        return terms, constant

    def _follower(self, follow: Callable[[Sequence[int]], int]) -> Any:
        variable = self.model.new_int_var(0, self.program.horizon, "")
        self.followers.append((variable, follow))
        return variable

    # -- the schedule to start from --------------------------------------------------------------

    def _hint(self, hint: Schedule) -> None:
        """Hint every variable. Starts round down to the unit, which breaks nothing; alike activities change places."""
        starts, modes = [start // self.unit for start in hint.starts], list(hint.modes)
        for group in self.alike:
            for i, (start, mode) in zip(group, sorted((starts[i], modes[i]) for i in group), strict=True):
                starts[i], modes[i] = start, mode
        for variable, start in zip(self.starts, starts, strict=True):
            self.model.add_hint(variable, start)
        for ones, mode in zip(self.chosen, modes, strict=True):
            for m, one in enumerate(ones):
                self.model.add_hint(one, m == mode)
        for variable, follow in self.followers:
            self.model.add_hint(variable, follow(starts))


def _late(i: int, times: int, since: int, starts: Sequence[int]) -> int:
    return max(0, starts[i] * times - since)


def _sum(cp_model: Any, terms: Sequence[tuple[Any, int]]) -> Any:
    return cp_model.LinearExpr.weighted_sum([variable for variable, _ in terms], [weight for _, weight in terms])


def _unit(program: ScheduleProgram) -> int:
    """Return the largest unit of time in which everything can be said; a best schedule then starts all in it."""
    times = [time for a in program.activities for time in (a.duration, a.release)]
    times += [time for resource in program.resources for time, _ in resource.steps]
    return gcd(*times) or 1


def _alike(program: ScheduleProgram, goals: Sequence[Goal]) -> Iterator[list[int]]:
    """Yield activities that may change places, in the order in which every goal wants them to start, or equally.

    Of two that take the same, the one that weighs no less, counts from no later and has to start no later may go
    first: the costs are convex in the start, so changing their places never costs more.
    """
    groups: dict[object, list[int]] = {}
    for i, a in enumerate(program.activities):
        modes = tuple(tuple(sorted(mode.items())) for mode in a.modes)
        key = (a.duration, modes, a.release, frozenset(a.after), frozenset(program.successors[i]))
        groups.setdefault(key, []).append(i)
    for members in groups.values():
        if len(members) == 1:
            continue

        def urgency(i: int) -> list[float]:
            latest = program.activities[i].latest
            own = [g.costs[i] for g in goals if g.costs is not None]
            wanted = [x for weight, since in own for x in (-weight, since)]
            return [*wanted, float("inf") if latest is None else latest]

        chain: list[int] = []
        for i in sorted(members, key=urgency):
            if chain and any(a > b for a, b in zip(urgency(chain[-1]), urgency(i), strict=True)):
                yield chain
                chain = []
            chain.append(i)
        yield chain
