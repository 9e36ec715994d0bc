"""Exact placement: the greedy answer first, then a solver on the per-node program, one objective level after another.

Whatever a solver does, the answer is never worse than the greedy one and comes in time: each of its points is checked
against every row, each bound against its own point, and a solver that hangs is left behind.
"""

from __future__ import annotations

from collections.abc import Callable

from kant_opt.backends.base import BACKENDS, Answer, Backend, Task
from kant_opt.backends.cpsat import CpSat
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.backends.lexicographic import Clock, Search
from kant_opt.backends.milp import Cbc, Highs
from kant_opt.backends.placer import Placer
from kant_opt.backends.solver import Solver
from kant_opt.backends.worker import Worker, give_back, hire

MOST_PODS_VARIABLES = 400_000
"""Podsets x nodes with room beyond which no per-node program is built."""
_PER_VARIABLE_S = 20e-6
"""Seconds that a variable costs until the program is built and handed over, roughly and rather too many."""


class Exact(Backend):
    """Lexicographic: every level is solved with those before it kept at their values."""

    proves = True

    def __init__(self, name: str, solver: Callable[[], Solver], *, apart: bool = True, counting: bool = True) -> None:
        """With `apart` the solver works in a process of its own, else in a thread, which cannot be ended.

        Without `counting` every level is solved, also those that counting bounds settle: for testing.
        """
        self.name, self.solver, self.apart, self.counting = name, solver, apart, counting

    def available(self) -> bool:
        return self.solver().available()

    def solve(self, task: Task) -> Answer:
        time = Clock(task.deadline)
        solver = self.solver()
        worker = hire(solver.loads) if self.apart and time.is_worth_a_start else None
        try:
            return self._solve(task, time, solver, worker)
        finally:
            if worker is not None:
                give_back(worker)

    def _solve(self, task: Task, time: Clock, solver: Solver, worker: Worker | None) -> Answer:
        answer = BACKENDS["e-binpack"].solve(task)
        placer = Placer(task.free, EBinpack(), task.quotas, task.limits.search_states)
        for _, taken in answer.taken:
            placer.release(taken)
        why = _too_large(task, time) if worker or not self.apart else "no time to start a solver"
        if why:
            answer.notes.append(f"{self.name}: {why}; the answer is the greedy one")
            answer.limit_hit = answer.limit_hit or ("size" if time.end is None else "deadline")
        else:
            Search(self.name, solver, worker, task, placer, time, answer, self.counting).run()
        for _, taken in answer.taken:
            for part, node, count, gpus in taken:
                task.free.take(node, part.shape, count, part.job.name, gpus or None)
                task.quotas.charge(part, node, count)
        return answer


def _too_large(task: Task, time: Clock) -> str:
    """Return why the per-node program is not built, empty where it is."""
    size = 0
    for gang in task.gangs:
        for i in gang.open_parts:
            part = gang.parts[i]
            size += int((task.free.slots(part.shape, part.eligible) > 0).sum())
    if size > MOST_PODS_VARIABLES:
        return f"{size} variables are more than the {MOST_PODS_VARIABLES} it builds"
    if time.left is not None and size * _PER_VARIABLE_S > time.left / 3:
        return f"no time to build {size} variables"
    return ""


for _backend in (Exact("cp-sat", CpSat), Exact("milp", Highs), Exact("milp-cbc", Cbc)):
    BACKENDS.add(_backend.name, _backend)
