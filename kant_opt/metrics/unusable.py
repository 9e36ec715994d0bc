"""FGD's expected fragmentation: how much of the free GPUs the next task is likely unable to use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kant_opt.errors import InputError
from kant_opt.metrics.placed import Placed
from kant_opt.metrics.usage import UNIT_OF_UNKNOWN
from kant_opt.schema import Node, PodSet


@dataclass(frozen=True)
class UnusableShare:
    """Free GPUs that a task drawn from a mix cannot use, expected over the mix."""

    gpus: float
    free_gpus: float
    """All that is free, parts included."""
    of_free: float | None
    """gpus / free GPUs; None where nothing is free."""
    of_all: float | None
    """gpus / healthy GPUs; None where there is none."""


def expected_unusable(placed: Placed, mix: Iterable[tuple[PodSet, float]] | None = None) -> UnusableShare:
    """Return the expected unusable share after the placement, over schedulable nodes with healthy GPUs.

    `mix` holds task types and how often each occurs (any positive scale); None: the pods of the request's jobs.
    On a node where a type cannot run, or a type that asks for no GPU, all that is free is unusable; else the free
    parts of GPUs smaller than the type needs of each. "Can run" looks at GPUs, CPU, memory, pod limit and pool.
    Raises InputError for a mix without weight. Costs nodes x distinct types.

    Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
    USENIX ATC 2023.
    """
    weights = _weights(placed, mix)
    usage, counted = placed.usage, placed.usage.counted
    free_per_node = usage.free_gpus
    expected = sum(share * float(_unusable(placed, task, free_per_node)[counted].sum()) for task, share in weights)
    free, gpus = float(free_per_node[counted].sum()), int(usage.healthy[counted].sum())
    return UnusableShare(
        gpus=expected,
        free_gpus=free,
        of_free=expected / free if free else None,
        of_all=expected / gpus if gpus else None,
    )


def _weights(placed: Placed, mix: Iterable[tuple[PodSet, float]] | None) -> list[tuple[PodSet, float]]:
    """Return one podset per distinct type with its share of the mix, shares adding up to 1."""
    if mix is None:
        mix = ((p, float(p.count)) for job in placed.request.jobs for p in job.podsets)
    seen: dict[tuple[object, ...], tuple[PodSet, float]] = {}
    for task, weight in mix:
        if weight < 0:
            raise InputError(f"task type {task.name!r} has the weight {weight}", way_out="weights are 0 or more")
        gpus = (task.gpus, task.gpu_milli, task.gpu_memory_mib, tuple(sorted(task.pools)))
        shape = (*gpus, task.cpu_milli, task.memory_bytes)
        seen[shape] = (task, weight + seen.get(shape, (task, 0.0))[1])
    total = sum(weight for _, weight in seen.values())
    if not total:
        raise InputError("the task mix is empty", way_out="give task types with weights, or a request with jobs")
    return [(task, weight / total) for task, weight in seen.values()]


def _unusable(placed: Placed, task: PodSet, free: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return per node how much free GPU the task cannot use, in GPUs: (n_nodes,)."""
    usage = placed.usage
    if not task.gpus and not task.has_share:
        return free
    part_unit = usage.unit[usage.part_node]
    if task.gpu_milli is not None:
        needed = task.gpu_milli * part_unit // 1000
    elif task.gpu_memory_mib is not None:
        needed = np.full_like(part_unit, 1000 * task.gpu_memory_mib)
    else:
        needed = part_unit
    large = usage.part_free >= needed
    gpus_that_fit = usage.untouched.copy()
    if task.gpu_memory_mib is not None:
        memory_unknown = usage.unit == UNIT_OF_UNKNOWN
        gpus_that_fit[memory_unknown | (1000 * task.gpu_memory_mib > usage.unit)] = 0
    np.add.at(gpus_that_fit, usage.part_node[large], 1)
    runs = (
        (gpus_that_fit >= max(1, task.gpus))
        & (usage.cpu_free >= task.cpu_milli)
        & (usage.memory_free >= task.memory_bytes)
        & (usage.pods_free >= 1)
    )
    if task.pools:
        runs &= np.array([_shares_pool(node, task) for node in placed.request.nodes], dtype=np.bool_)
    small_parts = np.zeros_like(free)
    np.add.at(small_parts, usage.part_node[~large], (usage.part_free / part_unit)[~large])
    return np.where(runs, small_parts, free)


def _shares_pool(node: Node, task: PodSet) -> bool:
    return not set(node.pools).isdisjoint(task.pools)
