"""What one node means to one podset, for the MiniZinc twins: may it come, what is free, what is a pod charged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import Literal

from kant_opt.schema import Hold, Job, Node, PodSet, Request, Reservation

Resource = Literal["gpu", "cpu_milli", "memory_bytes"]
_MILLI = 1000


@dataclass(frozen=True)
class GpuRoom:
    """The healthy GPUs of one node, in units of which `full` are one GPU."""

    full: int
    used: tuple[int, ...]
    """Units used per GPU, at most `full`."""

    @property
    def free(self) -> int:
        """Number of GPUs of which nothing is used."""
        return self.used.count(0)

    @property
    def in_part(self) -> bool:
        """True where some GPU is used, but not all of it."""
        return any(0 < units < self.full for units in self.used)


def gpu_room(node: Node, holds: Iterable[Hold]) -> GpuRoom:
    """Return what runs on the healthy GPUs of `node`; units are 1 / (1000 M) of a GPU, M its memory in MiB.

    Named GPUs come first, then holds that name none take the lowest free ones; where these do not suffice, nothing is
    free.
    """
    full = _MILLI * (node.gpu_memory_mib or 1)
    sick = {gpu.index for gpu in node.gpu_details if not gpu.healthy}
    used = {index: 0 for index in range(node.gpus) if index not in sick}
    unnamed = 0
    for hold in holds:
        if not hold.gpu_indices:
            unnamed += hold.gpus
        for index in hold.gpu_indices:
            if index in used:
                used[index] = min(full, used[index] + (gpu_units(hold, node) or full))
    for index in sorted(used):
        if unnamed and used[index] == 0:
            used[index] = full
            unnamed -= 1
    return GpuRoom(full, (full,) * len(used) if unnamed else tuple(used[index] for index in sorted(used)))


def gpu_units(asks: PodSet | Hold, node: Node) -> int:
    """Return the units of one GPU that a share takes, see `gpu_room`; 0 where `asks` is no share.

    A share in MiB takes all of a GPU whose memory is not known.
    """
    memory = node.gpu_memory_mib
    if asks.gpu_milli is not None:
        return asks.gpu_milli * (memory or 1)
    if asks.gpu_memory_mib is not None:
        return _MILLI * (asks.gpu_memory_mib if memory else 1)
    return 0


def gpu_milli(asks: PodSet | Hold, node: Node) -> int:
    """Return the GPUs asked for, in thousandths; of a share in MiB rounded up."""
    units = gpu_units(asks, node)
    return -(-units // (node.gpu_memory_mib or 1)) if units else _MILLI * asks.gpus


def in_common_unit(room: GpuRoom, asks: Iterable[int]) -> tuple[GpuRoom, int]:
    """Return `room` in the largest unit in which it and all `asks` are whole numbers, and how large that unit is."""
    unit = gcd(room.full, *room.used, *asks)
    return GpuRoom(room.full // unit, tuple(units // unit for units in room.used)), unit


def is_eligible(request: Request, job: Job, podset: PodSet, node: Node) -> bool:
    """Return whether the rules `eligible` and `window` let pods of `podset` come to `node`."""
    return all(
        (
            node.schedulable,
            not podset.pools or not set(podset.pools).isdisjoint(node.pools),
            all(node.labels.get(label) in allowed for label, allowed in podset.selector.items()),
            not podset.nodes or node.name in podset.nodes,
            node.name not in podset.not_nodes,
            all(
                any(toleration.covers(taint) for toleration in podset.tolerations)
                for taint in node.taints
                if taint.effect in ("NoSchedule", "NoExecute")
            ),
            podset.gpu_memory_mib is None or node.gpu_memory_mib is not None,
            not any(_is_kept_from(request, job, node, kept) for kept in request.reservations),
        )
    )


def _is_kept_from(request: Request, job: Job, node: Node, kept: Reservation) -> bool:
    if node.name not in kept.nodes or job.name in kept.jobs:
        return False
    start, end = request.now_s, None
    if job.walltime_s is not None:
        end = start + job.walltime_s
    elif job.preemptible:
        end = start + 1
    if end is not None and end <= max(start, kept.start_s):
        return False
    return kept.end_s is None or max(start, kept.start_s) < kept.end_s


def pool_of_pod(podset: PodSet, node: Node) -> str:
    """Return the pool that a pod on `node` is charged to."""
    return next((pool for pool in podset.pools if pool in node.pools), node.pools[0])


def charge(resource: Resource, asks: PodSet | Hold, node: Node) -> int:
    """Return what a pod or hold on `node` uses of a quota's resource; GPUs in thousandths."""
    if resource == "gpu":
        return gpu_milli(asks, node)
    return asks.cpu_milli if resource == "cpu_milli" else asks.memory_bytes
