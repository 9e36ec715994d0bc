"""One solver over the objective levels, one after another, each kept at its value for the next.

The answer at hand is the first point and every better one is checked before it counts; see `solver`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from time import monotonic

from kant_opt.backends.base import Answer, Deadline, Task
from kant_opt.backends.placer import Placer, Taken
from kant_opt.backends.solver import ENDED, Effort, Fixed, RawAnswer, Solver, Stop, checked, within
from kant_opt.backends.worker import Worker, emit
from kant_opt.bounds import Bound, Facts, counting_bounds
from kant_opt.errors import InputError
from kant_opt.formulation.per_node import PerNode, Pods
from kant_opt.formulation.program import Level, Program, value_of
from kant_opt.view import Gang

log = logging.getLogger("kant_opt")

_KEPT_BACK = 0.1
"""Share of the time left that is kept for what comes after the search: verifying, measuring, explaining."""
_STATES_PER_WORK = 1_000_000
"""Count vectors of `Limits.search_states` that stand for one unit of a solver's work, some seconds."""
_WORKERS_UNDER_A_CLOCK = 8
_START_S = 0.3
_PATIENCE_S = 0.03
"""How long after its time a solver is ended, and waited for then."""
_OVERRUN = 0.05
"""Share of its time by which a solver is told to stop earlier: most look at the clock now and then only."""


class Clock:
    """The seconds left for searching; None for ever without a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.end = None
        if deadline.at is not None:
            self.end = deadline.at - _KEPT_BACK * max(0.0, deadline.at - monotonic())

    @property
    def left(self) -> float | None:
        return None if self.end is None else self.end - monotonic()

    @property
    def is_up(self) -> bool:
        return self.end is not None and monotonic() >= self.end

    @property
    def is_worth_a_start(self) -> bool:
        """Whether there is time to start a process and load a solver."""
        return self.end is None or self.end - monotonic() > _START_S

    def share(self, more_to_come: bool) -> float | None:
        """Return the seconds for one level: half of what is left where others follow."""
        left = self.left
        return left if left is None or not more_to_come else left / 2


@dataclass
class Search:
    """One run over the levels; `answer` is the greedy one at first and the best at last."""

    name: str
    solver: Solver
    worker: Worker | None
    task: Task
    placer: Placer
    time: Clock
    answer: Answer
    counting: bool
    """Whether counting bounds settle what they can."""
    fixed: list[tuple[Level, int]] = field(default_factory=list)

    def run(self) -> None:
        """Improve the answer and put its bounds and notes beside it."""
        task = self.task
        self.written = PerNode(task.cluster, task.free, task.gangs)
        self.program: Program = self.written.program
        best = self._encoded(self.answer)
        if best is None:
            return
        self.best = best
        self.possible = [gang for gang, _ in self.answer.taken if gang.open_parts]
        self.possible += [gang for gang, _ in self.answer.failed if not self._impossible(gang)]
        improved, proven, trusted = False, True, True
        for i, level in enumerate(self.program.levels):
            bound = self._counted(level)
            value = value_of(level, self.best)
            if trusted and (bound is None or bound.value != value) and not self.time.is_up:
                raw = self._ask(level, more_to_come=i + 1 < len(self.program.levels))
                if raw.word != "OPTIMAL":
                    self.answer.limit_hit = self.answer.limit_hit or ("work" if self.time.end is None else "deadline")
                trusted = self._believed(raw)
                if raw.values is not None and self._better(level, raw):
                    self.best, improved = self._tidy(raw.values), True
                    value = value_of(level, self.best)
                    bound = self._counted(level)  # counted for the values before it: still those
                bound = self._stronger(level, bound, raw.bound)
            if bound is not None and proven:
                self.answer.bounds[level.name] = bound
            if proven and (bound is None or bound.value != value):
                proven = False
                self.answer.notes.append(
                    f"{self.name}: {level.name} is not proven, so later levels have no bound by it"
                )
            self.fixed.append((level, value))
        if self.time.is_up and not proven:
            self.answer.limit_hit = self.answer.limit_hit or "deadline"
        if improved:
            self._adopt()

    # -- the greedy answer as a point ------------------------------------------------------------

    def _encoded(self, answer: Answer) -> list[int] | None:
        """Return the greedy answer as values, None (and a note) where the program does not hold it: a bug of ours."""
        index = self.written.vars.part_index
        pods = [
            Pods(index[part.job.name, part.podset.name], node, count, gpus)
            for _, taken in answer.taken
            for part, node, count, gpus in taken
        ]
        jobs = {part.job.name for gang, _ in answer.taken for part in gang.parts if part.target}
        try:
            values = self.written.values_of(sorted(jobs), pods)
        except InputError as error:
            wrong = str(error)
        else:
            wrong = ", ".join(name for _, name in self.program.broken(values))
        if wrong:
            log.error("the program does not hold the greedy answer: %s", wrong)
            answer.notes.append(f"{self.name}: its program does not hold the greedy answer ({wrong[:200]})")
            return None
        return values

    # -- one level -------------------------------------------------------------------------------

    def _ask(self, level: Level, *, more_to_come: bool) -> RawAnswer:
        limits = self.task.limits
        seconds = self.time.share(more_to_come)
        effort = Effort(
            seconds=seconds,
            work=limits.search_states / _STATES_PER_WORK if seconds is None else None,
            workers=limits.workers if seconds is None else max(limits.workers, _WORKERS_UNDER_A_CLOCK),
            seed=limits.seed,
        )

        def on_event(kind: str, value: int) -> None:
            log.debug("%s: %s %s %d", self.name, level.name, kind, value)

        def ask(stop: Stop) -> RawAnswer:
            if self.worker is None:
                return self.solver.solve(self.program, level, fixed, effort, hint, on_event, stop)
            stop.when_asked(self.worker.kill)
            until = None if seconds is None else monotonic() + (1 - _OVERRUN) * seconds
            answer = self.worker.call(
                _solve_there, self.solver, self.program, level, fixed, effort, until, hint, on_event=on_event
            )
            assert isinstance(answer, RawAnswer)
            return answer

        fixed, hint = list(self.fixed), list(self.best)
        return checked(self.program, level, fixed, within(seconds, ask, patience=_PATIENCE_S))

    def _believed(self, raw: RawAnswer) -> bool:
        """Note what went wrong; return whether the solver is to be asked about further levels."""
        note = raw.note
        if raw.word == "INFEASIBLE":
            note = "says that nothing is possible, which the answer at hand disproves"
        if note:
            self.answer.notes.append(f"{self.name}: {note}")
        return not note or note == ENDED

    def _better(self, level: Level, raw: RawAnswer) -> bool:
        assert raw.value is not None
        value = value_of(level, self.best)
        return raw.value > value if level.sense == "max" else raw.value < value

    def _tidy(self, values: list[int]) -> list[int]:
        """Return the same placement with every derived variable at its exact value: no level is worse for it."""
        return self.written.values_of(*self.written.decode(values))

    def _counted(self, level: Level) -> Bound | None:
        """Return the counting bound of a level, given the values of those before it."""
        objective = self.task.cluster.request.objective
        if not level.terms:
            return Bound(level.constant, "trivial")
        if objective.weights or not self.counting:
            return None
        jobs, _ = self.written.decode(self.best)
        tree = self.task.cluster.tree
        facts = Facts(
            free=self.task.free,
            possible=self.possible,
            admitted=[gang for gang in self.possible if _is_placed(gang, jobs)],
            values=self.program.cost(self.best),
            traffic_weights=[0, *objective.weights_of(tree.levels[:-1]).values(), 0],
        )
        return counting_bounds(facts, objective.order).get(level.name)

    def _stronger(self, level: Level, counted: Bound | None, solved: int | None) -> Bound | None:
        """Return the stronger of two bounds: the counted one where they are equal, or where nothing was solved."""
        value, most = value_of(level, self.best), level.sense == "max"
        if counted is not None and (counted.value < value if most else counted.value > value):
            log.error("counting bounds %s by %d, and %d was found", level.name, counted.value, value)
            counted = None
        if solved is None:
            return counted
        if counted is None or (solved < counted.value if most else solved > counted.value):
            return Bound(solved, self.name)
        return counted

    def _impossible(self, gang: Gang) -> bool:
        """Return whether the gang is proven not to fit even alone."""
        taken = self.placer.place(gang)
        if isinstance(taken, str):
            return taken != "limit"
        self.placer.release(taken)
        return False

    # -- the answer ------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Replace the greedy placement by the best point."""
        jobs, pods = self.written.decode(self.best)
        parts = self.written.vars.parts
        failures = {id(gang): failure for gang, failure in self.answer.failed}
        by_part: dict[int, list[Taken]] = {}
        for here in pods:
            part = parts[here.part]
            by_part.setdefault(id(part), []).append(Taken(part, here.node, here.count, here.gpus))
        taken = {gang.position: [t for p in gang.parts for t in by_part.get(id(p), [])] for gang in self.task.gangs}
        self.answer.taken = [(g, taken[g.position]) for g in self.task.gangs if _is_placed(g, jobs)]
        self.answer.failed = [(g, failures.get(id(g), "no_room")) for g in self.task.gangs if not _is_placed(g, jobs)]


def _solve_there(
    solver: Solver,
    program: Program,
    level: Level,
    fixed: Fixed,
    effort: Effort,
    until: float | None,
    hint: list[int],
) -> RawAnswer:
    """Solve in the worker's process, whose start and imports may have used up some of the time."""
    if until is not None:
        effort = replace(effort, seconds=max(0.0, until - monotonic()))
    return solver.solve(program, level, fixed, effort, hint, emit, Stop())


def _is_placed(gang: Gang, jobs: set[str]) -> bool:
    """Return whether all jobs of the gang that have pods to place are placed."""
    return all(part.job.name in jobs for part in gang.parts if part.target)
