"""Prints the table of docs/benchmarks/search.md. Run by `make bench-search`.

`python -m bench.search_report [--large]`: clusters full of gangs of whole nodes, E-Binpack beside the search and the
bound by rents. `--large` adds 102,400 nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from random import Random
from time import perf_counter
from typing import NamedTuple

from kant_opt.engine import place
from kant_opt.schema import FabricSpec, Job, Limits, Node, PodSet, Request

ODD = (2, 3, 3, 5, 5, 6, 7, 9, 11, 12, 13, 20, 24, 40)
MIXES: dict[str, Callable[[Random], int]] = {
    "odd": lambda draw: draw.choice(ODD),
    "even": lambda draw: draw.randint(2, 54),
    "wide": lambda draw: round(2 ** draw.uniform(0, 7.2)),
}


class Cluster(NamedTuple):
    """Nodes in leaves of one size, leaves in spines of one size (all in one spine: only leaves matter)."""

    nodes: int
    leaf: int
    leaves_per_spine: int
    mix: str
    fill: float = 1.0


CLUSTERS = [
    *(Cluster(nodes, 32, nodes // 32, mix) for nodes in (1_024, 10_240) for mix in MIXES),
    *(Cluster(nodes, 16, 16, mix, fill) for nodes in (2_048, 10_240) for mix in MIXES for fill in (0.97, 1.0)),
]
LARGE = [Cluster(102_400, 32, 3_200, mix) for mix in MIXES]


def request(cluster: Cluster, seed: int = 1) -> Request:
    """Return the cluster with gangs drawn until it is as full as asked; the last gang takes what is left."""
    draw, left, sizes = Random(seed), int(cluster.nodes * cluster.fill), []
    while left:
        sizes.append(min(left, MIXES[cluster.mix](draw)))
        left -= sizes[-1]
    per_spine = cluster.leaf * cluster.leaves_per_spine
    nodes = tuple(
        Node(name=f"n{i:06}", path=(f"spine{i // per_spine:03}", f"leaf{i // cluster.leaf:05}"), gpus=8)
        for i in range(cluster.nodes)
    )
    jobs = tuple(Job(name=f"gang{i:05}", podsets=(PodSet(count=n, gpus=8),)) for i, n in enumerate(sizes))
    return Request(fabric=FabricSpec(levels=("spine", "leaf")), nodes=nodes, jobs=jobs)


def main() -> None:
    """Print one row per cluster as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rounds", type=int, default=200)
    asked = parser.parse_args()
    print("| nodes | leaf | leaves a spine | mix | full | gangs | E-Binpack | s | search | bound | gap | s |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for cluster in CLUSTERS + LARGE * asked.large:
        asks = request(cluster)
        cells = [f"{cluster.nodes:,}", cluster.leaf, cluster.leaves_per_spine, cluster.mix, f"{cluster.fill:.0%}"]
        cells.append(len(asks.jobs))
        for backend in ("e-binpack", "search"):
            started = perf_counter()
            outcome = place(asks, backend=backend, limits=Limits(rounds=asked.rounds))
            seconds = perf_counter() - started
            (traffic,) = [level for level in outcome.levels if level.name == "traffic"]
            cells.append(traffic.value)
            if backend == "search":
                cells += [traffic.bound, "proven" if traffic.proven else traffic.gap]
            cells.append(f"{seconds:.1f}")
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
