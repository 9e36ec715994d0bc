"""The drawn tree holds every domain and node exactly once, however much of it is folded."""

from __future__ import annotations

import pytest

from kant_opt.cli.tree import Domain, grow
from kant_opt.fabric import list_topologies, load_topology
from kant_opt.metrics import Placed
from kant_opt.schema import Request


def _domains(line: Domain, depth: int) -> int:
    """Return how many domains of the level `depth` below it a line stands for."""
    return line.number * (1 if depth == 0 else sum(_domains(inner, depth - 1) for inner in line.inner))


def _nodes(line: Domain, depth: int) -> int:
    """Return how many nodes they hold."""
    inner = line.stats.nodes if depth == 0 else sum(_nodes(part, depth - 1) for part in line.inner)
    return line.number * inner


@pytest.mark.parametrize("name", list_topologies())
def test_lines_times_their_numbers_are_the_fabric(name: str) -> None:
    spec, nodes = load_topology(name)
    placed = Placed(Request(fabric=spec, nodes=nodes))
    levels = placed.fabric.levels
    for depth in range(len(levels)):
        tops = grow(placed, depth + 1)
        assert sum(_domains(top, depth) for top in tops) == len(placed.fabric.domains(levels[depth]))
        assert sum(_nodes(top, depth) for top in tops) == len(nodes)


@pytest.mark.parametrize("name", list_topologies())
def test_every_name_is_on_one_line(name: str) -> None:
    spec, nodes = load_topology(name)
    placed = Placed(Request(fabric=spec, nodes=nodes))
    shown: list[str] = []

    def collect(lines: list[Domain], left: int) -> None:
        for line in lines:
            if left:
                collect(line.inner, left - 1)
            else:
                shown.extend(line.names)

    for depth, level in enumerate(placed.fabric.levels):
        shown.clear()
        collect(grow(placed, depth + 1), depth)
        assert sorted(shown) == sorted(path[-1] for path in placed.fabric.domains(level))
