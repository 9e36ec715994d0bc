"""Prints the table of docs/benchmarks/slurm.md. Run by `make bench-slurm`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from kant_opt.backends import Order
from kant_opt.engine import place

from .slurm import LEAST_COST, Score, folder, load

ORDERS: tuple[Order, ...] = ("online", "batch")
COLUMNS = (
    "recording",
    "gangs",
    "placed by",
    "extra leaves",
    "extra spines",
    "broken nodes",
    "cost",
    "proven least",
    "above it",
    "seconds",
)


def table() -> Iterator[str]:
    """Yield a Markdown table: Slurm, then ours in order of arrival and all at once, per recording."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield "|---" * len(COLUMNS) + "|"
    for name in LEAST_COST:
        recording = load(name)
        gangs = str(len(recording.request.jobs))
        yield _row(name, gangs, "Slurm", recording.score(recording.slurm), "")
        for order in ORDERS:
            outcome = place(recording.request, order=order)
            assert outcome.placement is not None
            yield _row(name, gangs, order, recording.score(outcome.placement), f"{outcome.run.seconds:.2f}")


def _row(name: str, gangs: str, placed_by: str, score: Score, seconds: str) -> str:
    least = LEAST_COST[name]
    above = f"{100 * (score.cost - least) / least:.0f} %"
    cells = (name, gangs, placed_by, score.extra_leaves, score.extra_spines, score.broken_nodes, score.cost)
    return f"| {' | '.join(map(str, (*cells, least, above, seconds)))} |"


def main() -> int:
    """Print the table; 1 where the recordings are missing."""
    if folder() is None:
        sys.stderr.write("the recordings of Slurm are not beside the checkout: set KANT_OPT_SHARED\n")
        return 1
    sys.stdout.write("\n".join(table()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
