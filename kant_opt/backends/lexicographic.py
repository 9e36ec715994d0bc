"""One solver over the objective levels, one after another, each kept at its value for the next.

The answer at hand is the first point and every better one is checked before it counts; see `solver`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from time import monotonic

from kant_opt.backends.base import Answer, Deadline, Task
from kant_opt.backends.placer import Placer, Taken
from kant_opt.backends.prover import Proof, find_proof
from kant_opt.backends.solver import ENDED, OUT_OF_MEMORY, Effort, Fixed, News, RawAnswer, Solver, checked
from kant_opt.backends.worker import Worker, ask
from kant_opt.bounds import Bound
from kant_opt.errors import InputError
from kant_opt.formulation.classes import Fold
from kant_opt.formulation.program import Level, Program, value_of
from kant_opt.formulation.written import Pods, Written
from kant_opt.view import Gang

log = logging.getLogger("kant_opt")

_KEPT_BACK = 0.1
"""Share of the time left that is kept for what comes after the search: verifying, measuring, explaining."""
_START_S = 0.3


class Clock:
    """The seconds left for searching; None for ever without a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self.stop = deadline.stop
        self.end = None
        if deadline.at is not None:
            self.end = deadline.at - _KEPT_BACK * max(0.0, deadline.at - monotonic())

    @property
    def left(self) -> float | None:
        if self.stop.asked:
            return 0.0
        return None if self.end is None else self.end - monotonic()

    @property
    def is_up(self) -> bool:
        return self.left is not None and self.left <= 0

    @property
    def is_worth_a_start(self) -> bool:
        """Whether there is time to start a process and load a solver."""
        return self.left is None or self.left > _START_S

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
    fold: Fold
    counting: bool
    """Whether bounds known without the solver settle what they can."""
    work: float = 1.0
    """Share of the work limit that one level may take."""
    solved: dict[str, int] = field(default_factory=dict)
    """Bounds that the solver proved, by level."""

    def run(self) -> None:
        """Improve the answer and put its bounds and notes beside it."""
        task = self.task
        self.written = Written(task.cluster, task.free, task.gangs, self.fold)
        self.program: Program = self.written.program
        best = self._encoded(self.answer)
        if best is None:
            return
        self.possible = [gang for gang, _ in self.answer.taken if gang.open_parts]
        self.possible += [gang for gang, _ in self.answer.failed if not self._impossible(gang)]
        self.given, self.answer.bounds = self.answer.bounds, {}
        self.values_given = self.program.cost(best)
        self._take(best)
        for level in self.program.levels:
            task.tell(self.name, level.name, "incumbent", value_of(level, best))
        trusted = True
        for i, level in enumerate(self.program.levels):
            known = self._known(level, more_to_come=True)
            if known is not None:
                task.tell(known.source, level.name, "bound", known.value)
            if trusted and not self.time.is_up and (known is None or known.value != value_of(level, self.best)):
                trusted = self._improve(i, level)
        for level in self.program.levels:
            bound = self._stronger(level, self._known(level), self.solved.get(level.name))
            if bound is not None:
                self.answer.bounds[level.name] = bound
            if self.time.is_up and (bound is None or bound.value != value_of(level, self.best)):
                self.answer.limit_hit = self.answer.limit_hit or "deadline"
        if self.best is not best:
            self._adopt()

    def _improve(self, position: int, level: Level) -> bool:
        """Ask the solver about one level, the values before it kept; return whether it is to be asked again."""
        levels = self.program.levels
        fixed = [(before, value_of(before, self.best)) for before in levels[:position]]
        raw = self._ask(level, fixed, more_to_come=position + 1 < len(levels))
        if raw.note.startswith(OUT_OF_MEMORY):
            self.answer.limit_hit = "memory"
        elif raw.word != "OPTIMAL":
            self.answer.limit_hit = self.answer.limit_hit or ("work" if self.time.end is None else "deadline")
        if raw.bound is not None:
            self.solved[level.name] = raw.bound
        if raw.values is not None and self._better(level, raw):
            self._take(self._tidy(raw.values))
        return self._believed(raw)

    def _take(self, values: list[int]) -> None:
        """Make this point the best one."""
        self.best = values
        self.proof: Proof | None = None

    # -- the greedy answer as a point ------------------------------------------------------------

    def _encoded(self, answer: Answer) -> list[int] | None:
        """Return the greedy answer as values, None (and a note) where the program does not hold it: a bug of ours."""
        pods = [Pods(*pods) for _, taken in answer.taken for pods in taken]
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

    def _ask(self, level: Level, fixed: Fixed, *, more_to_come: bool) -> RawAnswer:
        limits = self.task.limits
        effort = Effort.of(limits, self.time.share(more_to_come), self.work)

        def on_event(kind: News, value: int) -> None:
            log.debug("%s: %s %s %d", self.name, level.name, kind, value)
            self.task.tell(self.name, level.name, kind, value)

        problem, hint, stop = (self.program, level, fixed), list(self.best), self.task.deadline.stop
        raw = ask(self.solver, self.worker, problem, effort, hint, on_event, memory_mb=limits.memory_mb, stop=stop)
        return checked(self.program, level, fixed, raw)

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

    def _known(self, level: Level, *, more_to_come: bool = False) -> Bound | None:
        """Return the bound of a level that is known without the solver, given the values of those before it."""
        if not level.terms:
            return Bound(level.constant, "trivial")
        if not self.counting:
            return None
        if self.proof is None:
            task = self.task
            jobs, _ = self.written.decode(self.best)
            admitted = [gang for gang in self.possible if _is_placed(gang, jobs)]
            values, seconds = self.program.cost(self.best), self.time.share(more_to_come)
            self.proof = find_proof(task.cluster, task.free, self.possible, admitted, values, task.rents, seconds)
        bounds = [b for b in (self.proof.bounds.get(level.name), self._still_given(level)) if b is not None]
        best = min if level.sense == "max" else max
        return best(bounds, key=lambda bound: bound.value) if bounds else None

    def _still_given(self, level: Level) -> Bound | None:
        """Return the bound that came with the answer at hand, while the values before the level are those it had."""
        for before in self.program.levels:
            if before is level:
                return self.given.get(level.name)
            if value_of(before, self.best) != self.values_given[before.name]:
                return None
        return None

    def _stronger(self, level: Level, counted: Bound | None, solved: int | None) -> Bound | None:
        """Return the stronger of two bounds: the counted one where they are equal, or where nothing was solved.

        What was solved holds for all points that are no worse on the levels before, so for the best one's values too.
        """
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
        failures = {id(gang): failure for gang, failure in self.answer.failed}
        by_part: dict[int, list[Taken]] = {}
        for here in pods:
            taken_here = Taken(here.part, here.node, here.count, here.gpus)
            by_part.setdefault(id(here.part), []).append(taken_here)
        taken = {gang.position: [t for p in gang.parts for t in by_part.get(id(p), [])] for gang in self.task.gangs}
        self.answer.taken = [(g, taken[g.position]) for g in self.task.gangs if _is_placed(g, jobs)]
        self.answer.failed = [(g, failures.get(id(g), "no_room")) for g in self.task.gangs if not _is_placed(g, jobs)]


def _is_placed(gang: Gang, jobs: set[str]) -> bool:
    """Return whether all jobs of the gang that have pods to place are placed."""
    return all(part.job.name in jobs for part in gang.parts if part.target)
