"""Prints the tables of docs/benchmarks/openb.md. Run by `make bench-openb`; pod lists may be named, seeds too.

`python -m bench.openb_report [--seeds N] [--offline] [WORKLOAD ...]`, by default three seeds of the default list;
`--offline` prints only what all pods known beforehand allow.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from .openb import Replay, draw_arrivals, folder, read_trace, replay
from .openb_offline import batch, best_bound, market_of

BACKENDS = ("random", "spread", "first-fit", "binpack", "best-fit", "e-binpack")
FIRST_SEED = 42
FRAGMENTATION_AT = (0.5, 0.8, 1.0)

PUBLISHED = {
    "default": {
        "Random": 87.47,
        "DotProd": 90.85,
        "Clustering": 91.88,
        "Packing": 92.00,
        "BestFit": 93.08,
        "FGD": 95.39,
    },
    "cpu200": {
        "Random": 83.77,
        "DotProd": 87.70,
        "Clustering": 89.92,
        "Packing": 90.22,
        "BestFit": 92.40,
        "FGD": 95.05,
    },
    "gpushare100": {
        "Random": 79.44,
        "DotProd": 82.42,
        "Clustering": 82.65,
        "Packing": 82.57,
        "BestFit": 85.01,
        "FGD": 86.90,
    },
    "multigpu50": {
        "Random": 90.27,
        "DotProd": 94.85,
        "Clustering": 95.81,
        "Packing": 96.18,
        "BestFit": 95.74,
        "FGD": 97.18,
    },
    "gpuspec33": {
        "Random": 86.46,
        "DotProd": 89.14,
        "Clustering": 92.12,
        "Packing": 93.22,
        "BestFit": 93.09,
        "FGD": 94.55,
    },
}
"""GPUs allocated at 130 % arrived, %, means over ten seeds: the FGD simulator's expected results."""


def table(workload: str, seeds: Sequence[int]) -> Iterator[str]:
    """Yield a Markdown table of one pod list: a row per backend, then the published figures."""
    yield f"**{workload}**, {len(seeds)} seeds: GPUs allocated at 130 % arrived, unusable (FGD) at 50, 80, 100 %"
    yield ""
    yield "| policy | allocated, % | sd | unusable, % of all GPUs | seconds a run | us a pod |"
    yield "|---|---|---|---|---|---|"
    trace = read_trace(workload)
    for backend in BACKENDS:
        yield _row(backend, [replay(trace, backend, seed) for seed in seeds])
    for policy, percent in PUBLISHED.get(workload, {}).items():
        yield f"| {policy} (published) | {percent:.2f} | | | | |"


def _row(backend: str, runs: Sequence[Replay]) -> str:
    allocated = [run.allocated_percent() for run in runs]
    spread = f"{stdev(allocated):.2f}" if len(runs) > 1 else ""
    unusable = " / ".join(f"{mean(run.unusable_percent(load) for run in runs):.1f}" for load in FRAGMENTATION_AT)
    seconds = mean(run.seconds for run in runs)
    per_pod = 1e6 * seconds / mean(len(run.arrivals.jobs) for run in runs)
    return f"| {backend} | {mean(allocated):.2f} | {spread} | {unusable} | {seconds:.1f} | {per_pod:.0f} |"


def offline(workloads: Sequence[str], seeds: Sequence[int]) -> Iterator[str]:
    """Yield a Markdown table: per pod list what a batch uses, and what no choice of pods exceeds, % of all GPUs."""
    yield f"All pods known beforehand, {len(seeds)} seeds: GPUs allocated in %"
    yield ""
    yield "| pods | e-binpack, batch | sd | no more than | gap |"
    yield "|---|---|---|---|---|"
    for workload in workloads:
        used, most = [], []
        for seed in seeds:
            arrivals = draw_arrivals(read_trace(workload), seed)
            percent = 0.1 / sum(node.gpus for node in arrivals.nodes)
            used.append(percent * batch(arrivals))
            most.append(percent * best_bound(market_of(arrivals)))
        spread = f"{stdev(used):.2f}" if len(used) > 1 else ""
        yield f"| {workload} | {mean(used):.2f} | {spread} | {mean(most):.2f} | {mean(most) - mean(used):.2f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 where the trace is missing."""
    parser = argparse.ArgumentParser(prog="bench.openb_report", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=["default"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--offline", action="store_true")
    options = parser.parse_args(arguments)
    if folder() is None:
        sys.stderr.write("the openb trace is not beside the checkout: set KANT_OPT_SHARED\n")
        return 1
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    tables = [] if options.offline else [table(workload, seeds) for workload in options.workloads]
    for lines in (*tables, offline(options.workloads, seeds)):
        for line in lines:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
