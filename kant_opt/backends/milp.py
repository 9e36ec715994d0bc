"""Mixed integer programming through PuLP: HiGHS in this process, CBC as a second opinion.

PuLP's words are not used: at a time limit it says "Optimal". Status, values and bound are read from HiGHS itself, and
from CBC's solution and log. Every level is minimised, so that no sign has to be turned back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from kant_opt.backends.solver import Aim, Effort, Fixed, OnEvent, RawAnswer, Solver, Stop, Word, fixing_rows
from kant_opt.formulation.program import Level, Program, Sense

_HIGHS_WORDS: dict[str, Word] = {"Optimal": "OPTIMAL", "Infeasible": "INFEASIBLE"}
_HAS_SOLUTION = 2
_LOG_BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)
_LOG_VALUE = re.compile(r"^Objective value:\s+(\S+)", re.MULTILINE)


class _Milp(Solver):
    """What both have in common: the problem in PuLP, variables in the order of the program."""

    def problem(self, pulp: Any, program: Program, aim: Aim, fixed: Fixed) -> tuple[Any, list[Any]]:
        problem = pulp.LpProblem("kant_opt", pulp.LpMinimize)
        width = len(str(len(program.names)))  # PuLP sorts by name
        variables = [
            problem.add_variable(f"x_{i:0{width}}", lo, up, cat=pulp.LpInteger if whole else pulp.LpContinuous)
            for i, (lo, up, whole) in enumerate(zip(program.lower, program.upper, program.integer, strict=True))
        ]
        build = getattr(pulp.LpAffineExpression, "from_dict", pulp.LpAffineExpression)
        problem += build({variables[i]: c for i, c in aim.terms.items()})

        def add(terms: dict[int, int], sense: Sense, rhs: int) -> None:
            terms = {i: c for i, c in terms.items() if c}
            if not terms:
                return  # holds or not by itself: the check of the answer sees it
            left = build({variables[i]: c for i, c in terms.items()})
            row = {Sense.LE: left.__le__, Sense.GE: left.__ge__, Sense.EQ: left.__eq__}[sense](rhs)
            nonlocal problem
            problem += row

        for r, sense in enumerate(program.senses):
            add(dict(program.terms_of(r)), sense, program.rhs[r])
        for terms, sense, rhs in fixing_rows(fixed):
            add(terms, sense, rhs)
        return problem, variables


class Highs(_Milp):
    """HiGHS with one thread: its number of threads is one for the whole process, and one repeats itself."""

    name = "milp"
    needs = ("pulp", "highspy")
    loads = ("highspy", "pulp")

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
        import highspy
        import pulp

        started = perf_counter()
        aim = Aim.of(level)
        problem, variables = self.problem(pulp, program, aim, fixed)
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "random_seed": effort.seed,
            "mip_rel_gap": 0.0,
            "mip_abs_gap": 0.0,
        }
        if effort.seconds is not None:
            options["time_limit"] = max(0.001, effort.seconds - (perf_counter() - started))
        if effort.work is not None:
            options["mip_max_nodes"] = max(1, int(1000 * effort.work))
        answers: list[RawAnswer] = []

        class Door(pulp.HiGHS):  # type: ignore[misc]  # the package is not typed
            def callSolver(self, lp: Any) -> None:  # noqa: N802
                highs = lp.solverModel
                for key, value in options.items():
                    if highs.setOptionValue(key, value) != highspy.HighsStatus.kOk:
                        raise RuntimeError(f"HiGHS does not take the option {key} = {value!r}")
                columns = [variable.index for variable in variables]
                if hint is not None:
                    highs.setSolution(len(columns), columns, [float(value) for value in hint])
                highs.HandleUserInterrupt = True
                stop.when_asked(highs.cancelSolve)
                highs.cbMipImprovingSolution.subscribe(
                    lambda event: on_event("incumbent", aim.value(round(event.data_out.objective_function_value)))
                )
                if not stop.asked:
                    highs.run()
                    answers.append(_read(highs, columns, aim, perf_counter() - started))

            def findSolutionValues(self, lp: Any) -> tuple[int, int]:  # noqa: N802  # it fails on words it does not know
                return pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound

        problem.solve(Door(msg=False))
        return answers[0] if answers else RawAnswer("UNKNOWN", note="stopped before it started")


def _read(highs: Any, columns: list[int], aim: Aim, seconds: float) -> RawAnswer:
    word = _HIGHS_WORDS.get(highs.modelStatusToString(highs.getModelStatus()), "UNKNOWN")
    info = highs.getInfo()
    if word == "INFEASIBLE":
        return RawAnswer(word, seconds=seconds)
    bound = aim.bound(info.mip_dual_bound)
    if info.primal_solution_status != _HAS_SOLUTION:
        return RawAnswer("UNKNOWN", bound=bound, seconds=seconds)
    found = highs.getSolution().col_value
    return RawAnswer(word, [round(found[column]) for column in columns], None, bound, seconds)


class Cbc(_Milp):
    """CBC, a process of its own with files; its bound stands in its log alone."""

    name = "milp-cbc"
    needs = ("pulp",)
    loads = ("pulp",)

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
        import pulp

        started = perf_counter()
        aim = Aim.of(level)
        problem, variables = self.problem(pulp, program, aim, fixed)
        if hint is not None:
            for variable, value in zip(variables, hint, strict=True):
                variable.setInitialValue(value)
        with TemporaryDirectory(prefix="kant_opt-") as folder:
            log = Path(folder, "cbc.log")
            options: dict[str, Any] = {"gapRel": 0.0, "gapAbs": 0.0, "warmStart": hint is not None, "logPath": str(log)}
            if effort.seconds is not None:
                options["timeLimit"] = max(0.01, effort.seconds - (perf_counter() - started))
            if effort.work is not None:
                options["maxNodes"] = max(1, int(1000 * effort.work))
            cbc = _cbc(pulp, **options, options=[f"randomCbcSeed {effort.seed + 1}"])
            cbc.tmpDir = folder
            if stop.asked:
                return RawAnswer("UNKNOWN", note="stopped before it started")
            problem.solve(cbc)
            return _read_log(log.read_text(), [v.varValue for v in variables], aim, perf_counter() - started)


def _cbc(pulp: Any, **options: Any) -> Any:
    """Return PuLP's CBC: the one inside PuLP 3, else the one on the path."""
    inside = getattr(getattr(pulp, "PULP_CBC_CMD", None), "pulp_cbc_path", None)
    return pulp.COIN_CMD(path=inside, msg=False, **options) if inside else pulp.COIN_CMD(msg=False, **options)


def _read_log(text: str, values: list[float | None], aim: Aim, seconds: float) -> RawAnswer:
    value, bound = _LOG_VALUE.search(text), _LOG_BOUND.search(text)
    optimal = "Result - Optimal solution found" in text
    if value is None or any(v is None for v in values):
        impossible = "Result - Problem proven infeasible" in text
        return RawAnswer("INFEASIBLE" if impossible else "UNKNOWN", seconds=seconds)
    proven = bound[1] if bound else value[1] if optimal else None
    return RawAnswer(
        "OPTIMAL" if optimal else "FEASIBLE",
        [round(v or 0.0) for v in values],
        None,
        None if proven is None else aim.bound(float(proven)),
        seconds,
    )
