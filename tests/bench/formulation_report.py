"""Prints the tables of docs/concepts/formulations.md: the folded program beside the per-node one.

`PYTHONPATH=tests python -m bench.formulation_report [--seconds S] [--backend NAME] [--binpack FILE ...]`: clusters with
small and large gangs, then bin packing instances of the OR-Library where files of theirs are named.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from time import perf_counter

from kant_opt.backends import BACKENDS
from kant_opt.backends.exact import Exact
from kant_opt.engine import place
from kant_opt.fabric import build_fabric
from kant_opt.formulation.classes import Fold, fold, unfolded
from kant_opt.formulation.written import Written
from kant_opt.schema import Objective, Outcome, Request
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, Gang, compile_gangs

Choose = Callable[[Cluster, Free, Sequence[Gang]], Fold]
EVEN, UNEVEN = (1, 2, 4, 8), (2, 3, 5, 8)
CLUSTERS = [(64, 16, EVEN), (64, 16, UNEVEN), (256, 40, EVEN), (256, 40, UNEVEN), (2_048, 200, EVEN)]
"""Nodes, gangs, GPUs per pod."""


def per_node(cluster: Cluster, free: Free, gangs: Sequence[Gang]) -> Fold:
    """Fold nothing."""
    return unfolded(gangs)


def mixed(nodes: int, gangs: int, sizes: Sequence[int], seed: int = 1) -> Request:
    """Return racks of 16 nodes with 8 GPUs, 4 racks a block, full but for a few GPUs of small and large gangs."""
    draw, left, jobs = Random(seed), 8 * nodes, []
    for i in range(gangs):
        gpus = draw.choice(sizes)
        pods = min(left // gpus, max(1, round(draw.uniform(0.3, 1.7) * 8 * nodes / gangs / gpus)))
        left -= pods * gpus
        jobs += [gang(f"gang{i}", pods, gpus)] if pods else []
    block = "|".join([",".join(["8"] * 16)] * 4)
    return racks("/".join([block] * (nodes // 64)), jobs=jobs)


def binpacking(file: Path, most: int) -> Iterator[tuple[str, Request]]:
    """Yield the first instances of a file: a node has CPU for a bin, a pod takes as many GPUs as CPU, and one GPU more
    than there is CPU for leaves every node broken that is used: broken nodes are bins."""
    words = iter(file.read_text().split())
    for _ in range(min(most, int(next(words)))):
        name, room, items, best = next(words), int(next(words)), int(next(words)), int(next(words))
        sizes = [int(next(words)) for _ in range(items)]
        jobs = [gang(f"i{i}", 1, size, cpu_milli=size) for i, size in enumerate(sizes)]
        order = Objective(order=("admitted", "broken_nodes"))
        request = racks(",".join([str(room + 1)] * (best + 2)), jobs=jobs, objective=order)
        nodes = tuple(node.model_copy(update={"cpu_milli": room}) for node in request.nodes)
        yield f"{name} ({best})", request.model_copy(update={"nodes": nodes})


def solved(request: Request, choose: Choose, backend: str, seconds: float) -> tuple[Outcome, float]:
    """Return the outcome and its wall time."""
    exact = BACKENDS[backend]
    assert isinstance(exact, Exact), f"{backend} solves no program"
    exact.choose = choose
    started = perf_counter()
    limits = request.limits.model_copy(update={"deadline_ms": int(1000 * seconds)})
    return place(request, backend=backend, limits=limits), perf_counter() - started


def rows(name: str, request: Request, backend: str, seconds: float) -> Iterator[str]:
    """Yield one line per formulation: its size, the time to build it, and what came of it in the time given."""
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    gangs, free = compile_gangs(cluster), Free(cluster)
    choices: list[tuple[str, Choose]] = [("per node", per_node), ("folded", fold)]
    for label, choose in choices:
        started = perf_counter()
        chosen = choose(cluster, free, gangs)
        size = Written(cluster, free, gangs, chosen).program.stats()
        built = perf_counter() - started
        cells = [name, label if not chosen.classes else str(chosen).split(",")[0], f"{size.variables:,}"]
        cells += [f"{size.rows:,}", f"{built:.1f}"]
        outcome, took = solved(request, choose, backend, seconds)
        for level in outcome.levels:
            cells.append(f"{level.value:,}" if level.proven else f"{level.value:,} (bound {level.bound:,})")
        yield "| " + " | ".join([*cells, f"{took:.1f}"]) + " |"


def main() -> None:
    """Print one row per program as it is solved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--backend", default="milp")
    parser.add_argument("--binpack", type=Path, nargs="*", default=[])
    parser.add_argument("--instances", type=int, default=3, help="of each file")
    asked = parser.parse_args()
    print("| cluster | program | variables | rows | built, s | admitted | traffic | broken nodes | broken leaves | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for nodes, gangs, sizes in CLUSTERS:
        name = f"{nodes:,} nodes, {gangs} gangs of {', '.join(map(str, sizes))}"
        for line in rows(name, mixed(nodes, gangs, sizes), asked.backend, asked.seconds):
            print(line, flush=True)
    if asked.binpack:
        print("\n| instance (bins) | program | variables | rows | built, s | admitted | broken nodes | s |")
        print("|---|---|---|---|---|---|---|---|")
    for file in asked.binpack:
        for name, request in binpacking(file, asked.instances):
            for line in rows(name, request, asked.backend, asked.seconds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
