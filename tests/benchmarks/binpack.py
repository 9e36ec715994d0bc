"""Bin packing: items of given sizes into the fewest bins of one capacity.

A bin is a node, an item a pod. No node is ever full, so that `broken_nodes` counts the bins in use: a bin of capacity C
has 2 C + 1 GPUs and a pod takes twice its size, an even number; where that is more GPUs than a node may have, capacity
and size are CPU, a pod takes one GPU, and a node has one more than its CPU lets pods take. There are as many nodes as
first-fit decreasing needs bins and two more, so that a greedy finds room for the gang of all items too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from kant_opt import Job, Node, Objective, PodSet, Request

from .known import Known, folder

MOST_GPUS = 1024
FILES = ("binpack1", "binpack3", "binpack11")


def read_all() -> list[Known]:
    """Return the instances at hand; none where the data is missing."""
    data = folder("orlib_binpack")
    return [known for name in FILES for known in read_binpack(data / f"{name}.txt")] if data else []


def read_binpack(path: Path) -> Iterator[Known]:
    """Yield the problems of one of OR-Library's files: name; capacity, items, fewest bins; sizes."""
    words = iter(path.read_text().split())
    for _ in range(int(next(words))):
        name, capacity, items, fewest = next(words), int(next(words)), int(next(words)), int(next(words))
        yield binpack(name, capacity, [int(next(words)) for _ in range(items)], fewest)


def binpack(name: str, capacity: int, sizes: Sequence[int], optimum: int) -> Known:
    """Return the question; `sizes` in any order."""
    return Known(name, optimum, partial(_request, name, capacity, sizes), "broken_nodes")


def _request(name: str, capacity: int, sizes: Sequence[int]) -> Request:
    bins = first_fit_decreasing(capacity, sizes) + 2
    by_gpus = 2 * capacity + 1 <= MOST_GPUS
    gpus = 2 * capacity + 1 if by_gpus else capacity // min(sizes) + 1
    nodes = [Node(name=f"bin-{b:03}", gpus=gpus, cpu_milli=None if by_gpus else capacity) for b in range(bins)]
    podsets = [
        PodSet(name=f"size-{size}", count=count, gpus=2 * size if by_gpus else 1, cpu_milli=0 if by_gpus else size)
        for size, count in sorted(Counter(sizes).items(), reverse=True)
    ]
    return Request(
        name=name,
        nodes=tuple(nodes),
        jobs=(Job(name="items", podsets=tuple(podsets), communication="none"),),
        objective=Objective(order=("admitted", "broken_nodes")),
    )


def first_fit_decreasing(capacity: int, sizes: Sequence[int]) -> int:
    """Return the bins that first-fit decreasing uses."""
    rooms: list[int] = []
    for size in sorted(sizes, reverse=True):
        for b, room in enumerate(rooms):
            if size <= room:
                rooms[b] -= size
                break
        else:
            rooms.append(capacity - size)
    return len(rooms)
