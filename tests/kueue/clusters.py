"""Kueue's six timed clusters: each request placed alone on the recorded state, by a session that is kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median
from time import perf_counter, process_time
from typing import Any

from kant_opt.engine import Session
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PodSet, Request, Slice

from .cases import NODE, folder

CLUSTERS = (
    "uniform_640",
    "uniform_2500",
    "uniform_10000",
    "clumped_640",
    "clumped_2500",
    "clumped_10000",
)
LEVELS = ("block", "rack")
JOB = "gang"


@dataclass(frozen=True)
class Timed:
    """One request placed several times: domains used (None where it does not fit), seconds of each run by the clock
    on the wall and by the processor's."""

    request: dict[str, Any]
    used: dict[str, int] | None
    wall_s: tuple[float, ...]
    cpu_s: tuple[float, ...]

    @property
    def name(self) -> str:
        return str(self.request["id"])

    @property
    def best_us(self) -> float:
        return min(self.wall_s) * 1e6

    @property
    def median_us(self) -> float:
        return median(self.wall_s) * 1e6

    @property
    def cpu_us(self) -> float:
        """Mean of the processor time, as Kueue's `cpu_us`."""
        return fmean(self.cpu_s) * 1e6

    @property
    def kueue(self) -> dict[str, int] | None:
        """Domains that Kueue used."""
        answer = self.request["kueue"]
        return {level: answer[f"{level}s_used"] for level in LEVELS} if answer["fits"] else None

    @property
    def fewest(self) -> dict[str, int] | None:
        """Fewest blocks, then fewest racks, as CP-SAT found them."""
        exact = self.request["exact"]
        return exact["fewest_outer_first"] if exact["fits"] else None

    @property
    def kueue_us(self) -> dict[str, int]:
        """Kueue's times of one placement on a ready snapshot: min_us (best, wall), cpu_us (mean of processor time)."""
        times: dict[str, int] = self.request["kueue"]["time"]["find"]
        return times


@cache
def load(name: str) -> dict[str, Any]:
    """Return one recorded cluster. Raises FileNotFoundError where the recordings are missing."""
    if (data := folder()) is None:
        raise FileNotFoundError("the recordings of Kueue are not beside the checkout")
    with gzip.open(data / f"bench_{name}.json.gz", "rt", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def session(name: str) -> Session:
    """Return a session on the recorded state: what is in use on a node is held by a job of its own."""
    nodes = load(name)["nodes"]
    return Session(
        Request(
            fabric=FabricSpec(levels=LEVELS),
            nodes=tuple(
                Node(name=n["name"], path=tuple(n["domains"][level] for level in LEVELS), gpus=n["capacity"]["gpu"])
                for n in nodes
            ),
            allocations=tuple(
                Allocation(job=f"on-{n['name']}", holds=(Hold(node=n["name"], gpus=used),))
                for n in nodes
                if (used := n["capacity"]["gpu"] - n["free"]["gpu"])
            ),
        )
    )


def place_all(name: str, ready: Session, repeats: int = 1) -> Iterator[Timed]:
    """Place every request of a cluster `repeats` times, each time on the same state.

    The balanced set is left out: Kueue spreads there on purpose, over more racks or blocks than needed.
    """
    domains = {n["name"]: n["domains"] for n in load(name)["nodes"]}
    for request in load(name)["requests"]:
        if request["set"] == "balanced":
            continue
        job = _job(request)
        used, wall_s, cpu_s = None, [], []
        for repeat in range(repeats):
            wall, cpu = perf_counter(), process_time()
            placed = ready.place(job)
            wall_s.append(perf_counter() - wall)
            cpu_s.append(process_time() - cpu)
            if placed is not None:
                if repeat == 0:
                    assert ready.verify() == ()
                    used = {level: len({domains[node][level] for node in placed.nodes}) for level in LEVELS}
                ready.release(JOB)
        yield Timed(request, used, tuple(wall_s), tuple(cpu_s))


def _job(request: dict[str, Any]) -> Job:
    podset = PodSet(
        count=request["count"],
        gpus=request["per_pod"]["gpu"],
        required_level=_level(request["required_level"]),
        preferred_level=_level(request["preferred_level"]),
        slices=tuple(Slice(level=str(_level(s["level"])), size=s["size"]) for s in request["slices"]),
    )
    return Job(name=JOB, podsets=(podset,))


def _level(level: str | None) -> str | None:
    return NODE if level == "host" else level
