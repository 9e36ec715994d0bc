"""The best schedule within the limits: bounds of our own first, a solver where they leave a gap.

Whatever the solver does, the schedule is never worse than the one it starts from and comes in time: each answer is
checked against the program, each bound against its own schedule, and a solver that hangs is ended.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kant_opt.backends.base import Deadline
from kant_opt.backends.lexicographic import Clock
from kant_opt.backends.solver import (
    ENDED,
    OUT_OF_MEMORY,
    STOPPED,
    Effort,
    News,
    OnEvent,
    Packaged,
    RawAnswer,
    Stop,
    settle,
)
from kant_opt.backends.worker import Worker, ask, give_back, hire
from kant_opt.formulation.schedule import Goal, Schedule, ScheduleProgram
from kant_opt.formulation.schedule_bounds import ScheduleBound, schedule_bound
from kant_opt.schema import Limits

log = logging.getLogger("kant_opt")

FixedGoals = Sequence[tuple[Goal, int]]
"""Goals that may not become worse than the value beside them."""
_PATIENCE_S = 0.03
_PATIENCE = 0.02
"""The larger of these, the latter a share of its time, is how long a solver is waited for, see `within`."""


class ScheduleSolver(Packaged, ABC):
    """One solver of scheduling programs."""

    @abstractmethod
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
        """Return the best schedule found for `goal`, as the starts and then the modes, and the best bound proven."""


@dataclass
class Scheduled:
    """What came out: the best schedule, and per goal its value and bound."""

    schedule: Schedule | None
    values: list[int] = field(default_factory=list)
    bounds: list[ScheduleBound] = field(default_factory=list)
    """A bound that a solver proved holds among schedules in which the goals before it are no worse."""
    limit_hit: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        """True where every value meets its bound."""
        return self.schedule is not None and all(
            value == bound.value for value, bound in zip(self.values, self.bounds, strict=True)
        )


def solve_schedule(
    program: ScheduleProgram,
    start: Schedule | None,
    solver: ScheduleSolver,
    limits: Limits,
    deadline: Deadline,
    *,
    apart: bool = True,
) -> Scheduled:
    """Return the best schedule found, goal by goal, each solved with those before it kept at their values.

    It starts from `start` and is never worse; without one there may be none. Without a deadline the solver gets
    `limits.search_states` / 1e6 units of its deterministic work per goal and one worker, and repeats itself. With
    `apart` it works in a process of its own, else in a thread, which cannot be ended. Raises ValueError where an
    activity fits at no time.
    """
    run = _Run(program, limits, Clock(deadline), solver, Scheduled(None))
    if start is not None:
        if wrong := next(program.broken(start), ""):
            log.error("the schedule to start from does not hold: %s", wrong)
            run.answer.notes.append(f"the schedule to start from does not hold: {wrong}")
        else:
            run.answer.schedule = start
    try:
        run.solve(apart)
    finally:
        if run.worker is not None:
            give_back(run.worker)
    return run.answer


@dataclass
class _Run:
    program: ScheduleProgram
    limits: Limits
    time: Clock
    solver: ScheduleSolver
    answer: Scheduled
    worker: Worker | None = None
    fixed: list[tuple[Goal, int]] = field(default_factory=list)
    trusted: bool = True

    def solve(self, apart: bool) -> None:
        answer = self.answer
        for i, goal in enumerate(self.program.goals):
            bound = schedule_bound(self.program, goal)
            if self._value(goal) != bound.value and self.trusted and self._may_start(apart):
                raw = self._ask(goal, more_to_come=i + 1 < len(self.program.goals))
                self._adopt(goal, raw)
                if raw.bound is not None and raw.bound > bound.value:
                    bound = ScheduleBound(raw.bound, self.solver.name)
            value = self._value(goal)
            if value is None:
                return
            if bound.value > value:
                log.error("%s bounds %s by %d, and %d was found", bound.source, goal.name, bound.value, value)
                bound = ScheduleBound(0, "trivial")
            answer.values.append(value)
            answer.bounds.append(bound)
            self.fixed.append((goal, value))

    def _value(self, goal: Goal) -> int | None:
        return None if self.answer.schedule is None else self.program.value(goal, self.answer.schedule)

    def _may_start(self, apart: bool) -> bool:
        if not self.time.is_worth_a_start:
            self.answer.limit_hit = self.answer.limit_hit or "deadline"
            return False
        if apart and self.worker is None:
            self.worker = hire(self.solver.loads)
        return True

    def _ask(self, goal: Goal, *, more_to_come: bool) -> RawAnswer:
        effort = Effort.of(self.limits, self.time.share(more_to_come))

        def on_event(kind: News, value: int) -> None:
            log.debug("%s: %s %s %d", self.solver.name, goal.name, kind, value)

        raw = ask(
            self.solver,
            self.worker,
            (self.program, goal, list(self.fixed)),
            effort,
            self.answer.schedule,
            on_event,
            memory_mb=self.limits.memory_mb,
            stop=self.time.stop,
            patience=max(_PATIENCE_S, _PATIENCE * (effort.seconds or 0)),
        )
        return self._checked(goal, raw)

    def _checked(self, goal: Goal, raw: RawAnswer) -> RawAnswer:
        """Return `raw` with everything in it that does not hold taken out, and a note of it."""
        if raw.values is None:
            return replace(raw, word=settle(raw.word, None, None), value=None, bound=None)
        schedule = _schedule(self.program, raw.values)
        wrong = next(self.program.broken(schedule), "")
        for known, limit in self.fixed:
            if not wrong and self.program.value(known, schedule) > limit:
                wrong = f"{known.name} is worse than the {limit} it had"
        if wrong:
            return RawAnswer("UNKNOWN", seconds=raw.seconds, note=f"its schedule does not hold: {wrong}")
        value, bound, note = self.program.value(goal, schedule), raw.bound, raw.note
        if bound is not None and bound > value:
            bound, note = None, f"its bound {bound} is beaten by its own schedule of {value}"
        return replace(raw, word=settle(raw.word, value, bound), value=value, bound=bound, note=note)

    def _adopt(self, goal: Goal, raw: RawAnswer) -> None:
        """Take over a better schedule, note what went wrong and whether the solver is to be asked again."""
        note, before = raw.note, self._value(goal)
        if raw.word == "INFEASIBLE" and before is not None:
            note = "says that nothing is possible, which the schedule at hand disproves"
        if note:
            self.answer.notes.append(f"{self.solver.name}: {note}")
            self.trusted = note in (ENDED, STOPPED)
        if note.startswith(OUT_OF_MEMORY):
            self.answer.limit_hit = "memory"
        elif raw.word not in ("OPTIMAL", "INFEASIBLE"):
            self.answer.limit_hit = self.answer.limit_hit or ("work" if self.time.end is None else "deadline")
        if raw.values is not None and raw.value is not None and (before is None or raw.value < before):
            self.answer.schedule = _schedule(self.program, raw.values)


def _schedule(program: ScheduleProgram, values: Sequence[int]) -> Schedule:
    cut = len(program.activities)
    return Schedule(tuple(values[:cut]), tuple(values[cut:]))
