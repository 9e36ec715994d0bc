"""Prints the tables of docs/benchmarks/replay.md.

`python -m bench.replay_report logs` replays long archive logs by number, `gangs` the traces with gangs node by node,
`kant` the experiment of the Kant paper on workloads drawn with ten seeds. `logs` and `gangs` need the traces.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, stdev
from time import process_time

from kant_opt.fabric.generators import leaf_spine
from kant_opt.io.traces import Trace, read_trace
from kant_opt.replay import PolicyRun, replay
from kant_opt.replay.generator import Recipe, generated
from kant_opt.replay.side_by_side import Cluster
from kant_opt.schema import FabricSpec, Node, Zone

ROOT = Path(__file__).resolve().parents[2]
TRACES = Path(os.environ.get("KANT_OPT_SHARED", ROOT.parent / "shared" / "data")) / "traces"
SEEDS = range(1, 11)


def logs() -> None:
    """Print waits under EASY on logs of up to 448k jobs, by number alone."""
    print(
        "| log | jobs | GPUs | policy | mean wait s | bounded slowdown | SOR | read s | loop CPU s | measured CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for file, gpus, policies in (
        ("pwa_swf/KTH-SP2-1996-2.swf.gz", 100, ("fifo", "easy", "easy-sjbf", "conservative")),
        ("pyss_easy_results/CTC-SP2_easy_reqtime.swf.gz", 338, ("easy",)),
        ("pyss_easy_results/SDSC-BLUE_easy_reqtime.swf.gz", 1152, ("easy",)),
        ("pyss_easy_results/CEA-curie_easy_reqtime.swf.gz", 80_640, ("easy", "easy-sjbf")),
        ("pwa_swf/RICC-2010-2.swf.gz", 8192, ("easy",)),
    ):
        begun = process_time()
        trace = read_trace(TRACES / file)
        read = process_time() - begun
        for policy in policies:
            begun = process_time()
            found = replay(trace, gpus, policies=[policy])
            (run,) = found.runs
            total = process_time() - begun
            print(
                f"| {Path(file).name.split('.')[0]} | {found.counts['replayed']:,} | {gpus:,} | {policy} "
                f"| {run.mean_wait_s:,.2f} | {run.bounded_slowdown:.2f} | {run.shares.sor:.4f} "
                f"| {read:.1f} | {run.seconds:.1f} | {total - run.seconds:.1f} |",
                flush=True,
            )


def gangs() -> None:
    """Print the traces with gangs node by node: Philly, Muri and Kalos, beside the same by number."""
    print("| trace | gangs | cluster | policy | mean wait s | SOR | GFR | nodes / least | slowdown | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    philly = read_trace(TRACES / "philly" / "philly_jobs.csv.gz")
    kalos = read_trace(TRACES / "acme" / "kalos_319jobs.csv")
    muri = read_trace(TRACES / "muri_philly" / "trace3.csv")
    both = ("fifo", "fifo/binpack", "easy", "easy/binpack", "best-effort")
    for trace, nodes, arrivals in ((philly.of_queue("ee9e8c"), 18, 1.0), (muri, 8, 1.0), (kalos, 302, 9.1)):
        _rows(trace, 8 * nodes, ("fifo", "easy"), arrivals)
        _rows(trace, tree(nodes), both, arrivals)
    _rows(kalos, lingjun(), both, 0.8 * kalos.span_s * lingjun_gpus() / work(kalos))


def _rows(trace: Trace, cluster: Cluster, policies: Sequence[str], arrivals: float) -> None:
    found = replay(trace, cluster, policies=policies, walltimes="exact", arrivals=arrivals)
    what = f"{found.scaling.gpus:,} GPUs" + (f", {len(found.nodes):,} nodes" if found.nodes else "")
    for run in found.runs:
        print(
            f"| {trace.name}, arrivals x {arrivals:.3g} | {found.counts['replayed']:,} | {what} | {run.name} "
            f"| {run.mean_wait_s:,.0f} | {run.shares.sor:.4f} | {_percent(run.shares.gfr_mean)} | {_stretch(run)} "
            f"| {run.seconds:.1f} |",
            flush=True,
        )


def kant() -> None:
    """Print the training experiment: 8,000 GPUs, and services on 320 GPUs, ten seeds each."""
    print("Training, 1,000 nodes of 8 in 10 spines of 10 leaves\n")
    training = leaf_spine(spines=10, leaves=10, nodes_per_leaf=10)
    policies = [f"{p}/{b}" for p in ("fifo", "best-effort", "easy") for b in ("binpack", "e-binpack")]
    _experiment(lambda seed: generated(Recipe(gpus=8000, load=0.95, days=3), seed), training, policies)
    print("\nServices, 40 nodes of 8 in 4 leaves, the zone for services is the first leaf\n")
    spec, nodes = leaf_spine(leaves=4, nodes_per_leaf=10)
    zone = Zone(nodes=tuple(node.name for node in nodes[:10]))
    recipe = Recipe(gpus=320, load=0.8, days=5, inference=0.7, training_sizes={1: 4, 2: 2, 4: 2, 8: 4, 16: 2, 32: 1})
    backends = ("spread", "e-spread", "binpack", "e-binpack")
    _experiment(lambda s: generated(recipe, s), (spec, nodes), [f"best-effort/{b}" for b in backends], zone)


def _experiment(
    draw: Callable[[int], Trace],
    cluster: tuple[FabricSpec, Sequence[Node]],
    policies: Sequence[str],
    zone: Zone | None = None,
) -> None:
    found: dict[str, list[PolicyRun]] = {policy: [] for policy in policies}
    for seed in SEEDS:
        trace = draw(seed)
        for policy in policies:
            result = replay(trace, cluster, policies=[policy], warm_up=0.2, seed=seed, inference_zone=zone)
            (run,) = result.runs
            found[policy].append(run)
            print(f"seed {seed} {policy}: {run.shares}, {run.seconds} s", file=sys.stderr, flush=True)
    print("| policy/backend | GAR = SOR | GFR mean | GFR median | mean wait h | p99 wait h | slowdown | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for policy, runs in found.items():
        print(
            f"| {policy} | {_spread([100 * r.shares.sor for r in runs], ' %')} "
            f"| {_spread([100 * (r.shares.gfr_mean or 0) for r in runs], ' %')} "
            f"| {_spread([100 * (r.shares.gfr_median or 0) for r in runs], ' %')} "
            f"| {_spread([(r.mean_wait_s or 0) / 3600 for r in runs])} "
            f"| {_spread([r.waits[0].p99_s / 3600 for r in runs])} "
            f"| {_spread([r.stretch[0].slowdown for r in runs])} | {fmean(r.seconds for r in runs):.0f} |",
            flush=True,
        )


def tree(nodes: int) -> tuple[FabricSpec, tuple[Node, ...]]:
    """Return nodes of 8 GPUs in leaves of 8, leaves in spines of 8."""
    listed = tuple(Node(name=f"n{i:04}", path=(f"s{i // 64}", f"l{i // 8}"), gpus=8) for i in range(nodes))
    return FabricSpec(levels=("spine", "leaf")), listed


def lingjun() -> tuple[FabricSpec, tuple[Node, ...]]:
    """Return the hosts of a real Clos network, Alibaba Lingjun 2023, taken to have 8 GPUs each."""
    lines = (TRACES / "alibaba_lingjun_2023" / "topo.csv").read_text().splitlines()[1:]
    rows = [line.split(",") for line in lines]
    listed = tuple(Node(name=host, path=(psw, f"{psw}-{asw}"), gpus=8) for host, _, psw, asw in rows)
    return FabricSpec(levels=("aggregation", "leaf")), listed


def lingjun_gpus() -> int:
    """Return the GPUs of that fabric."""
    return 8 * len(lingjun()[1])


def work(trace: Trace) -> int:
    """Return the GPU-seconds of a trace."""
    return sum((job.run_s or 0) * job.gpus for job in trace)


def _spread(values: Sequence[float], unit: str = "") -> str:
    return f"{fmean(values):.2f} ± {stdev(values):.2f}{unit}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _stretch(run: PolicyRun) -> str:
    return f"{run.stretch[0].nodes_ratio:.3f} | {run.stretch[0].slowdown:.3f}" if run.stretch else "- | -"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["logs", "gangs", "kant"])
    {"logs": logs, "gangs": gangs, "kant": kant}[parser.parse_args().what]()
