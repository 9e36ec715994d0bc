"""Exact placement: the greedy answer first, then a solver on the smallest exact program, one objective level after
another.

Whatever a solver does, the answer is never worse than the greedy one and comes in time: each of its points is checked
against every row, each bound against its own point, and a solver that hangs is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kant_opt.backends.base import BACKENDS, Answer, Backend, Task
from kant_opt.backends.cpsat import CpSat
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.backends.lexicographic import Clock, Search
from kant_opt.backends.milp import Cbc, Highs
from kant_opt.backends.placer import Placer
from kant_opt.backends.solver import Solver
from kant_opt.backends.worker import give_back, hire, warm_up
from kant_opt.formulation.classes import Fold, fold
from kant_opt.view import Cluster, Free, Gang

MOST_PODS_VARIABLES = 400_000
"""Variables for pods beyond which no program is built."""
_PER_VARIABLE_S = 20e-6
"""Seconds that a variable costs until the program is built and handed over, roughly and rather too many."""


class Exact(Backend):
    """Lexicographic: every level is solved with those before it kept at their values."""

    proves = True

    def __init__(
        self,
        name: str,
        solver: Callable[[], Solver],
        *,
        apart: bool = True,
        counting: bool = True,
        choose: Callable[[Cluster, Free, Sequence[Gang]], Fold] = fold,
        most: int = MOST_PODS_VARIABLES,
        work: float = 1.0,
    ) -> None:
        """With `apart` the solver works in a process of its own, else in a thread, which cannot be ended.

        Without `counting` every level is solved, also those that counting bounds settle: for testing. `choose` says
        what the program folds; it is built up to `most` variables for pods. `work` is the share of the work limit that
        one level may take.
        """
        self.name, self.solver, self.apart, self.counting, self.choose = name, solver, apart, counting, choose
        self.most, self.work = most, work

    def available(self) -> bool:
        return self.solver().available()

    def solve(self, task: Task) -> Answer:
        if self.apart and Clock(task.deadline).is_worth_a_start:
            warm_up(self.solver().loads)  # it starts while the greedy works
        answer = BACKENDS["e-binpack"].solve(task)
        if not self.improve(task, answer):
            answer.limit_hit = answer.limit_hit or ("size" if task.deadline.at is None else "deadline")
        return answer

    def improve(self, task: Task, answer: Answer) -> bool:
        """Improve an answer, which has taken its room, and put bounds and notes beside it, as far as limits allow.

        Returns False, and a note says why, where the solver is not asked.
        """
        time = Clock(task.deadline)
        placer = Placer(task.free, EBinpack(), task.quotas, task.limits.search_states)
        for _, taken in answer.taken:
            placer.release(taken)
        chosen = self.choose(task.cluster, task.free, task.gangs)
        why = self._why_not(chosen, time)
        if why:
            answer.notes.append(f"{self.name}: {why}; the answer is the one before it")
        else:
            self._search(task, answer, chosen, placer, time)
        for _, taken in answer.taken:
            for part, node, count, gpus in taken:
                task.free.take(node, part.shape, count, part.job.name, gpus or None)
                task.quotas.charge(part, node, count)
        return not why

    def _search(self, task: Task, answer: Answer, chosen: Fold, placer: Placer, time: Clock) -> None:
        solver = self.solver()
        worker = hire(solver.loads) if self.apart else None
        answer.formulation = str(chosen)
        try:
            Search(self.name, solver, worker, task, placer, time, answer, chosen, self.counting, self.work).run()
        finally:
            if worker is not None:
                give_back(worker)

    def _why_not(self, chosen: Fold, time: Clock) -> str:
        """Return why no solver is asked, empty where one is."""
        size = chosen.variables
        if self.apart and not time.is_worth_a_start:
            return "no time to start a solver"
        if size > self.most:
            return f"{size} variables are more than the {self.most} it builds"
        if time.left is not None and size * _PER_VARIABLE_S > time.left / 3:
            return f"no time to build {size} variables"
        return ""


for _backend in (Exact("cp-sat", CpSat), Exact("milp", Highs), Exact("milp-cbc", Cbc)):
    BACKENDS.add(_backend.name, _backend)
