"""Programs for HiGHS, by arrays: linear ones here, whole numbers in a process of their own.

Only floating point comes back, so nothing here proves anything; whole values are checked against their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from math import inf
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kant_opt.backends.solver import Stop
from kant_opt.backends.worker import call_in_time, told_to_stop

Row = tuple[tuple[tuple[int, int], ...], int]
"""((variable, coefficient), ...) <= right side."""
Bounded = tuple[Mapping[int, int], int, int]
"""(variable -> coefficient, least, most)."""
WHOLE = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
"""Options with which whole numbers are optimal only where value and bound meet."""
_INTERIOR_FROM = 20_000
_HAS_SOLUTION = 2


def maximise(
    objective: Sequence[int], rows: Sequence[Row], upper: int, seconds: float | None = None
) -> NDArray[np.float64] | None:
    """Return the values of variables in [0, upper] that maximise the objective, None where HiGHS found none in time.

    Beyond a few ten thousand rows by the interior point method, whose values are not those of a corner.
    """
    import highspy

    options: dict[str, object] = {}
    if len(rows) > _INTERIOR_FROM:
        options |= {"solver": "ipm", "run_crossover": "off"}
    if seconds is not None:
        options["time_limit"] = float(seconds)
    costs, most = [-worth for worth in objective], [rhs for _, rhs in rows]
    highs = loaded(costs, [-inf] * len(rows), most, [terms for terms, _ in rows], options, upper=upper)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def loaded(
    costs: Sequence[int],
    least: Sequence[float],
    most: Sequence[float],
    lines: Sequence[Iterable[tuple[int, int]]],
    options: Mapping[str, object],
    *,
    upper: float = inf,
    columns: bool = False,
    whole: bool = False,
) -> Any:
    """Return HiGHS with one thread and a program that minimises `costs`, variables in [0, upper], rows in
    [least, most].

    `lines` are the (variable, coefficient) of each row, or with `columns` the (row, coefficient) of each variable.
    """
    import highspy

    highs = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, **options}.items():
        highs.setOptionValue(option, value)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(costs), len(least)
    program.col_cost_ = np.array(costs, dtype=np.float64)
    program.col_lower_ = np.zeros(len(costs))
    program.col_upper_ = np.full(len(costs), float(upper))
    program.row_lower_ = np.array(least, dtype=np.float64)
    program.row_upper_ = np.array(most, dtype=np.float64)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise if columns else highspy.MatrixFormat.kRowwise
    entries = [list(line) for line in lines]
    matrix.start_ = np.cumsum([0, *map(len, entries)])
    matrix.index_ = np.array([i for line in entries for i, _ in line])
    matrix.value_ = np.array([c for line in entries for _, c in line], dtype=np.float64)
    if whole:
        program.integrality_ = [highspy.HighsVarType.kInteger] * len(costs)
    highs.passModel(program)
    return highs


def least_in_whole_numbers(
    costs: Sequence[int], rows: Sequence[Bounded], seconds: float, stop: Stop
) -> list[int] | None:
    """Return values of whole variables, 0 or more, that keep every row, at the least cost that HiGHS found in time.

    None where it is not installed, fails, or found none. Works in a process that is ended when the time is up.
    """
    if find_spec("highspy") is None:
        return None
    values: list[int] | None = call_in_time(_least, costs, rows, loads=("highspy",), seconds=seconds, stop=stop)
    if values is None or min(values, default=0) < 0:
        return None
    kept = (least <= sum(c * values[i] for i, c in terms.items()) <= most for terms, least, most in rows)
    return values if all(kept) else None


def _least(costs: Sequence[int], rows: Sequence[Bounded], until: float) -> list[int] | None:
    options = {**WHOLE, "mip_max_nodes": 10_000, "time_limit": max(0.01, until - monotonic())}
    least, most = [low for _, low, _ in rows], [high for _, _, high in rows]
    highs = loaded(costs, least, most, [terms.items() for terms, _, _ in rows], options, whole=True)
    stop = told_to_stop()
    highs.cbMipInterrupt.subscribe(lambda event: event.interrupt() if stop.asked else None)
    highs.run()
    if highs.getInfo().primal_solution_status != _HAS_SOLUTION:
        return None
    return [round(value) for value in highs.getSolution().col_value]
