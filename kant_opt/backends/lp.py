"""Linear programs for HiGHS, by arrays: only floating point comes back, so nothing here proves anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
