"""Multi-constraint 0/1 knapsack: items of most profit, each constraint's weights within its capacity.

An item is a gang with a pod of its weight on the node of each constraint, and as many pods on a node without limits as
make it worth its profit (a pod without GPUs is worth one). Profits in tenths, or smaller than the number of pods, are
multiplied first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import ceil
from pathlib import Path

from kant_opt import Job, Node, Objective, PodSet, Request

from .known import Known, folder

Numbers = Sequence[Fraction]


def read_all() -> list[Known]:
    """Return the instances at hand; none where the data is missing."""
    data = folder("orlib_mknap")
    return [*read_mknap1(data / "mknap1.txt"), *read_mknap2(data / "mknap2.txt")] if data else []


def read_mknap1(path: Path) -> Iterator[Known]:
    """Yield the problems of mknap1: items, constraints, optimum; profits; weights; capacities."""
    numbers = map(Fraction, path.read_text().split())
    for p in range(int(next(numbers))):
        items, rows = int(next(numbers)), int(next(numbers))
        optimum = next(numbers)
        profits = _take(numbers, items)
        weights = [_take(numbers, items) for _ in range(rows)]
        yield mknap(f"mknap1-{p + 1}", profits, weights, _take(numbers, rows), optimum)


def read_mknap2(path: Path) -> Iterator[Known]:
    """Yield the problems of mknap2: constraints, items; profits; capacities; weights; optimum."""
    parts = re.split(r"^\s*problem\s+(\S+)\.DAT", path.read_text(), flags=re.MULTILINE)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        numbers = iter([Fraction(word) for word in re.sub(r"//.*|\+", "", text).split() if word[0].isdigit()])
        rows, items = int(next(numbers)), int(next(numbers))
        profits = _take(numbers, items)
        capacities = _take(numbers, rows)
        weights = [_take(numbers, items) for _ in range(rows)]
        yield mknap(name, profits, weights, capacities, next(numbers))


def mknap(name: str, profits: Numbers, weights: Sequence[Numbers], capacities: Numbers, optimum: Fraction) -> Known:
    """Return the question; `weights` are constraints x items."""
    pods = [1 + sum(row[i] > 0 for row in weights) for i in range(len(profits))]
    tenths = 1 if all(p.denominator == 1 for p in (*profits, optimum)) else 10
    step = max(ceil(n / (tenths * p)) for p, n in zip(profits, pods, strict=True))
    worth = [int(p * tenths * step) - n + 1 for p, n in zip(profits, pods, strict=True)]
    ask = partial(_request, name, worth, weights, capacities)
    return Known(name, int(optimum * tenths), ask, "admitted[0]", step=step)


def _request(name: str, worth: Sequence[int], weights: Sequence[Numbers], capacities: Numbers) -> Request:
    """Return the request with so many pods on the node without limits per item."""
    unit = _unit([*(w for row in weights for w in row), *capacities])
    nodes = [Node(name=f"constraint-{r}", cpu_milli=int(unit * room)) for r, room in enumerate(capacities)]
    jobs = []
    for i, count in enumerate(worth):
        podsets = [
            PodSet(name=f"weight-{r}", count=1, cpu_milli=int(unit * row[i]), nodes=(f"constraint-{r}",))
            for r, row in enumerate(weights)
            if row[i]
        ]
        jobs.append(Job(name=f"item-{i}", podsets=(*podsets, PodSet(name="worth", count=count, nodes=("worth",)))))
    return Request(
        name=name, nodes=(*nodes, Node(name="worth")), jobs=tuple(jobs), objective=Objective(order=("admitted",))
    )


def _take(numbers: Iterator[Fraction], count: int) -> list[Fraction]:
    return [next(numbers) for _ in range(count)]


def _unit(numbers: Numbers) -> int:
    """Return the least power of ten that makes all of them whole."""
    unit = 1
    while any((unit * number).denominator > 1 for number in numbers):
        unit *= 10
    return unit
