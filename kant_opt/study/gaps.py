"""How far the answers of each backend are from the best possible: one row per backend, limits and objective term.

The gap of a level is |value - bound| / max(1, |value|) against the best bound that anybody proved. A later level is
compared only where all before it are as good as the best known: its bound speaks of such answers alone, and a lower
cost of a worse answer is no merit. So the number of answers compared falls from term to term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, log1p

from kant_opt.schema import LevelValue
from kant_opt.study.records import Record, best_levels, is_better
from kant_opt.study.rows import Row, limits_text

Levels = tuple[LevelValue, ...]


@dataclass(frozen=True)
class GapRow:
    """What one backend with one set of limits reaches on one term of the objective, over instances and seeds."""

    backend: str
    limits: str
    term: str
    """`admitted` stands for all its priority classes: the widest gap among those compared."""
    runs: int
    failed: int
    """Of `runs`, those without an outcome; they count in no other column."""
    compared: int
    """Runs as good as the best known on every term before; the share proven is of these."""
    bounded: int
    """Of those, the ones that a bound is known for; mean, geometric mean and worst are of these."""
    mean: float | None
    geometric: float | None
    """Geometric mean of 1 + gap, less 1: gaps of 0 are allowed."""
    worst: float | None
    worst_instance: str
    proven: float | None
    """Share of the compared whose value meets its bound."""


def gap_rows(rows: Iterable[Row], records: Iterable[Record] = ()) -> list[GapRow]:
    """Return the table of a study: in order of first appearance, per backend and limits, term by term.

    The best known is the best of the study's own rows and the `records` of the same requests.
    Raises InputError where a bound is beaten by the answer of another run.
    """
    rows = list(rows)
    best = best_known(rows, records)
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.backend, limits_text(row.limits)), []).append(row)
    return [
        _gap_row(backend, limits, term, group, best)
        for (backend, limits), group in groups.items()
        for term in dict.fromkeys(_term(level.name) for row in rows for level in row.levels)
    ]


def best_known(rows: Iterable[Row], records: Iterable[Record] = ()) -> dict[str, Levels]:
    """Return the best values with their best bounds, by digest of the request."""
    best: dict[str, Levels] = {}
    answers: list[Record | Row] = [*records, *rows]
    for found in answers:
        if not found.levels:
            continue
        known = best.get(found.digest)
        if known is None:
            best[found.digest] = found.levels
        else:
            better, other = (found.levels, known) if is_better(found.levels, known) else (known, found.levels)
            best[found.digest] = best_levels(better, other, place=found.instance)
    return best


def level_gaps(levels: Levels, best: Levels) -> dict[str, list[float | None]]:
    """Return the gaps of the levels that may be compared, by term; None where no bound is known."""
    found: dict[str, list[float | None]] = {}
    for ours, known in zip(levels, best, strict=True):
        gap = None if known.bound is None else abs(ours.value - known.bound) / max(1, abs(ours.value))
        found.setdefault(_term(ours.name), []).append(gap)
        if ours.value != known.value:
            break
    return found


def _gap_row(backend: str, limits: str, term: str, group: Sequence[Row], best: Mapping[str, Levels]) -> GapRow:
    answered = [row for row in group if row.levels]
    gaps: list[tuple[float, str]] = []
    compared = 0
    for row in answered:
        of_term = level_gaps(row.levels, best[row.digest]).get(term)
        if of_term is None:
            continue
        compared += 1
        known = [gap for gap in of_term if gap is not None]
        if len(known) == len(of_term):
            gaps.append((max(known), row.instance))
    size = len(gaps)
    worst, where = max(gaps, key=lambda pair: pair[0], default=(None, ""))
    return GapRow(
        backend=backend,
        limits=limits,
        term=term,
        runs=len(group),
        failed=sum(row.status == "FAILED" for row in group),
        compared=compared,
        bounded=size,
        mean=fsum(gap for gap, _ in gaps) / size if size else None,
        geometric=exp(fsum(log1p(gap) for gap, _ in gaps) / size) - 1 if size else None,
        worst=worst,
        worst_instance=where if worst else "",
        proven=sum(gap == 0 for gap, _ in gaps) / compared if compared else None,
    )


def _term(level: str) -> str:
    """Return the term of a level's name: `admitted` of `admitted[7]`."""
    return level.partition("[")[0]
