"""How full each part of the fabric is at chosen times: the cells of a heat map, few enough to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from kant_opt.replay.result import NodeRow, ReplayResult
from kant_opt.schema import NODE_LEVEL
from kant_opt.words import safe, span

_MOST_CELLS = 36_000
"""Cells of all maps together."""
_MOST_ROWS = 128
"""Rows of one map."""
_FLAT_COLUMNS = 64
"""Columns where the fabric has no level to make rows of."""


@dataclass
class Heat:
    """One map per policy and time. A cell is a node, or where these are too many the domain of a level."""

    policies: list[str]
    times: list[str]
    """As they are told."""
    cell_level: str
    row_level: str
    """The level of the domains that are rows; empty where rows mean nothing."""
    rows: list[str] = field(default_factory=list)
    places: list[dict[str, Any]] = field(default_factory=list)
    """Of one map: c: number, x: column, row, n: name, gpus."""
    cells: list[dict[str, Any]] = field(default_factory=list)
    """Of all maps: c: number of the place, m: GPU thousandths in use, p: policy, t: time."""
    num_columns: int = 0

    @property
    def num_rows(self) -> int:
        """Rows of one map."""
        return len(self.rows)


@dataclass(eq=False)
class _Cell:
    """Some nodes that are drawn as one."""

    name: str
    row: str
    x: int
    nodes: list[int]
    gpus: int


def heat_of(result: ReplayResult, at: Sequence[int]) -> Heat | None:
    """Return the maps at these times (seconds of the trace's clock), None where no nodes were looked at.

    The finest level is drawn that makes few enough cells; where even the coarsest makes too many, neighbours are one.
    """
    if not result.nodes or not at:
        return None
    start = result.window[0]
    times = _told([time - start for time in sorted(set(at))])
    depth, cells, merged = _finest(result, len(result.runs) * len(times))
    levels = (*result.levels, NODE_LEVEL)
    heat = Heat(
        policies=[safe(run.name) for run in result.runs],
        times=list(times.values()),
        places=[{"c": c, "x": x.x, "row": x.row, "n": x.name, "gpus": x.gpus} for c, x in enumerate(cells)],
        cell_level=f"group of neighbours ({levels[depth]})" if merged else levels[depth],
        row_level=levels[depth - 1] if depth and not merged else "",
        rows=list(dict.fromkeys(cell.row for cell in cells)),
        num_columns=max(cell.x for cell in cells) + 1,
    )
    for run in result.runs:
        for since, told in times.items():
            used = run.used_at(start + since)
            for c, cell in enumerate(cells):
                milli = sum(used.get(node, 0) for node in cell.nodes)
                heat.cells.append({"c": c, "m": milli, "p": safe(run.name), "t": told})
    return heat


def _finest(result: ReplayResult, maps: int) -> tuple[int, list[_Cell], bool]:
    """Return the depth of the cells, the cells, and whether each stands for several."""
    most = max(1, _MOST_CELLS // maps)
    for depth in range(len(result.levels), -1, -1):
        cells = _cells(result.nodes, depth, len(result.levels))
        if len(cells) <= most and len({cell.row for cell in cells}) <= _MOST_ROWS:
            return depth, cells, False
    return depth, _merged(cells, most), True


def _cells(nodes: Sequence[NodeRow], depth: int, num_levels: int) -> list[_Cell]:
    """Return the domains at a depth, by path; the nodes themselves at depth `num_levels`."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for i in sorted(range(len(nodes)), key=lambda i: (nodes[i].path, nodes[i].name)):
        node = nodes[i]
        path = (*node.path, node.name) if depth == num_levels else node.path[: depth + 1]
        groups.setdefault(path, []).append(i)
    parents = {path[:depth] for path in groups}
    short = len({parent[-1:] for parent in parents}) == len(parents)  # each by its last name alone
    columns: dict[str, int] = {}
    found: list[_Cell] = []
    for k, (path, members) in enumerate(groups.items()):
        row = safe(path[depth - 1] if short else " / ".join(path[:depth])) if depth else f"{k // _FLAT_COLUMNS + 1}"
        x = columns.get(row, 0)
        columns[row] = x + 1
        found.append(_Cell(safe(path[-1]), row, x, members, sum(nodes[i].gpus for i in members)))
    return found


def _merged(cells: Sequence[_Cell], most: int) -> list[_Cell]:
    """Return at most `most` cells, each of as many neighbours."""
    size = -(-len(cells) // most)
    rest = iter(cells)
    found: list[_Cell] = []
    while group := list(islice(rest, size)):
        k = len(found)
        name = f"{group[0].name} ... {group[-1].name}"
        nodes = [node for cell in group for node in cell.nodes]
        row = f"{k // _FLAT_COLUMNS + 1}"
        found.append(_Cell(name, row, k % _FLAT_COLUMNS, nodes, sum(cell.gpus for cell in group)))
    return found


def _told(times: Sequence[int]) -> dict[int, str]:
    """Return times, seconds from the start of the window, in words; exact where two would be told alike."""
    words = [f"{span(abs(time))}{' before' if time < 0 else ''}" for time in times]
    if len(set(words)) < len(words):
        words = [f"{time:,} s" for time in times]
    return dict(zip(times, words, strict=True))
