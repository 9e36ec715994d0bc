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
_PER_PAIR_S = 0.3e-6
"""Seconds per gang and node until it is known what folds, roughly and rather too many."""
_PAIRS_PER_VARIABLE = 1_000
"""Pairs of gang and node beyond which, per variable allowed, nobody looks whether they fold into so few."""
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
        chosen, why = self._program(task, time)
        if chosen is None:
            answer.notes.append(f"{self.name}: {why}; the answer is the one before it")
        else:
            self._search(task, answer, chosen, placer, time)
        for _, taken in answer.taken:
            placer.take_again(taken)
        return chosen is not None

    def _search(self, task: Task, answer: Answer, chosen: Fold, placer: Placer, time: Clock) -> None:
        solver = self.solver()
        worker = hire(solver.loads) if self.apart else None
        answer.formulation = str(chosen)
        try:
            Search(self.name, solver, worker, task, placer, time, answer, chosen, self.counting, self.work).run()
        finally:
            if worker is not None:
                give_back(worker)

    def _program(self, task: Task, time: Clock) -> tuple[Fold | None, str]:
        """Return what program to build, or None and why no solver is asked."""
        if self.apart and not time.is_worth_a_start:
            return None, "no time to start a solver"
        pairs = len(task.gangs) * len(task.cluster.nodes)
        if pairs > _PAIRS_PER_VARIABLE * self.most or (time.left is not None and pairs * _PER_PAIR_S > time.left / 3):
            return None, f"{len(task.gangs)} gangs on {len(task.cluster.nodes)} nodes take too long to look at"
        chosen = self.choose(task.cluster, task.free, task.gangs)
        if chosen.variables > self.most:
            return None, f"{chosen.variables} variables are more than the {self.most} it builds"
        if time.left is not None and chosen.variables * _PER_VARIABLE_S > time.left / 3:
            return None, f"no time to build {chosen.variables} variables"
        return chosen, ""


for _backend in (Exact("cp-sat", CpSat), Exact("milp", Highs), Exact("milp-cbc", Cbc)):
    BACKENDS.add(_backend.name, _backend)
