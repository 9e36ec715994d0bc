"""The table of gaps as CSV and as LaTeX (booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, fields

from kant_opt.study.gaps import GapRow

HEADERS = ("backend", "limits", "term", "runs", "failed", "compared", "mean", "geo. mean", "worst", "on", "proven")
_SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    c: f"\\{c}" for c in "&%$#_{}"
}


def cells(row: GapRow) -> list[str]:
    """Return a row for people, as HEADERS say: gaps and shares in %, an empty cell where nothing is known.

    A gap that is not of all the answers compared says of how many.
    """
    few = "" if row.bounded == row.compared else f" of {row.bounded}"
    gaps = [f"{percent(gap)}{few}" if gap is not None else "" for gap in (row.mean, row.geometric, row.worst)]
    numbers = [str(row.runs), str(row.failed), str(row.compared)]
    proven = "" if row.proven is None else f"{100 * row.proven:.0f}%"
    return [row.backend, row.limits, row.term.replace("_", " "), *numbers, *gaps, row.worst_instance, proven]


def percent(gap: float) -> str:
    """Return a gap in %: 0 is exactly 0, anything else is not shown as 0.

    >>> percent(0.0), percent(0.00001), percent(0.0213), percent(12.0)
    ('0%', '<0.01%', '2.13%', '1200.00%')
    """
    return "0%" if gap == 0 else "<0.01%" if gap < 0.0001 else f"{100 * gap:.2f}%"


def as_csv(rows: Sequence[GapRow]) -> str:
    """Return all fields, gaps as ratios; an empty cell is an unknown value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(GapRow))
    writer.writerows(astuple(row) for row in rows)
    return text.getvalue()


def as_latex(rows: Sequence[GapRow]) -> str:
    r"""Return a tabular for the package booktabs, to \input."""
    lines = [" & ".join(map(_escaped, HEADERS)) + r" \\", r"\midrule"]
    for before, row in zip([None, *rows], rows, strict=False):
        shown = cells(row)
        if before is not None and (before.backend, before.limits) != (row.backend, row.limits):
            lines.append(r"\addlinespace")
        lines.append(" & ".join(map(_escaped, shown)) + r" \\")
    return "\n".join([r"\begin{tabular}{lllrrrrrrlr}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    text = "".join(_SPECIAL.get(c, c) for c in text)
    return text.replace("<", r"$<$")
