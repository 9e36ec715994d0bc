"""CP-SAT of OR-Tools: exact in integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from kant_opt.backends.solver import Aim, Effort, Fixed, OnEvent, RawAnswer, Solver, Stop, Word, fixing_rows
from kant_opt.formulation.program import Level, Program, Sense

_WORDS: dict[str, Word] = {"OPTIMAL": "OPTIMAL", "FEASIBLE": "FEASIBLE", "INFEASIBLE": "INFEASIBLE"}
_FAR = 1 << 62


class CpSat(Solver):
    """One worker repeats itself under a work limit; under a wall limit eight are faster even on two cores.

    Between one and eight only a part of CP-SAT's strategies runs, and proofs take longer than with one.
    """

    name = "cp-sat"
    needs = ("ortools",)
    loads = ("ortools.sat.python.cp_model",)

    def solve(
        self,
        program: Program,
        level: Level,
        fixed: Fixed,
        effort: Effort,
        hint: Sequence[int] | None,
        on_event: OnEvent,
        stop: Stop,
    ) -> RawAnswer:
        from ortools.sat.python import cp_model

        started = perf_counter()
        if not all(program.integer):
            return RawAnswer("UNKNOWN", note="cp-sat takes no continuous variables")
        aim = Aim.of(level)
        model = _model(cp_model, program, aim, fixed, hint)
        return search(cp_model, model, aim, effort, started, on_event, stop, lambda s: list(s.response_proto.solution))


def search(
    cp_model: Any,
    model: Any,
    aim: Aim,
    effort: Effort,
    started: float,
    on_event: OnEvent,
    stop: Stop,
    read: Callable[[Any], list[int]],
) -> RawAnswer:
    """Return what CP-SAT says about a model that minimises `aim`; `read` takes the point from the solver.

    `started` is when the effort's seconds began, on the performance counter.
    """
    if wrong := model.validate():
        return RawAnswer("UNKNOWN", note=f"cp-sat refuses the program: {wrong.strip()[:200]}")
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = effort.workers
    solver.parameters.random_seed = effort.seed
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.absolute_gap_limit = 0.0
    if effort.seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.001, effort.seconds - (perf_counter() - started))
    if effort.work is not None:
        solver.parameters.max_deterministic_time = effort.work

    class Events(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]  # the module is handed in
        def on_solution_callback(self) -> None:
            on_event("incumbent", aim.value(round(self.objective_value)))

    def new_bound(value: float) -> None:
        if (bound := aim.bound(value)) is not None:
            on_event("bound", bound)

    solver.best_bound_callback = new_bound
    stop.when_asked(solver.stop_search)
    if stop.asked:  # a search that is stopped before it starts is not stopped
        return RawAnswer("UNKNOWN", note="stopped before it started")
    word = _WORDS.get(solver.solve(model, Events()).name, "UNKNOWN")
    seconds = perf_counter() - started
    if word not in ("OPTIMAL", "FEASIBLE"):  # its numbers mean nothing then
        return RawAnswer(word, seconds=seconds)
    bound = aim.bound(solver.best_objective_bound) if aim.terms else aim.constant
    return RawAnswer(word, read(solver), None, bound, seconds)


def _model(cp_model: Any, program: Program, aim: Aim, fixed: Fixed, hint: Sequence[int] | None) -> Any:
    model = cp_model.CpModel()
    variables = [model.new_int_var(lo, up, "") for lo, up in zip(program.lower, program.upper, strict=True)]

    def add(terms: Sequence[tuple[int, int]], sense: Sense, rhs: int) -> None:
        total = cp_model.LinearExpr.weighted_sum([variables[i] for i, _ in terms], [c for _, c in terms])
        model.add_linear_constraint(total, -_FAR if sense is Sense.LE else rhs, _FAR if sense is Sense.GE else rhs)

    for r, sense in enumerate(program.senses):
        add(list(program.terms_of(r)), sense, program.rhs[r])
    for terms, sense, rhs in fixing_rows(fixed):
        add(list(terms.items()), sense, rhs)
    model.minimize(cp_model.LinearExpr.weighted_sum([variables[i] for i in aim.terms], list(aim.terms.values())))
    if hint is not None:
        for variable, value in zip(variables, hint, strict=True):
            model.add_hint(variable, value)
    return model
