"""Single pods moved between nodes so that fewer are broken: which pods fill which gaps is a small integer program.

A pod by itself has no traffic, so only its size and the nodes that it may use count. Nodes alike (as many free GPUs, in
use or not, open to the same pods) are counted; a *load* is a choice of pods that fits into such a node, and variables
say how many nodes get each load. A dozen sizes and eight GPUs make some hundred variables, whatever the cluster's size.
Loads are the patterns of P. C. Gilmore and R. E. Gomory, Operations Research 9 (1961), doi:10.1287/opre.9.6.849.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kant_opt.backends.base import Answer, Task
from kant_opt.backends.lp import least_in_whole_numbers
from kant_opt.backends.placer import Taken
from kant_opt.view import Gang, Mask

_MOST_LOADS = 20_000
_MOST_SORTS = 16
_LONGEST_S = 5.0

Load = tuple[int, ...]
"""Pods of each sort on one node."""


@dataclass(frozen=True, eq=False)
class _Sort:
    """Pods alike: their GPUs, the nodes that they may use, and (position in the answer, pod) of each."""

    gpus: int
    eligible: Mask
    pods: list[tuple[int, Taken]]


@dataclass(frozen=True, eq=False)
class _Kind:
    """Nodes alike once the pods are off: free GPUs, whether others use some, and the loads that fit."""

    free: int
    used: bool
    nodes: list[int]
    loads: list[Load]


def fill_gaps(task: Task, answer: Answer, may_move: Callable[[Gang], bool]) -> None:
    """Move the answer's single pods of whole GPUs where that leaves fewer broken nodes; room is taken accordingly."""
    free = task.free
    if task.quotas or task.deadline.passed or int(free.is_broken().sum()) <= _inevitable(task):
        return
    sorts = _sorts(task, answer, may_move)
    if not sorts or len(sorts) > _MOST_SORTS:
        return
    held: dict[int, Counter[int]] = {}
    for s, sort in enumerate(sorts):
        for _, t in sort.pods:
            held.setdefault(t.node, Counter())[s] += 1
    kinds = _kinds(task, sorts, held)
    if kinds is None:
        return
    found = _solve(task, sorts, kinds)
    if found is None:
        return
    where = _dealt(kinds, found, {node: tuple(pods[s] for s in range(len(sorts))) for node, pods in held.items()})
    _move(task, answer, sorts, where)


def _inevitable(task: Task) -> int:
    """Return 1 where nodes have one size and the GPUs in use are no multiple of it, else 0."""
    free = task.free
    counted = task.cluster.schedulable & (free.capacity > 0)
    sizes = np.unique(free.capacity[counted])
    return int(len(sizes) == 1 and (free.capacity - free.spare)[counted].sum() % sizes[0] > 0)


def _sorts(task: Task, answer: Answer, may_move: Callable[[Gang], bool]) -> list[_Sort]:
    """Return the single pods that may move, by GPUs and nodes open to them."""
    found: dict[tuple[int, bytes], _Sort] = {}
    for i, (gang, taken) in enumerate(answer.taken):
        if len(taken) == 1 and taken[0].pods == 1 and taken[0].part.shape.gpus and may_move(gang):
            part = taken[0].part
            if sum(podset.count for podset in part.job.podsets) == 1:
                key = (part.shape.gpus, part.eligible.tobytes())
                found.setdefault(key, _Sort(part.shape.gpus, part.eligible, [])).pods.append((i, taken[0]))
    return [found[key] for key in sorted(found)]


def _kinds(task: Task, sorts: Sequence[_Sort], held: dict[int, Counter[int]]) -> list[_Kind] | None:
    """Return the nodes with room once the pods are off them, by kind; None where the loads are too many, or where CPU,
    memory or the number of pods might not do for one of them."""
    free, cluster = task.free, task.cluster
    whole, cpu, memory, pods = free.whole.copy(), free.cpu.copy(), free.memory.copy(), free.pods.copy()
    dearest = [0.0, 0.0]
    for sort in sorts:
        for _, t in sort.pods:
            shape = t.part.shape
            whole[t.node] += shape.gpus
            cpu[t.node] += shape.cpu
            memory[t.node] += shape.memory
            pods[t.node] += 1
            dearest = [max(dearest[0], shape.cpu / shape.gpus), max(dearest[1], shape.memory / shape.gpus)]
    opened = np.array([sort.eligible for sort in sorts])
    room = (whole > 0) & cluster.schedulable & opened.any(axis=0)
    roomy = (cpu >= whole * dearest[0]) & (memory >= whole * dearest[1]) & (pods >= whole)
    if not roomy[list(held)].all():
        return None
    room &= roomy
    spare = free.spare + (whole - free.whole) * cluster.unit
    split = spare > whole * cluster.unit  # a GPU shared in part: broken whatever comes
    if split[list(held)].any():
        return None
    alike: dict[tuple[int, bool, bytes], list[int]] = {}
    for node in np.flatnonzero(room & ~split).tolist():
        used = bool(spare[node] < free.capacity[node])
        alike.setdefault((int(whole[node]), used, opened[:, node].tobytes()), []).append(node)
    kinds, number = [], 0
    for (gpus, used, _), nodes in sorted(alike.items()):
        sizes = [sort.gpus if sort.eligible[nodes[0]] else gpus + 1 for sort in sorts]
        most = [len(sort.pods) for sort in sorts]
        loads = []
        for load in _loads(sizes, most, gpus):
            loads.append(load)
            number += 1
            if number > _MOST_LOADS:
                return None
        kinds.append(_Kind(gpus, used, nodes, loads))
    return kinds


def _loads(sizes: Sequence[int], most: Sequence[int], room: int) -> Iterator[Load]:
    """Yield every choice of at least one pod that fits."""

    def choose(s: int, left: int) -> Iterator[Load]:
        if s == len(sizes):
            yield ()
            return
        for count in range(min(most[s], left // sizes[s]) + 1):
            for rest in choose(s + 1, left - count * sizes[s]):
                yield (count, *rest)

    yield from (load for load in choose(0, room) if any(load))


def _solve(task: Task, sorts: Sequence[_Sort], kinds: Sequence[_Kind]) -> list[list[int]] | None:
    """Return nodes per load of every kind with the fewest broken nodes, of these the fewest nodes newly used; None
    where that is not fewer than now, or nothing was found in time."""
    much = 1 + sum(len(kind.nodes) for kind in kinds if not kind.used)
    costs: list[int] = []
    breaks: list[int] = []
    """What each load does to the number of broken nodes."""
    rows: list[tuple[dict[int, int], int, int]] = []
    at: list[range] = []
    pods: list[dict[int, int]] = [{} for _ in sorts]
    for kind in kinds:
        at.append(range(len(costs), len(costs) + len(kind.loads)))
        for load in kind.loads:
            filled = sum(n * sort.gpus for n, sort in zip(load, sorts, strict=True)) == kind.free
            for s, count in enumerate(load):
                if count:
                    pods[s][len(costs)] = count
            breaks.append(-filled if kind.used else not filled)
            costs.append(much * breaks[-1] + (not kind.used))
        rows.append((dict.fromkeys(at[-1], 1), 0, len(kind.nodes)))
    rows += [(terms, len(sort.pods), len(sort.pods)) for terms, sort in zip(pods, sorts, strict=True)]
    left = task.deadline.seconds_left
    values = least_in_whole_numbers(
        costs, rows, _LONGEST_S if left is None else min(left / 4, _LONGEST_S), task.deadline.stop
    )
    if values is None:
        return None
    broken = sum(len(kind.nodes) for kind in kinds if kind.used)
    broken += sum(change * value for change, value in zip(breaks, values, strict=True))
    here = np.zeros(len(task.cluster.nodes), dtype=bool)
    here[[node for kind in kinds for node in kind.nodes]] = True
    if broken >= int((task.free.is_broken() & here).sum()):
        return None
    return [values[run.start : run.stop] for run in at]


def _dealt(kinds: Sequence[_Kind], found: Sequence[Sequence[int]], held: dict[int, Load]) -> dict[int, Load]:
    """Return the load of every node; nodes that have one of the loads already keep it, nodes with others come next."""
    where: dict[int, Load] = {}
    for kind, counts in zip(kinds, found, strict=True):
        wanted = Counter({load: count for load, count in zip(kind.loads, counts, strict=True) if count})
        rest = []
        for node in kind.nodes:
            if wanted[held.get(node, ())] > 0:
                where[node] = held[node]
                wanted[held[node]] -= 1
            else:
                rest.append(node)
        rest.sort(key=lambda node: (node not in held, node))
        where |= dict(zip(rest, wanted.elements(), strict=False))
    return where


def _move(task: Task, answer: Answer, sorts: Sequence[_Sort], where: dict[int, Load]) -> None:
    """Give every pod a node of the loads; pods stay where the load of their node has one of their sort."""
    moves: list[tuple[int, Taken, int]] = []
    for s, sort in enumerate(sorts):
        wanted = Counter({node: load[s] for node, load in where.items() if load[s]})
        leaving = []
        for i, t in sort.pods:
            if wanted[t.node] > 0:
                wanted[t.node] -= 1
            else:
                leaving.append((i, t))
        moves += [(i, t, node) for (i, t), node in zip(leaving, sorted(wanted.elements()), strict=True)]
    for _, t, _ in moves:
        task.free.release(t.node, t.part.shape, 1, t.part.job.name, t.gpus)
    for i, t, node in moves:
        gpus = task.free.take(node, t.part.shape, 1, t.part.job.name)
        answer.taken[i] = (answer.taken[i][0], [t._replace(node=node, gpus=gpus)])
