"""Runs backends on the coupled instances and prints the tables of docs/benchmarks/coupled.md.

`python -m bench.coupled_report run --out FILE [--backends search ...] [--seconds 10 60] [--only PATTERN] [--again]`
appends one JSON line per instance, backend and deadline to FILE; what is there already is not run again.
`python -m bench.coupled_report table --out FILE [--backends search] [--seconds 10]` prints one row per instance.

0 seconds: no deadline, the work limits alone. Processor seconds are kept too: what a deadline allows depends on what
else the machine does.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from time import perf_counter
from typing import Any

from kant_opt.engine import place
from kant_opt.io import read_request
from kant_opt.schema import LevelValue, Limits
from kant_opt.testing.coupled_recipes import RECIPES

FOLDER = Path(__file__).resolve().parents[2] / "instances" / "coupled"
Run = dict[str, Any]
TERMS = ("admitted", "traffic", "broken_nodes", "broken_leaves")


def run(name: str, backend: str, seconds: int, rounds: int) -> Run:
    """Return what one backend made of one instance within a deadline."""
    request, _ = read_request(FOLDER / f"{name}.json.gz", format="native")
    started, used = perf_counter(), _processor_seconds()
    outcome = place(request, backend=backend, limits=Limits(deadline_ms=1000 * seconds or None, rounds=rounds))
    return {
        "instance": name,
        "backend": backend,
        "deadline_s": seconds,
        "seconds": round(perf_counter() - started, 2),
        "cpu": round(_processor_seconds() - used, 2),
        "status": outcome.status,
        "limit_hit": outcome.run.limit_hit,
        "notes": list(outcome.run.notes),
        "placed": len(outcome.placement.jobs) if outcome.placement else 0,
        "jobs": len(request.jobs),
        "levels": [_level(level) for level in outcome.levels],
    }


def _processor_seconds() -> float:
    """Return the processor time of this process and of those that it started and that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


def _level(level: LevelValue) -> Run:
    return {"name": level.name, "value": level.value, "bound": level.bound, "by": level.bound_source}


def load(path: Path) -> dict[tuple[str, str, int], Run]:
    """Return the last run per instance, backend and deadline."""
    lines = path.read_text().splitlines() if path.exists() else []
    runs: list[Run] = [json.loads(line) for line in lines]
    return {(r["instance"], r["backend"], r["deadline_s"]): r for r in runs}


def rows(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a Markdown table: value, and in brackets the bound where it is another."""
    yield "| instance | jobs | placed | admitted, GPUs | traffic | broken nodes | broken leaves | s | processor s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for one in runs:
        cells = [one["instance"], one["jobs"], one["placed"], *(_cell(one, term) for term in TERMS)]
        yield f"| {' | '.join(map(str, cells))} | {one['seconds']:.1f} | {one['cpu']:.1f} |"


def _cell(one: Run, term: str) -> str:
    """Return the values of a term, several classes apart by a slash."""
    levels = [level for level in one["levels"] if level["name"].split("[")[0] == term]
    return " / ".join(_shown(level, 1000 if term == "admitted" else 1) for level in levels)


def _shown(level: Run, unit: int) -> str:
    value, bound = level["value"], level["bound"]
    shown = f"{value / unit:g}" if value < 1_000_000 or unit == 1 else f"{value // unit:,}"
    return shown if bound == value else f"{shown} ({'none' if bound is None else format(bound / unit, ',.15g')})"


def summary(runs: Sequence[Run]) -> Iterator[str]:
    """Yield per term how many instances are proven, and how many lie within 1 % of their bound."""
    yield "| level | proven | gap at most 1 % | of |"
    yield "|---|---|---|---|"
    for term in TERMS:
        gaps = [
            max((_gap(level) for level in one["levels"] if level["name"].split("[")[0] == term), default=0)
            for one in runs
        ]
        proven, near = sum(g == 0 for g in gaps), sum(g <= 0.01 for g in gaps)
        yield f"| {term} | {proven} | {near} | {len(runs)} |"


def _gap(level: Run) -> float:
    value, bound = level["value"], level["bound"]
    return float("inf") if bound is None else abs(value - bound) / max(1, abs(value))


def main() -> None:
    """Run, or print."""
    parser = argparse.ArgumentParser(prog="bench.coupled_report", description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--backends", nargs="*", default=["search"])
    parser.add_argument("--seconds", nargs="*", type=int, default=[10])
    parser.add_argument("--rounds", type=int, default=Limits().rounds)
    parser.add_argument("--only", default="*", help="pattern of instance names")
    parser.add_argument("--again", action="store_true", help="run also what is there")
    asked = parser.parse_args()
    names = [recipe.name for recipe in RECIPES if fnmatch(recipe.name, asked.only)]
    done = load(asked.out)
    for backend in asked.backends:
        for seconds in asked.seconds:
            if asked.what == "table":
                runs = [done[name, backend, seconds] for name in names if (name, backend, seconds) in done]
                print(f"\n{backend}, {seconds} s\n", *rows(runs), "", *summary(runs), sep="\n")
                continue
            for name in names:
                if asked.again or (name, backend, seconds) not in done:
                    line = json.dumps(run(name, backend, seconds, asked.rounds))
                    with asked.out.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
