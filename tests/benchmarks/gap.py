"""Generalised assignment: every item to one agent, weights within the agent's capacity, least cost.

A job is an item on an agent. Its pods: one of the item's weight on the agent's node; one on the item's node, where
there is room for one, so that an item goes to one agent at most; and as many on a node without limits as make it worth
M - cost in all (a pod without GPUs is worth one). M is so large that any full assignment beats any other: n agents'
items cost at most n x the largest cost, and M is more than that.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kant_opt import Job, Node, Objective, PodSet, Request

from .known import Known, folder

Table = Sequence[Sequence[int]]


def read_all(wanted: Callable[[str], bool]) -> list[Known]:
    """Return the instances at hand whose names are wanted; none where the data is missing."""
    data = folder("gap")
    if data is None:
        return []
    with (data / "data.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if (data / row["Path"]).is_file()]
    return [
        read_gap(data / row["Path"], int(row["Optimum"] or row["Best known solution value"]))
        for row in rows
        if wanted(Path(row["Path"]).name)
    ]


def read_gap(path: Path, optimum: int) -> Known:
    """Return an instance in OR-Library's form: agents, items, costs, weights, capacities."""
    numbers = iter([int(word) for word in path.read_text().split()])
    agents, items = next(numbers), next(numbers)
    costs = [[next(numbers) for _ in range(items)] for _ in range(agents)]
    weights = [[next(numbers) for _ in range(items)] for _ in range(agents)]
    capacities = [next(numbers) for _ in range(agents)]
    return gap(path.name, costs, weights, capacities, optimum)


def gap(name: str, costs: Table, weights: Table, capacities: Sequence[int], optimum: int) -> Known:
    """Return the question; `costs` and `weights` are agents x items."""
    items = len(costs[0])
    worth = items * max(map(max, costs)) + 3
    ask = partial(_request, name, costs, weights, capacities, worth)
    return Known(name, optimum, ask, "admitted[0]", origin=items * worth, step=-1)


def _request(name: str, costs: Table, weights: Table, capacities: Sequence[int], worth: int) -> Request:
    items = range(len(costs[0]))
    nodes = [Node(name=f"agent-{a}", cpu_milli=room) for a, room in enumerate(capacities)]
    nodes += [Node(name=f"item-{i}", max_pods=1) for i in items]
    jobs = [
        _job(a, i, costs[a][i], weights[a][i], worth)
        for i in items
        for a, room in enumerate(capacities)
        if weights[a][i] <= room
    ]
    return Request(
        name=name, nodes=(*nodes, Node(name="worth")), jobs=tuple(jobs), objective=Objective(order=("admitted",))
    )


def _job(agent: int, item: int, cost: int, weight: int, worth: int) -> Job:
    return Job(
        name=f"item-{item}-on-{agent}",
        podsets=(
            PodSet(name="work", count=1, cpu_milli=weight, nodes=(f"agent-{agent}",)),
            PodSet(name="once", count=1, nodes=(f"item-{item}",)),
            PodSet(name="worth", count=worth - cost - 2, nodes=("worth",)),
        ),
    )
