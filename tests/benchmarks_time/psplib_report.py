"""Measure PSPLIB, one line per instance and a summary per kind: `python -m tests.benchmarks_time.psplib_report j30`.

By a limit of work (`--work`, in units of CP-SAT's deterministic time, one to four CPU seconds each), so that the
values do not depend on the machine; with `--seconds` by the clock and eight workers instead.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from kant_opt.backends import Deadline
from kant_opt.backends.cpsat_schedule import CpSatSchedule
from kant_opt.backends.schedule import solve_schedule
from kant_opt.schema import Limits
from tests.benchmarks_time.psplib import best_known, read_project

WORK = 5.0


@dataclass(frozen=True)
class Row:
    """What one instance came to, beside the bounds published."""

    name: str
    value: int | None
    bound: int
    source: str
    published: tuple[int | None, int]
    seconds: float

    @property
    def gap(self) -> float | None:
        """Share by which the value exceeds the best known one; below 0 it would be a new one."""
        return None if self.value is None else self.value / self.published[1] - 1


def measure(path: Path, published: tuple[int | None, int], work: float, seconds: float | None) -> Row:
    """Solve one instance from nothing."""
    limits = Limits(search_states=int(work * 1_000_000))
    started = perf_counter()
    deadline = Deadline(None if seconds is None else int(seconds * 1000))
    found = solve_schedule(read_project(path).program(), None, CpSatSchedule(), limits, deadline)
    taken = perf_counter() - started
    if found.schedule is None:
        return Row(path.stem, None, 0, "", published, taken)
    return Row(path.stem, found.values[0], found.bounds[0].value, found.bounds[0].source, published, taken)


def summary(kind: str, rows: list[Row]) -> str:
    """Return the line of a table: instances, proven, at the best known, mean gap to it, sources of the bounds."""
    gaps = [row.gap for row in rows if row.gap is not None]
    proven = sum(row.value == row.bound for row in rows)
    met = sum(row.value is not None and row.value <= row.published[1] for row in rows)
    sources = ", ".join(f"{count} {name}" for name, count in Counter(row.source for row in rows).most_common())
    return (
        f"| {kind} | {len(rows)} | {proven} | {met} | {100 * sum(gaps) / max(1, len(gaps)):.2f} % "
        f"| {100 * max(gaps, default=0):.1f} % | {sources} |"
    )


def main() -> None:
    """Print a line per instance and the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("j30", "j60", "j120"))
    parser.add_argument("--folder", type=Path, default=Path("../shared/data/benchmarks/psplib"))
    parser.add_argument("--work", type=float, default=WORK)
    parser.add_argument("--seconds", type=float)
    asked = parser.parse_args()
    published = best_known(asked.folder, asked.kind)
    rows = []
    for path in sorted((asked.folder / asked.kind).glob("*.rcp")):
        row = measure(path, published[path.stem], asked.work, asked.seconds)
        print(row.name, row.value, row.bound, row.source, *row.published, f"{row.seconds:.1f} s", flush=True)
        rows.append(row)
    print(summary(asked.kind, rows))


if __name__ == "__main__":
    main()
