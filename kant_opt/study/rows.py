"""One run of a study is one JSON line: what was asked, what came of it, or why nothing did."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from kant_opt.errors import InputError
from kant_opt.io.files import read_text
from kant_opt.schema import LevelValue, Limits, parse
from kant_opt.schema.base import Frozen

Key = tuple[str, str, str, str, int]


class Row(Frozen):
    """One run: an instance, a backend, limits and a seed. Only times, version and date differ between equal runs."""

    instance: str
    digest: str = ""
    """Of the request; see `digest_of`."""
    backend: str
    limits: Limits = Limits()
    """With the seed of this run."""
    status: Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN", "FAILED"]
    """FAILED: no outcome, `reason` says why."""
    reason: str = ""
    levels: tuple[LevelValue, ...] = ()
    placed: int = 0
    """Jobs placed, of `jobs`."""
    jobs: int = 0
    limit_hit: str = ""
    seconds: float = 0.0
    """Of the call of `place`, wall clock."""
    cpu_seconds: float = 0.0
    """Of the run's process and those that it started and that have ended, start and reading included."""
    peak_mb: int = 0
    """Most memory of the run's process, in MiB; 0: not known."""
    version: str = ""
    """Of kant_opt."""
    date: str = ""

    @property
    def key(self) -> Key:
        """What tells a run from any other: a study has one row of each."""
        return (self.instance, self.digest, self.backend, limits_text(self.limits), self.limits.seed)


def limits_text(limits: Limits) -> str:
    """Return limits in a few words, the seed and those left at their defaults aside.

    >>> limits_text(Limits(deadline_ms=1000, rounds=5, seed=3)), limits_text(Limits())
    ('deadline_ms 1000, rounds 5', 'default')
    """
    told = limits.model_dump(exclude_defaults=True)
    return ", ".join(f"{name} {value}" for name, value in told.items() if name != "seed") or "default"


def read_rows(path: str | Path) -> list[Row]:
    """Return the rows of a study's file. A last line that was cut short by a kill is left out."""
    source = Path(path)
    return [
        _row(line, f"{source.name}: line {n}")
        for n, line in enumerate(_whole_lines(read_text(source)), start=1)
        if line
    ]


def repair(path: Path) -> None:
    """Take a last line that was cut short out of the file, so that the next row begins a line."""
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        with path.open("r+b") as file:
            file.truncate(whole)


def by_key(rows: Iterable[Row]) -> dict[Key, Row]:
    """Return the last row of each run."""
    return {row.key: row for row in rows}


def _whole_lines(text: str) -> list[str]:
    return text[: text.rfind("\n") + 1].splitlines()


def _row(line: str, place: str) -> Row:
    try:
        return parse(Row, json.loads(line), place=place)
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error}", place=place, way_out="is it the file of a study?") from None
