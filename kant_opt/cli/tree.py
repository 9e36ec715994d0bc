"""A fabric as a tree in the terminal: alike siblings share a line, so what differs stands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from kant_opt.cli.page import MOST_ROWS, Column, Page
from kant_opt.cli.text import fold, many
from kant_opt.fabric import Path, describe
from kant_opt.metrics import Placed

T = TypeVar("T")

_BAR = 10
"""Characters of a full bar."""


@dataclass(frozen=True)
class _Stats:
    """What one line tells of a domain; GPUs count where they are healthy and their node takes new pods."""

    notes: tuple[str, ...]
    nodes: int
    free: int
    gpus: int
    broken: int
    closed: int
    ill: int


@dataclass
class Domain:
    """One line: `number` domains (in each domain of the line above) that look alike; stats are those of one."""

    names: list[str]
    number: int
    stats: _Stats
    inner: list[Domain]

    @property
    def look(self) -> tuple[object, ...]:
        """Equal for domains that look alike, down to the last level drawn."""
        return (self.stats, tuple((domain.number, domain.look) for domain in self.inner))

    @property
    def lines(self) -> int:
        return 1 + sum(domain.lines for domain in self.inner)


def show_tree(page: Page, placed: Placed, levels: int | None) -> None:
    """Draw the fabric with what is used and free on it, `levels` deep or as deep as the page holds."""
    fabric = placed.fabric
    size = describe(fabric, placed.request.nodes)
    page.say(placed.request.name or "fabric", "bold")
    page.say(f"{many(size.nodes, 'node')}, {many(size.gpus, 'GPU')}")
    for level, number in size.domains.items():
        low, high = size.nodes_per_domain[level]
        nodes = many(high, "node") if low == high else f"{low} to {many(high, 'node')}"
        page.say(f"{level}: {many(number, 'domain')} of {nodes}")
    if fabric.separate_roots:
        page.say(f"no link joins two domains of level {fabric.levels[0]}")
    tops = _deepest(page, placed) if levels is None else grow(placed, min(levels, len(fabric.levels)))
    page.say()
    _draw(page, tops, _total(placed))
    if any(" x " in label for label, _ in _labelled(tops, page.draws)):
        page.say("  n x: n domains that look alike; the numbers are those of each one", "dim")


def _deepest(page: Page, placed: Placed) -> list[Domain]:
    """Return the tree with the most levels above the node that fits the page, at least one."""
    above = max(1, len(placed.outer_levels))
    tops: list[Domain] = []
    for depth in range(above, 0, -1):
        tops = grow(placed, depth)
        if page.everything or sum(domain.lines for domain in tops) <= MOST_ROWS:
            break
    return tops


def grow(placed: Placed, depth: int) -> list[Domain]:
    """Return the outermost domains with what is inside them, `depth` levels in all, alike siblings folded."""
    inner_of: dict[Path, list[Domain]] = {}
    for level in reversed(placed.fabric.levels[:depth]):
        around: dict[Path, list[Domain]] = {}
        for path, stats in zip(placed.fabric.domains(level), _stats(placed, level), strict=True):
            around.setdefault(path[:-1], []).append(Domain([path[-1]], 1, stats, inner_of.get(path, [])))
        inner_of = {path: _folded(domains) for path, domains in around.items()}
    return inner_of.get((), [])


def _folded(domains: Sequence[Domain]) -> list[Domain]:
    alike: dict[tuple[object, ...], list[Domain]] = {}
    for domain in domains:
        alike.setdefault(domain.look, []).append(domain)
    return [_merged(group) for group in alike.values()]


def _merged(group: Sequence[Domain]) -> Domain:
    """Return one line for domains of one look; the names inside them meet on the lines inside it."""
    first = group[0]
    if len(group) == 1:
        return first
    inner = [
        replace(_merged(parts), number=parts[0].number)
        for parts in zip(*(domain.inner for domain in group), strict=True)
    ]
    return Domain([name for domain in group for name in domain.names], len(group), first.stats, inner)


def _stats(placed: Placed, level: str) -> list[_Stats]:
    """Return the numbers of every domain of a level, in order of `fabric.domains(level)`."""
    fabric = placed.fabric
    per_node = _per_node(placed)
    sizes = [len(fabric.nodes_of(domain)) for domain in fabric.domains(level)]
    in_order = iter(fabric.nodes)  # domains and nodes are both in order of their paths
    found = []
    for size, notes in zip(sizes, _notes(placed, level, sizes), strict=True):
        rows = [per_node[name] for name in islice(in_order, size)]
        found.append(_Stats(notes, size, *map(sum, zip(*rows, strict=True))))
    return found


def _per_node(placed: Placed) -> dict[str, tuple[int, ...]]:
    """Return node -> free GPUs, GPUs, broken, closed, ill GPUs: the numbers of `_Stats` after the nodes."""
    usage, nodes = placed.usage, placed.request.nodes
    ill = [node.gpus - node.healthy_gpus for node in nodes]
    columns = [usage.untouched * usage.counted, usage.healthy * usage.counted, usage.broken, ~usage.schedulable]
    rows = zip(*(map(int, column) for column in columns), ill, strict=True)
    return {node.name: row for node, row in zip(nodes, rows, strict=True)}


def _total(placed: Placed) -> _Stats:
    outermost = _stats(placed, placed.fabric.levels[0])
    names = ("nodes", "free", "gpus", "broken", "closed", "ill")
    return _Stats((), *(sum(getattr(stats, name) for stats in outermost) for name in names))


def _notes(placed: Placed, level: str, nodes: Sequence[int]) -> list[tuple[str, ...]]:
    """Return per domain what it lacks beside most of its level: nodes, uplinks."""
    uplinks = [placed.fabric.uplink_gbps(domain) for domain in placed.fabric.domains(level)]
    usual_nodes, usual_uplink = _usual(nodes), _usual(uplinks)
    found = []
    for number, uplink in zip(nodes, uplinks, strict=True):
        told = []
        if usual_nodes and number < usual_nodes:
            told.append(f"fewer nodes than most ({usual_nodes})")
        if usual_uplink and uplink is not None and uplink < usual_uplink:
            told.append(f"uplink {uplink:,} of {usual_uplink:,} Gbit/s")
        found.append(tuple(told))
    return found


def _usual(values: Sequence[T]) -> T | None:
    """Return the value that more than half of the domains have, None where there is none."""
    if not values:
        return None
    value, number = Counter(values).most_common(1)[0]
    return value if 2 * number > len(values) else None


def _draw(page: Page, tops: Sequence[Domain], total: _Stats) -> None:
    drawn = list(_labelled(tops, page.draws))
    columns = [Column("domain", cut=True), Column("nodes", right=True), Column("GPUs free", right=True), Column("used")]
    optional = {"broken": total.broken, "closed": total.closed, "ill GPUs": total.ill}
    columns += [Column(name, right=True) for name, number in optional.items() if number]
    if any(domain.stats.notes for _, domain in drawn):
        columns.append(Column("", wrap=True))
    rows = [_row(label, domain.stats, page.draws, optional) for label, domain in drawn]
    with_notes = len(columns) - len(rows[0]) if rows else 0
    if with_notes:
        rows = [[*row, "; ".join(domain.stats.notes)] for row, (_, domain) in zip(rows, drawn, strict=True)]
    page.table(columns, rows, [*_row("all", total, page.draws, optional), *[""] * with_notes])


def _row(label: str, stats: _Stats, draws: bool, optional: dict[str, int]) -> list[str]:
    numbers = {"broken": stats.broken, "closed": stats.closed, "ill GPUs": stats.ill}
    extra = [f"{numbers[name]:,}" if numbers[name] else "" for name, total in optional.items() if total]
    return [label, f"{stats.nodes:,}", f"{stats.free:,} / {stats.gpus:,}", _bar(stats, draws), *extra]


def _bar(stats: _Stats, draws: bool) -> str:
    """Return the used share as a bar; only nothing used is empty and only nothing free is full."""
    if not stats.gpus:
        return ""
    used = stats.gpus - stats.free
    blocks = round(_BAR * used / stats.gpus)
    if 0 < used < stats.gpus:
        blocks = min(max(blocks, 1), _BAR - 1)
    full, empty = ("█", "·") if draws else ("#", ".")
    return full * blocks + empty * (_BAR - blocks)


def _labelled(domains: Sequence[Domain], draws: bool, indent: str | None = None) -> Iterator[tuple[str, Domain]]:
    """Yield every line's label, with the branches of the tree in front, and its domain."""
    fork, last, bar = ("├─ ", "└─ ", "│  ") if draws else ("|- ", "`- ", "|  ")
    for i, domain in enumerate(domains):
        ends = i == len(domains) - 1
        branch = "" if indent is None else indent + (last if ends else fork)
        number = f"{domain.number} x " if domain.number > 1 else ""
        yield f"{branch}{number}{fold(domain.names)}", domain
        below = "" if indent is None else indent + ("   " if ends else bar)
        if [inner.names for inner in domain.inner] != [
            domain.names
        ]:  # a node whose place is unknown has one of its own
            yield from _labelled(domain.inner, draws, below)
