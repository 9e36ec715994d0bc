"""Prints the figures of docs/benchmarks/kueue.md: agreement on the cases, domains and times on the clusters.

Run by `make bench-kueue`; needs nothing but the recordings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import geometric_mean

from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Request, parse

from .cases import Case, document, domains_used, load_cases, pods_of, pods_of_kueue
from .clusters import CLUSTERS, LEVELS, Timed, place_all, session

REPEATS = 15
VERDICTS = ("refused by both", "same domains", "fewer domains", "more, below the level asked for", "other")


def agreement() -> Iterator[str]:
    """Yield a Markdown table of verdicts per kind, and a line per case that is not plain agreement."""
    table: dict[str, Counter[str]] = {}
    notes = []
    for case in load_cases():
        verdict, note = _compare(case)
        table.setdefault(_sort(case), Counter())[verdict] += 1
        if note:
            notes.append(f"| {case['name']} | {note} |")
    yield "| kind | " + " | ".join(VERDICTS) + " |"
    yield "|---" * (len(VERDICTS) + 1) + "|"
    for kind, counts in table.items():
        yield f"| {kind} | " + " | ".join(str(counts[v]) for v in VERDICTS) + " |"
    total = sum(table.values(), Counter())
    yield "| **all** | " + " | ".join(f"**{total[v]}**" for v in VERDICTS) + " |"
    yield ""
    yield from notes


def clusters(name: str) -> Iterator[str]:
    """Yield a Markdown table of one cluster: domains and times beside Kueue's."""
    found = list(place_all(name, session(name), REPEATS))
    yield f"### {name}"
    yield "| request | blocks, racks | Kueue | best ms | median ms | mean CPU ms | Kueue best | Kueue CPU | ratio |"
    yield "|---" * 9 + "|"
    for run in found:
        cells = [
            _span(run.used),
            _span(run.kueue) + (" (more)" if run.kueue != run.used else ""),
            *(f"{us / 1000:.2f}" for us in (run.best_us, run.median_us, run.cpu_us)),
            *(f"{run.kueue_us[key] / 1000:.2f}" for key in ("min_us", "cpu_us")),
            f"{_ratio(run):.2f}",
        ]
        yield f"| {run.name} | " + " | ".join(cells) + " |"
    yield ""
    yield summary(name, found)


def summary(name: str, found: Sequence[Timed]) -> str:
    """Return one row: how often we are faster, by how much on geometric average, all and per size of gang."""
    cells = [f"{sum(_ratio(run) > 1 for run in found)} of {len(found)}"]
    cells.append(f"{geometric_mean(map(_ratio, found)):.2f}")
    cells.append(f"{geometric_mean(_ratio(run) for run in found if run.used is None):.2f}")
    for count in (1, 16, 128, 512):
        ratios = [_ratio(run) for run in found if run.used and run.request["count"] == count]
        cells.append(f"{geometric_mean(ratios):.2f}" if ratios else "")
    racks = [(run.used["rack"], run.kueue["rack"]) for run in found if run.used and run.kueue]
    cells.append(f"{sum(ours for ours, _ in racks)} / {sum(theirs for _, theirs in racks)}")
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    out = sys.stdout
    for line in agreement():
        out.write(line + "\n")
    for name in CLUSTERS:
        for line in clusters(name):
            out.write(line + "\n")
        out.flush()


def _sort(case: Case) -> str:
    if case["kind"] != "place":
        return str(case["kind"])
    if "leader_workers" in case["tags"]:
        return "place: leader and workers"
    if len(case["podsets"]) > 1:
        return "place: several podsets"
    return "place: one podset, slices" if case["podsets"][0]["slices"] else "place: one podset"


def _compare(case: Case) -> tuple[str, str]:
    """Return a verdict, and a note where it takes more than a word."""
    try:
        ours = pods_of(case, place(parse(Request, document(case))))
    except InputError as refusal:
        return "other", f"refused as a question: {refusal}"
    if ours is None:
        return ("other", "we refuse it") if case["expect"]["fits"] else ("refused by both", "")
    if not case["expect"]["fits"]:
        return "other", "Kueue refuses it"
    names = {p["name"] for p in case["podsets"]}
    mine, theirs = domains_used(case, ours, names), case["expect"]["domains_used_per_level"]
    if case["kind"] != "select":
        assert theirs == domains_used(case, pods_of_kueue(case), names)
    if mine == theirs:
        return "same domains", ""
    spans = f"{_levels(mine)} against {_levels(theirs)}"
    wished = [case["levels"].index(p["required_level"] or p["preferred_level"]) for p in case["podsets"] if _wish(p)]
    if list(mine.values()) < list(theirs.values()):
        return "fewer domains", spans
    if wished and list(mine.values())[: max(wished) + 1] == list(theirs.values())[: max(wished) + 1]:
        return "more, below the level asked for", spans
    return "other", spans


def _wish(podset: Case) -> bool:
    return bool(podset["required_level"] or podset["preferred_level"])


def _levels(used: dict[str, int]) -> str:
    return " ".join(f"{level}={number}" for level, number in used.items())


def _span(used: dict[str, int] | None) -> str:
    return "no fit" if used is None else ", ".join(str(used[level]) for level in LEVELS)


def _ratio(run: Timed) -> float:
    """Kueue's best time over ours: above 1 we are faster."""
    return run.kueue_us["min_us"] / run.best_us


if __name__ == "__main__":
    main()
