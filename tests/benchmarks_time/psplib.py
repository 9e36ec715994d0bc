"""PSPLIB's project scheduling instances: activities with precedences on renewable resources, best known makespans.

Kolisch and Sprecher, Eur. J. Oper. Res. 96 (1997), doi:10.1016/S0377-2217(96)00170-1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kant_opt.formulation.schedule import Activity, Goal, Resource, ScheduleProgram
from kant_opt.schema import Job, Node, PodSet, Request


@dataclass(frozen=True)
class Project:
    """Activities 0..n-1 without the two dummies."""

    name: str
    capacities: tuple[int, ...]
    durations: tuple[int, ...]
    demands: tuple[tuple[int, ...], ...]
    """Per activity and resource."""
    after: tuple[tuple[int, ...], ...]

    def program(self) -> ScheduleProgram:
        """Return it as a scheduling program with its makespan to be minimised."""
        resources = tuple(Resource(f"R{r}", capacity) for r, capacity in enumerate(self.capacities))
        activities = tuple(
            Activity(f"{i + 1}", duration, ({r: d for r, d in enumerate(demand) if d},), after=after)
            for i, (duration, demand, after) in enumerate(zip(self.durations, self.demands, self.after, strict=True))
        )
        return ScheduleProgram(resources, activities, (Goal("makespan"),))


def read_project(path: Path) -> Project:
    """Read a file of Patterson's format: n R, capacities, then duration, R demands, number of successors, these."""
    words = iter(int(word) for word in path.read_text().split())
    count, kinds = next(words), next(words)
    capacities = tuple(next(words) for _ in range(kinds))
    durations, demands = [], []
    after: list[list[int]] = [[] for _ in range(count)]
    for i in range(count):
        durations.append(next(words))
        demands.append(tuple(next(words) for _ in range(kinds)))
        for _ in range(next(words)):
            after[next(words) - 1].append(i)
    inner = range(1, count - 1)
    return Project(
        name=path.stem,
        capacities=capacities,
        durations=tuple(durations[i] for i in inner),
        demands=tuple(demands[i] for i in inner),
        after=tuple(tuple(k - 1 for k in after[i] if k) for i in inner),
    )


def best_known(folder: Path, kind: str) -> dict[str, tuple[int | None, int]]:
    """Return (lower, upper) bounds of the makespan per instance of `kind` ("j30", "j60", "j120").

    The files of lower bounds are snapshots and stop short: None where there is none.
    """
    if kind == "j30":
        optimal = _numbers(folder / "best_known" / "j30opt.sm", 3)
        return {f"j30_{p}_{i}": (value, value) for p, i, value in optimal}
    lower = {(p, i): low for p, i, _, low in _numbers(folder / "best_known" / f"{kind}lb.sm", 4)}
    upper = _numbers(folder / "best_known" / f"{kind}hrs.sm", 3)
    return {f"{kind}_{p}_{i}": (lower.get((p, i)), value) for p, i, value in upper}


def _numbers(path: Path, count: int) -> list[list[int]]:
    """Return the lines of a table that begin with so many whole numbers."""
    lines = re.findall(r"^[ \t]*" + r"(\d+)[ \t]+" * count, path.read_text(encoding="latin-1"), re.MULTILINE)
    return [[int(number) for number in line] for line in lines]


def project_request(project: Project) -> Request:
    """Return a project as a queue: an activity is a gang of one GPU per unit of demand, a resource a node of its pool.

    Every resource is one node with as many GPUs as it has units, so where pods go is no question, only when.
    """
    names = [f"a{i + 1:03}" for i in range(len(project.durations))]
    nodes = tuple(Node(name=f"R{r}", pools=(f"R{r}",), gpus=capacity) for r, capacity in enumerate(project.capacities))
    jobs = []
    for i, (duration, demand, after) in enumerate(zip(project.durations, project.demands, project.after, strict=True)):
        podsets = tuple(
            PodSet(name=f"R{r}", count=units, gpus=1, pools=(f"R{r}",)) for r, units in enumerate(demand) if units
        )
        jobs.append(
            Job(
                name=names[i],
                podsets=podsets or (PodSet(count=1),),
                walltime_s=duration,
                after=tuple(names[k] for k in after),
                communication="none",
            )
        )
    return Request(name=project.name, nodes=nodes, jobs=tuple(jobs))
