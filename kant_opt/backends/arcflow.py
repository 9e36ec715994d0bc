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
from math import ceil, inf
from time import monotonic

from kant_opt.backends.lp import WHOLE, Row, loaded
from kant_opt.backends.rents import Choice, arcs
from kant_opt.backends.solver import Stop
from kant_opt.backends.worker import call_in_time, told_to_stop
from kant_opt.bounds.rents import Market

MOST_ARCS = 60_000
"""Arcs beyond which no program in whole numbers is tried."""
_LONGEST_S = 30.0
_MOST_NODES = 2_000
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
    limit = _LONGEST_S if seconds is None else seconds
    found: float | None = call_in_time(_bound, costs_of, rows, enough, loads=("highspy",), seconds=limit, stop=stop)
    if found is None or not 0 <= found < enough + _FAR:  # what is beyond is a solver's infinity
        return None
    return ceil(found - _TOLERANCE)


def _bound(balances: Sequence[int], arcs: Sequence[Row], enough: int, until: float) -> float:
    """Return what HiGHS proves in time: arcs in whole numbers, their cost least, every balance at least as given."""
    options = {**WHOLE, "mip_max_nodes": _MOST_NODES, "time_limit": max(0.01, until - monotonic())}
    costs, most = [cost for _, cost in arcs], [inf] * len(balances)
    highs = loaded(costs, balances, most, [terms for terms, _ in arcs], options, columns=True, whole=True)
    stop = told_to_stop()
    best = [0.0]

    def look(event: object) -> None:
        best[0] = max(best[0], event.data_out.mip_dual_bound)  # type: ignore[attr-defined]  # HiGHS's own event
        if stop.asked or best[0] > enough - 1 + _TOLERANCE:
            event.interrupt()  # type: ignore[attr-defined]

    highs.cbMipInterrupt.subscribe(look)
    highs.run()
    return max(best[0], float(highs.getInfo().mip_dual_bound))
