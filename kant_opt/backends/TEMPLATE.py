"""A solver of your own, to copy: put its name, its packages and its translation where this one has dots.

Register it at the end of `exact.py` beside the others: Exact("mine", Mine). The shared suites then try it on every
case: `tests/backends/test_exact.py` against brute force, `tests/backends/test_faults.py` for lies and delays.
"""

# ruff: noqa: N999  # its name says that it is not one of the backends

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from kant_opt.backends.solver import Aim, Effort, Fixed, OnEvent, RawAnswer, Solver, Stop, Word, fixing_rows
from kant_opt.formulation.program import Level, Program, Sense

_WORDS: dict[str, Word] = {"Optimal": "OPTIMAL", "Infeasible": "INFEASIBLE"}
"""The solver's words that count; every other one is UNKNOWN."""


class Template(Solver):
    """Say here what one should know of it: threads, repeatability, what its bound means."""

    name = "template"
    needs = ("package_that_must_be_installed",)
    loads = ("module_that_takes_long_to_import",)

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
        started = perf_counter()
        # import the package here: `import kant_opt` stays light
        aim = Aim.of(level)  # always minimised, in integers, divided by what all coefficients share
        bounds = list(zip(program.lower, program.upper, program.integer, strict=True))
        rows: list[tuple[dict[int, int], Sense, int]] = [
            (dict(program.terms_of(r)), sense, program.rhs[r]) for r, sense in enumerate(program.senses)
        ]
        rows += fixing_rows(fixed)
        # give bounds, rows and aim.terms to the solver, and:
        # - gap tolerances 0, effort.seconds (wall) or effort.work (its own count), effort.workers, effort.seed
        # - hint as a start, where it takes one
        # - stop.when_asked(<what makes it stop>); on_event("incumbent" | "bound", value of the level)
        word, found, dual_bound = "", [0.0] * len(bounds), float("-inf")
        return RawAnswer(
            word=_WORDS.get(word, "UNKNOWN"),
            values=[round(value) for value in found],  # None where it has no solution: look at its status first
            bound=aim.bound(dual_bound),
            seconds=perf_counter() - started,
        )
