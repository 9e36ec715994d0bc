"""What pods need and what nodes have, in small whole numbers, and only where it can run short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

import numpy as np

from kant_opt.formulation.bundles import Bundle
from kant_opt.view import NOT_COUNTED, Free, Ints

Vector = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """Nodes with the same room: it does not matter which of them a load of pods lies on."""

    nodes: tuple[int, ...]
    room: Vector
    """Per resource."""
    full_at: int
    """GPUs that fill such a node, 0 = pods with whole GPUs cannot."""
    idle: bool
    """No part of its GPUs is in use."""


@dataclass(frozen=True)
class Stock:
    """Shapes of pods (or bundles of them) and kinds of nodes. A load fits on a node iff it fits in every resource.

    Resources that no load can exhaust are left out, as are those in which a load fits wherever it fits in another one;
    what is left is divided by the common divisor of the needs. Where fragmentation counts, GPUs come first and stay.
    """

    needs: tuple[Vector, ...]
    """Per shape and resource; of all zeros where pods of the shape fit anywhere."""
    gpus: Vector
    """Per shape."""
    most: Vector
    """Most pods per shape that can come."""
    kinds: tuple[Kind, ...]
    fragments: bool
    """Whether it counts how much of a node's GPUs is used."""

    @property
    def resources(self) -> int:
        return len(self.kinds[0].room)

    def fitting(self, shape: int, room: Vector) -> int:
        """Return how many pods of a shape fit in the room, at most `most`."""
        limits = (r // n for r, n in zip(room, self.needs[shape], strict=True) if n)
        return min((*limits, self.most[shape]))


class _Column(NamedTuple):
    """One resource: needs per shape, room per node kind."""

    needs: Vector
    rooms: Vector
    kept: bool


def stock_of(free: Free, shapes: Sequence[Bundle], most: Sequence[int], nodes: Ints, *, fragments: bool) -> Stock:
    """Return the stock of `nodes` for pods with whole GPUs or none. Costs one pass over the nodes."""
    cluster = free.cluster
    fragments = fragments and any(bundle.shape.gpus for bundle in shapes)
    whole, spare, unit = free.whole[nodes], free.spare[nodes], cluster.unit[nodes]
    full_at = np.where(fragments & (spare == whole * unit), whole, 0)
    idle = fragments & (spare == free.capacity[nodes]) & (spare > 0)
    table = np.column_stack([whole, free.cpu[nodes], free.memory[nodes], free.pods[nodes], full_at, idle])
    rows, kind_of = np.unique(table, axis=0, return_inverse=True)
    columns = _columns([bundle.needs for bundle in shapes], most, rows[:, :4].tolist(), fragments=fragments)
    kinds: dict[tuple[Vector, int, bool], list[int]] = {}
    for i, (at, is_idle) in enumerate(rows[:, 4:].tolist()):
        room = tuple(column.rooms[i] for column in columns)
        kinds.setdefault((room, at, bool(is_idle)), []).extend(nodes[kind_of.reshape(-1) == i].tolist())
    return Stock(
        needs=tuple(tuple(column.needs[s] for column in columns) for s in range(len(shapes))),
        gpus=tuple(bundle.needs[0] for bundle in shapes),
        most=tuple(most),
        kinds=tuple(Kind(tuple(sorted(members)), *key) for key, members in kinds.items()),
        fragments=fragments,
    )


def _columns(
    bundles: Sequence[Vector], most: Sequence[int], rooms: list[list[int]], *, fragments: bool
) -> list[_Column]:
    found: dict[Vector, _Column] = {}
    for r, needs in enumerate(zip(*bundles, strict=True)):
        step, limit = gcd(*needs), sum(m * need for m, need in zip(most, needs, strict=True))
        kept = fragments and r == 0
        room = [min(row[r], limit) for row in rooms]
        if not step or (not kept and all(here == limit for here in room)):
            continue
        column = _Column(tuple(n // step for n in needs), tuple(here // step for here in room), kept)
        if (same := found.get(column.needs)) is not None:
            tighter = tuple(map(min, same.rooms, column.rooms))
            column = _Column(column.needs, tighter, same.kept or kept)
        found[column.needs] = column
    columns = list(found.values())
    for column in reversed(list(found.values())):
        if not column.kept and any(_implies(other, column) for other in columns if other is not column):
            columns.remove(column)
    return columns


def _implies(first: _Column, second: _Column) -> bool:
    """Return whether every load that fits in the first resource fits in the second.

    A load's need of the second is at most so many times its need of the first as the neediest of its pods has.
    """
    return all(
        not needed or (need and needed * room <= other * need)
        for need, needed in zip(first.needs, second.needs, strict=True)
        for room, other in zip(first.rooms, second.rooms, strict=True)
    )


assert NOT_COUNTED > 1 << 50  # more than any limit above: what is not counted is left out
