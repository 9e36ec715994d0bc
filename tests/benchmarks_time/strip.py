"""Rectangles without waste as queues: WIDTH GPUs of a gang for HEIGHT seconds, so that the area bound is the height.

Hopper and Turton, Eur. J. Oper. Res. 128 (2001), doi:10.1016/S0377-2217(99)00357-4; Burke, Kendall and Whitwell,
Oper. Res. 52 (2004), doi:10.1287/opre.1040.0109.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kant_opt.schema import Job, Node, PodSet, Request

DEFECT = "C7_3"
"""Its areas do not add up to its height."""


@dataclass(frozen=True)
class Strip:
    """One instance: gangs as (GPUs, seconds) on `width` GPUs; `height` is their area over the width."""

    name: str
    width: int
    height: int
    gangs: tuple[tuple[int, int], ...]

    def request(self) -> Request:
        """Return it as a queue in the order of the file, all submitted at 0: nodes of one GPU, where it lies is no
        question.
        """
        nodes = tuple(Node(name=f"n{i:04}", gpus=1) for i in range(self.width))
        jobs = tuple(
            Job(name=f"g{i:04}", podsets=(PodSet(count=gpus, gpus=1),), walltime_s=seconds)
            for i, (gpus, seconds) in enumerate(self.gangs)
        )
        return Request(name=self.name, nodes=nodes, jobs=jobs)


def read_strips(folder: Path) -> Iterator[Strip]:
    """Yield the instances, smallest first; the one with a defect left out."""
    found = []
    for path in sorted(folder.glob("*/*_items.csv")):
        name = path.name.removesuffix("_items.csv")
        if name == DEFECT:
            continue
        (strip,) = _rows(path.with_name(f"{name}_bins.csv"))
        gangs = tuple(_rows(path))
        found.append(Strip(name, *strip, gangs))
    yield from sorted(found, key=lambda strip: (len(strip.gangs), strip.name))


def _rows(path: Path) -> list[tuple[int, int]]:
    with path.open(newline="") as file:
        return [(int(row["WIDTH"]), int(row["HEIGHT"])) for row in csv.DictReader(file)]
