"""Quadratic assignment: facilities to locations, one each, least sum of flow x distance over ordered pairs.

The traffic of `all_to_all` gangs is such a problem: a facility is a pod, a location a GPU, the flow 1 between pods of
one gang and 0 between gangs, and the distance of two GPUs the weights of the levels on which their domains differ. As
levels are nested, such distances are *ultrametric*: of any three, the two largest are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from kant_opt import Request

Matrix = Sequence[Sequence[int]]


class Qap(NamedTuple):
    """An instance of QAPLIB; which of its two matrices is flow and which is distance does not matter."""

    name: str
    first: Matrix
    second: Matrix


def read_qap(path: Path) -> Qap:
    """Return an instance: its size, in some files its optimum, and two matrices."""
    words = path.read_text().split()
    n = int(words[0])
    numbers = [int(word) for word in words[len(words) - 2 * n * n :]]
    rows = [numbers[i * n : (i + 1) * n] for i in range(2 * n)]
    return Qap(path.stem, rows[:n], rows[n:])


def least_cost(flows: Matrix, distances: Matrix) -> int:
    """Return the least cost, by looking at every assignment that is not dearer already. For some ten facilities."""
    n = len(flows)
    best = sum(f * d for row, other in zip(flows, distances, strict=True) for f, d in zip(row, other, strict=True))

    def assign(at: list[int], cost: int) -> None:
        nonlocal best
        if cost >= best:
            return
        i = len(at)
        if i == n:
            best = cost
            return
        for here in range(n):
            if here not in at:
                more = flows[i][i] * distances[here][here] + sum(
                    flows[i][k] * distances[here][there] + flows[k][i] * distances[there][here]
                    for k, there in enumerate(at)
                )
                assign([*at, here], cost + more)

    assign([], 0)
    return best


def both_ways(matrix: Matrix) -> list[list[int]]:
    """Return what each unordered pair weighs, the diagonal apart: all that matters where the other is symmetric."""
    n = len(matrix)
    return [[0 if i == j else matrix[i][j] + matrix[j][i] for j in range(n)] for i in range(n)]


def is_gangs(flows: Matrix) -> bool:
    """Return whether all flow is one number, inside groups where everybody sends to everybody."""
    n = len(flows)
    peers = [frozenset([i, *(j for j in range(n) if flows[i][j])]) for i in range(n)]
    amounts = {flow for row in flows for flow in row if flow}
    return len(amounts) <= 1 and all(peers[j] == peers[i] for i in range(n) for j in peers[i])


def is_ultrametric(distances: Matrix) -> bool:
    """Return whether no distance exceeds the larger of the two over any third place."""
    n = len(distances)
    return all(
        distances[i][j] <= max(distances[i][k], distances[k][j])
        for i, j in combinations(range(n), 2)
        for k in range(n)
        if k not in (i, j)
    )


def qap_of(request: Request) -> tuple[list[list[int]], list[list[int]]]:
    """Return flows and distances, both ways, of a request whose jobs have one podset of pods with one GPU each.

    GPUs without a pod are given to facilities without flow.
    """
    weights = request.objective.weights_of(request.fabric.levels)
    gpus = [node.path for node in request.nodes for _ in range(node.gpus)]
    gang_of: list[int] = [g for g, job in enumerate(request.jobs) for _ in range(job.podsets[0].count)]
    gang_of += range(-1, len(gang_of) - len(gpus) - 1, -1)
    flows = [[2 * int(a == b and i != j) for j, b in enumerate(gang_of)] for i, a in enumerate(gang_of)]
    distances = [
        [sum(weights[level] for d, level in enumerate(request.fabric.levels) if a[: d + 1] != b[: d + 1]) for b in gpus]
        for a in gpus
    ]
    return flows, distances
