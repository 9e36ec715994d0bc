"""Prints the leaf-span table of docs/benchmarks/coupled.md: gangs of whole nodes that fill leaves of 32.

`python -m bench.leaf_report [--seconds 60] [--nodes 1024 10240]`: `search` beside the usual program, one variable per
gang and leaf, that HiGHS gets the same time for on one thread, without and with E-Binpack's answer to start from.
"""

from __future__ import annotations

import argparse
from collections import Counter
from math import ceil
from time import perf_counter
from typing import NamedTuple

import highspy
import numpy as np

from kant_opt.engine import place
from kant_opt.schema import Limits, Request

from .search_report import MIXES, Cluster, request

LEAF = 32
_INTEGRAL = 1e-6


class Found(NamedTuple):
    """Extra leaves of the best answer and the proven least; None where there is none."""

    value: int | None
    bound: int | None
    seconds: float


def by_search(asks: Request, seconds: int, backend: str = "search") -> tuple[Found, dict[str, dict[str, int]]]:
    """Return what `place` finds, and per gang the nodes in each leaf."""
    started = perf_counter()
    outcome = place(asks, backend=backend, limits=Limits(deadline_ms=1000 * seconds, rounds=1000))
    (traffic,) = [level for level in outcome.levels if level.name == "traffic"]
    leaf = {node.name: str(node.path[-1]) for node in asks.nodes}
    assert outcome.placement is not None
    shares = {job.job: dict(Counter(leaf[pods.node] for pods in job.pods)) for job in outcome.placement.jobs}
    return Found(traffic.value, traffic.bound, perf_counter() - started), shares


def by_program(asks: Request, seconds: int, start: dict[str, dict[str, int]] | None = None) -> Found:
    """Return what HiGHS makes of x[gang, leaf] nodes and y[gang, leaf] = 1 where there are any, sum of y least."""
    started = perf_counter()
    gangs = [job.podsets[0].count for job in asks.jobs]
    leaves = sorted({str(node.path[-1]) for node in asks.nodes})
    pairs = len(gangs) * len(leaves)
    gang, leaf = np.divmod(np.arange(pairs), len(leaves))
    sizes = np.array(gangs)
    most = np.minimum(sizes, LEAF)[gang].astype(float)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = 2 * pairs, len(gangs) + len(leaves) + pairs
    program.col_cost_ = np.concatenate([np.zeros(pairs), np.ones(pairs)])
    program.col_lower_ = np.zeros(2 * pairs)
    program.col_upper_ = np.concatenate([most, np.ones(pairs)])
    program.integrality_ = [highspy.HighsVarType.kInteger] * (2 * pairs)
    # Rows: every gang has its nodes; every leaf gives no more than it has; x <= most y.
    program.row_lower_ = np.concatenate([sizes, np.zeros(len(leaves)), np.full(pairs, -highspy.kHighsInf)])
    program.row_upper_ = np.concatenate([sizes, np.full(len(leaves), LEAF), np.zeros(pairs)])
    rows = np.stack([gang, len(gangs) + leaf, len(gangs) + len(leaves) + np.arange(pairs)], axis=1)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([3 * np.arange(pairs), 3 * pairs + np.arange(pairs + 1)])
    program.a_matrix_.index_ = np.concatenate([rows.ravel(), rows[:, 2]])
    program.a_matrix_.value_ = np.concatenate([np.ones(3 * pairs), -most])
    highs = highspy.Highs()
    for option, setting in {
        "output_flag": False,
        "threads": 1,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1 - _INTEGRAL,
        "time_limit": max(1.0, seconds - (perf_counter() - started)),
    }.items():
        highs.setOptionValue(option, setting)
    highs.passModel(program)
    if start is not None:
        nodes = np.zeros(pairs)
        place_of = {name: i for i, name in enumerate(leaves)}
        for i, job in enumerate(asks.jobs):
            for name, number in start[job.name].items():
                nodes[i * len(leaves) + place_of[name]] = number
        highs.setSolution(2 * pairs, np.arange(2 * pairs), np.concatenate([nodes, (nodes > 0).astype(float)]))
    highs.run()
    info = highs.getInfo()
    value = round(info.objective_function_value) - len(gangs) if info.primal_solution_status == 2 else None
    bound = ceil(info.mip_dual_bound - _INTEGRAL) - len(gangs) if info.mip_dual_bound > 0 else None
    return Found(value, bound, perf_counter() - started)


def main() -> None:
    """Print one row per cluster as it is done."""
    parser = argparse.ArgumentParser(prog="bench.leaf_report", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--nodes", nargs="*", type=int, default=[1_024, 10_240])
    asked = parser.parse_args()
    print("| nodes | mix | gangs | E-Binpack | search | bound | s | program | bound | s | from E-Binpack | bound | s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for nodes in asked.nodes:
        for mix in MIXES:
            asks = request(Cluster(nodes, LEAF, nodes // LEAF, mix))
            greedy, shares = by_search(asks, asked.seconds, "e-binpack")
            cells: list[object] = [f"{nodes:,}", mix, len(asks.jobs), greedy.value]
            for found in (
                by_search(asks, asked.seconds)[0],
                by_program(asks, asked.seconds),
                by_program(asks, asked.seconds, shares),
            ):
                cells += ["none" if n is None else n for n in found[:2]] + [f"{found.seconds:.1f}"]
            print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
