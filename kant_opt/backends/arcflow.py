"""The traffic bound in whole numbers: the arc-flow program with cuts, of which the best rents are the dual solution.

Every row of the rents' program (backends.rents) is an arc here: a node that stays free, a piece that takes nodes of a
leaf, a cut of a piece in two. Every rent and every price is a balance: as many pieces come in as go out. With arcs in
whole numbers a solver's branching and cuts raise the bound above that of any rents. Leaves under parents alike flow
together, so a solution need not be a placement, and only the bound is read.

Bin packing with item fragmentation: Casazza and Ceselli, Computers & Operations Research 46 (2014),
doi:10.1016/j.cor.2013.12.004. The transposition is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from math import ceil
from time import monotonic

import numpy as np

from kant_opt.backends.lp import Row
from kant_opt.backends.rents import Choice, arcs
from kant_opt.backends.solver import RawAnswer, Stop, within
from kant_opt.backends.worker import give_back, hire, told_to_stop
from kant_opt.bounds.rents import Market

MOST_ARCS = 60_000
"""Arcs beyond which no program in whole numbers is tried."""
_LONGEST_S = 30.0
_MOST_NODES = 2_000
_PATIENCE_S = 0.03
_FAR = 1_000_000
_TOLERANCE = 1e-5


def fewest_cuts(
    market: Market, enough: int, seconds: float | None, stop: Stop, choice: Choice | None = None
) -> int | None:
    """Return a bound on the traffic of the market's jobs, or of any set of a choice; as soon as it is `enough`.

    None where HiGHS is not installed, fails, or proves nothing in time (30 s where none is given). It works in a
    process that is ended at the deadline or when somebody asks to stop.
    """
    if find_spec("highspy") is None:
        return None
    costs_of, rows = arcs(market, choice)
    if len(rows) > MOST_ARCS:
        return None
    worker = hire(("highspy",))
    limit = _LONGEST_S if seconds is None else seconds
    until = monotonic() + limit

    def ask(inner: Stop) -> RawAnswer:
        inner.when_asked(worker.stop)
        answer = worker.call(_bound, costs_of, rows, enough, until)
        assert isinstance(answer, float)
        proven = 0 <= answer < enough + _FAR  # what is beyond is a solver's infinity
        return RawAnswer("UNKNOWN", values=[], bound=ceil(answer - _TOLERANCE) if proven else None)

    try:
        return within(limit, ask, patience=_PATIENCE_S, stop=stop, end=worker.kill).bound
    finally:
        give_back(worker)


def _bound(balances: Sequence[int], arcs: Sequence[Row], enough: int, until: float) -> float:
    """Return what HiGHS proves in time: arcs in whole numbers, their cost least, every balance at least as given."""
    import highspy

    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 0.0),
        ("mip_max_nodes", _MOST_NODES),
        ("time_limit", max(0.01, until - monotonic())),
    ):
        highs.setOptionValue(option, value)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(arcs), len(balances)
    program.col_cost_ = np.array([cost for _, cost in arcs], dtype=np.float64)
    program.col_lower_ = np.zeros(len(arcs))
    program.col_upper_ = np.full(len(arcs), highspy.kHighsInf)
    program.row_lower_ = np.array(balances, dtype=np.float64)
    program.row_upper_ = np.full(len(balances), highspy.kHighsInf)
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = np.cumsum([0, *(len(terms) for terms, _ in arcs)])
    matrix.index_ = np.array([i for terms, _ in arcs for i, _ in terms])
    matrix.value_ = np.array([c for terms, _ in arcs for _, c in terms], dtype=np.float64)
    program.integrality_ = [highspy.HighsVarType.kInteger] * len(arcs)
    highs.passModel(program)
    stop = told_to_stop()
    best = [0.0]

    def look(event: object) -> None:
        best[0] = max(best[0], event.data_out.mip_dual_bound)  # type: ignore[attr-defined]  # HiGHS's own event
        if stop.asked or best[0] > enough - 1 + _TOLERANCE:
            event.interrupt()  # type: ignore[attr-defined]

    highs.cbMipInterrupt.subscribe(look)
    highs.run()
    return max(best[0], float(highs.getInfo().mip_dual_bound))
