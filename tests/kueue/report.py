"""Prints the figures of docs/benchmarks/kueue.md: agreement on the cases, domains and times on the clusters.

Run by `make bench-kueue`; needs nothing but the recordings.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import geometric_mean

from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Request, parse

from .cases import Case, document, domains_used, load_cases, pods_of, pods_of_kueue
from .clusters import CLUSTERS, LEVELS, Timed, load, place_all, session

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


def cluster(name: str, found: Sequence[Timed]) -> Iterator[str]:
    """Yield a Markdown table of one cluster: domains and times beside Kueue's."""
    yield f"### {name}"
    yield ""
    heads = "blocks, racks|Kueue|best ms|median ms|mean CPU ms|Kueue best|Kueue CPU|ratio|CPU ratio"
    yield f"| request | {heads.replace('|', ' | ')} |"
    yield "|---" * 10 + "|"
    for run in found:
        cells = [
            _span(run.used),
            _span(run.kueue) + (" (more)" if run.kueue != run.used else ""),
            *(f"{us / 1000:.2f}" for us in (run.best_us, run.median_us, run.cpu_us)),
            *(f"{run.kueue_us[key] / 1000:.2f}" for key in ("min_us", "cpu_us")),
            f"{_wall_ratio(run):.2f}",
            f"{_cpu_ratio(run):.2f}",
        ]
        yield f"| {run.name} | " + " | ".join(cells) + " |"
    yield ""


def summary(found: Mapping[str, Sequence[Timed]]) -> Iterator[str]:
    """Yield a row per cluster: how often we are faster, by how much, all and by size of the gangs placed."""
    yield "| cluster | faster in | ratio, all | not placed | 1 pod | 16 pods | 128 pods | 512 pods | racks in all |"
    yield "|---" * 9 + "|"
    for ratio, clock in ((_wall_ratio, "best"), (_cpu_ratio, "CPU")):
        for name, runs in found.items():
            yield _summary(f"{name}, {clock}", runs, ratio)


def growth(found: Mapping[str, Sequence[Timed]]) -> Iterator[str]:
    """Yield how much longer a request takes on the largest cluster, geometric mean: our least processor time, which
    other work on the machine does not touch, and Kueue's best."""
    yield "| from, to | pattern | nodes | ours | ours, not placed | ours, 512 pods placed | Kueue |"
    yield "|---" * 7 + "|"
    for pattern in ("uniform", "clumped"):
        large = found[f"{pattern}_10000"]
        for size in (640, 2500):
            pairs = [
                (a, b)
                for a, b in zip(found[f"{pattern}_{size}"], large, strict=True)
                if (a.used is None) == (b.used is None)
            ]
            none = [(a, b) for a, b in pairs if a.used is None]
            many = [(a, b) for a, b in pairs if a.used and a.request["count"] == 512]
            factors = [
                *(_growth(p) for p in (pairs, none, many)),
                _ratio_of([(_kueue(a), _kueue(b)) for a, b in pairs]),
            ]
            nodes = len(load(f"{pattern}_10000")["nodes"]) / len(load(f"{pattern}_{size}")["nodes"])
            cells = " | ".join(f"x {factor:.1f}" for factor in [nodes, *factors])
            yield f"| {size}, 10000 | {pattern} | {cells} |"


def _growth(pairs: Sequence[tuple[Timed, Timed]]) -> float:
    return _ratio_of([(min(a.cpu_s), min(b.cpu_s)) for a, b in pairs])


def _ratio_of(pairs: Sequence[tuple[float, float]]) -> float:
    return geometric_mean(b / a for a, b in pairs)


def _kueue(run: Timed) -> float:
    return run.kueue_us["min_us"]


def _summary(name: str, found: Sequence[Timed], ratio: Callable[[Timed], float]) -> str:
    cells = [f"{sum(ratio(run) > 1 for run in found)} of {len(found)}"]
    cells.append(f"{geometric_mean(map(ratio, found)):.2f}")
    cells.append(f"{geometric_mean(ratio(run) for run in found if run.used is None):.2f}")
    for count in (1, 16, 128, 512):
        ratios = [ratio(run) for run in found if run.used and run.request["count"] == count]
        cells.append(f"{geometric_mean(ratios):.2f}" if ratios else "")
    racks = [(run.used["rack"], run.kueue["rack"]) for run in found if run.used and run.kueue]
    cells.append(f"{sum(ours for ours, _ in racks)} / {sum(theirs for _, theirs in racks)}")
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    found = {name: list(place_all(name, session(name), REPEATS)) for name in CLUSTERS}
    tables = [agreement(), summary(found), growth(found), *(cluster(name, runs) for name, runs in found.items())]
    for table in tables:
        sys.stdout.writelines(f"{line}\n" for line in table)
        sys.stdout.write("\n")


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


def _cpu_ratio(run: Timed) -> float:
    """Kueue's mean processor time over ours."""
    return run.kueue_us["cpu_us"] / run.cpu_us


def _wall_ratio(run: Timed) -> float:
    """Kueue's best time over ours: above 1 we are faster."""
    return run.kueue_us["min_us"] / run.best_us


if __name__ == "__main__":
    main()
