"""Bars of a Gantt chart: every row is a domain of the fabric, and a job takes as much of its height as of its GPUs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kant_opt.cli.plan.words import PlanWords
from kant_opt.fabric import Path, build_fabric
from kant_opt.metrics.occupancy import ends_of_running
from kant_opt.schema import NODE_LEVEL, Hold, PlannedJob

_DIGITS = re.compile(r"([0-9]+)", re.ASCII)
MOST_NODES, MOST_DOMAINS = 64, 400
"""The most rows: a row is a node where there are few, else the innermost domain of which there are few enough."""


@dataclass(frozen=True)
class Bar:
    """A piece of one job in one row; `low` and `high` are positions on the y axis, where each row takes 1."""

    job: str
    start_s: int
    end_s: int | None
    run: PlannedJob | None
    """None: it runs already."""
    low: float
    high: float


@dataclass(frozen=True)
class _Use:
    """GPUs of one job in one row over a time."""

    bar: Bar
    milli: int


class Chart:
    """Rows with their names, and the bars in them.

    Where in its row a job lies says nothing about nodes: it takes what of the height is free, from the top. Jobs
    without GPUs have no bar.
    """

    def __init__(self, words: PlanWords) -> None:
        request = words.request
        fabric = build_fabric(request.fabric, request.nodes)
        self.level = next(
            (
                level
                for level in reversed(fabric.levels)
                if len(fabric.domains(level)) <= (MOST_NODES if level == NODE_LEVEL else MOST_DOMAINS)
            ),
            "",
        )
        domains = sorted(fabric.domains(self.level), key=_natural) if self.level else [()]
        depth = len(domains[0]) if domains else 0
        self.rows = ["/".join(path[-1:]) or "all nodes" for path in domains]
        number = {path: i for i, path in enumerate(domains)}
        self._row = {node.name: number[fabric.paths[node.name][:depth]] for node in request.nodes}
        self._height = [0] * len(self.rows)
        for node in request.nodes:
            self._height[self._row[node.name]] += 1000 * node.gpus
        self.bars = [bar for row, uses in sorted(self._uses(words).items()) for bar in self._laid(row, uses)]

    def _uses(self, words: PlanWords) -> dict[int, list[_Use]]:
        """Return what is in each row, by start; what runs already comes first."""
        found: dict[int, list[_Use]] = defaultdict(list)
        ends = ends_of_running(words.request, words.plan)
        for alloc in words.request.allocations:
            bar = Bar(alloc.job, words.plan.now_s, ends[alloc.job], None, 0, 0)
            self._add(found, bar, ((hold.node, _held(hold)) for hold in alloc.holds))
        for run in words.plan.jobs:
            self._add(found, Bar(run.job, run.start_s, run.end_s, run, 0, 0), words.milli_on(run).items())
        return found

    def _add(self, found: dict[int, list[_Use]], bar: Bar, on: Iterable[tuple[str, int]]) -> None:
        rows: dict[int, int] = defaultdict(int)
        for node, milli in on:
            rows[self._row[node]] += milli
        for row, milli in rows.items():
            if milli:
                found[row].append(_Use(bar, milli))

    def _laid(self, row: int, uses: list[_Use]) -> Iterator[Bar]:
        """Yield the bars of a row, each use in as few pieces as can be, none over another at any time."""
        lane = _Lane()
        laid = [(use, lane.take(use.bar.start_s, use.bar.end_s, use.milli)) for use in uses]
        height = max([self._height[row], *(high for _, pieces in laid for _, high in pieces)])
        for use, pieces in laid:
            for low, high in pieces:
                yield replace(use.bar, low=row + low / height, high=row + high / height)


class _Lane:
    """Free height of a row while time goes on."""

    def __init__(self) -> None:
        self._taken: list[tuple[int, int, int | None]] = []
        """(low, high, end), by low."""

    def take(self, start: int, end: int | None, size: int) -> list[tuple[int, int]]:
        """Return the pieces that a use takes: the first gap that holds all of it, else gaps from the top."""
        self._taken = [piece for piece in self._taken if piece[2] is None or piece[2] > start]
        gaps, at = [], 0
        for low, high, _ in self._taken:
            if low > at:
                gaps.append((at, low))
            at = max(at, high)
        whole = next((gap for gap in gaps if gap[1] - gap[0] >= size), None)
        pieces = []
        for low, high in [whole] if whole else gaps:
            part = min(size, high - low)
            pieces.append((low, low + part))
            size -= part
            if not size:
                break
        if size:
            pieces.append((at, at + size))
        self._taken = sorted([*self._taken, *((low, high, end) for low, high in pieces)], key=lambda piece: piece[0])
        return pieces


def _natural(path: Path) -> list[list[tuple[int, str]]]:
    """Return a key by which l2 comes before l10."""
    return [[(int(part), "") if part.isdecimal() else (0, part) for part in _DIGITS.split(name)] for name in path]


def _held(hold: Hold) -> int:
    return 1000 * hold.gpus or hold.gpu_milli or (1000 if hold.gpu_memory_mib else 0)
