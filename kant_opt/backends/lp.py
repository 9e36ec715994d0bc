"""Programs for HiGHS, by arrays: linear ones here, whole numbers in a process of their own.

Only floating point comes back, so nothing here proves anything; whole values are checked against their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from kant_opt.backends.solver import RawAnswer, Stop, within
from kant_opt.backends.worker import give_back, hire, told_to_stop

Row = tuple[tuple[tuple[int, int], ...], int]
"""((variable, coefficient), ...) <= right side."""
_INTERIOR_FROM = 20_000


def maximise(
    objective: Sequence[int], rows: Sequence[Row], upper: int, seconds: float | None = None
) -> NDArray[np.float64] | None:
    """Return the values of variables in [0, upper] that maximise the objective, None where HiGHS found none in time.

    Beyond a few ten thousand rows by the interior point method, whose values are not those of a corner.
    """
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if len(rows) > _INTERIOR_FROM:
        highs.setOptionValue("solver", "ipm")
        highs.setOptionValue("run_crossover", "off")
    if seconds is not None:
        highs.setOptionValue("time_limit", float(seconds))
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(objective), len(rows)
    program.col_cost_ = -np.array(objective, dtype=np.float64)
    program.col_lower_ = np.zeros(len(objective))
    program.col_upper_ = np.full(len(objective), float(upper))
    program.row_lower_ = np.full(len(rows), -highspy.kHighsInf)
    program.row_upper_ = np.array([rhs for _, rhs in rows], dtype=np.float64)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.cumsum([0, *(len(terms) for terms, _ in rows)])
    matrix.index_ = np.array([i for terms, _ in rows for i, _ in terms])
    matrix.value_ = np.array([c for terms, _ in rows for _, c in terms], dtype=np.float64)
    highs.passModel(program)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


Bounded = tuple[Mapping[int, int], int, int]
"""(variable -> coefficient, least, most)."""


def least_in_whole_numbers(
    costs: Sequence[int], rows: Sequence[Bounded], seconds: float, stop: Stop
) -> list[int] | None:
    """Return values of whole variables, 0 or more, that keep every row, at the least cost that HiGHS found in time.

    None where it is not installed, fails, or found none. Works in a process that is ended when the time is up.
    """
    if find_spec("highspy") is None:
        return None
    worker = hire(("highspy",))
    until = monotonic() + seconds

    def ask(inner: Stop) -> RawAnswer:
        inner.when_asked(worker.stop)
        return RawAnswer("UNKNOWN", values=worker.call(_least, costs, rows, until))

    try:
        values = within(seconds, ask, patience=0.03, stop=stop, end=worker.kill).values
    finally:
        give_back(worker)
    kept = values is not None and all(
        least <= sum(c * values[i] for i, c in terms.items()) <= most for terms, least, most in rows
    )
    return values if kept and values is not None and min(values, default=0) >= 0 else None


def _least(costs: Sequence[int], rows: Sequence[Bounded], until: float) -> list[int] | None:
    import highspy

    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 0.0),
        ("mip_max_nodes", 10_000),
        ("time_limit", max(0.01, until - monotonic())),
    ):
        highs.setOptionValue(option, value)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(costs), len(rows)
    program.col_cost_ = np.array(costs, dtype=np.float64)
    program.col_lower_ = np.zeros(len(costs))
    program.col_upper_ = np.full(len(costs), highspy.kHighsInf)
    program.row_lower_ = np.array([least for _, least, _ in rows], dtype=np.float64)
    program.row_upper_ = np.array([most for _, _, most in rows], dtype=np.float64)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.cumsum([0, *(len(terms) for terms, _, _ in rows)])
    matrix.index_ = np.array([i for terms, _, _ in rows for i in terms])
    matrix.value_ = np.array([c for terms, _, _ in rows for c in terms.values()], dtype=np.float64)
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    highs.passModel(program)
    stop = told_to_stop()
    highs.cbMipInterrupt.subscribe(lambda event: event.interrupt() if stop.asked else None)
    highs.run()
    if highs.getInfo().primal_solution_status != 2:
        return None
    return [round(value) for value in highs.getSolution().col_value]
