"""The cluster's measures at one moment: allocation, fragmentation, the largest gangs that fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kant_opt.errors import InputError
from kant_opt.fabric import Path
from kant_opt.metrics.fragmentation import broken_leaves
from kant_opt.metrics.placed import Placed
from kant_opt.metrics.usage import Integers


@dataclass(frozen=True)
class LargestGang:
    """The most pods of one size that fit into one domain of a level now, by GPUs alone (no CPU, memory, labels)."""

    pool: str
    level: str
    pod_gpus: int | None
    """GPUs of each pod; None: pods that take a whole node, all its GPUs healthy."""
    pods: int
    domain: Path
    """The first domain, in order of path, that holds so many."""


@dataclass(frozen=True)
class ClusterMeasures:
    """Measures over the schedulable nodes with healthy GPUs; what runs on other nodes does not count.

    The formulas are ours; Kant (arXiv 2510.01256) names the ratios.
    """

    gpus: int
    """Healthy GPUs."""
    nodes: int
    allocated_gpus: float
    """GPUs in use, a GPU used in part by its part."""
    free_gpus: int
    """GPUs of which nothing is used."""
    free_parts: float
    """What is free of the GPUs used in part, in GPUs."""
    gar: float | None
    """GPU allocation ratio: allocated GPUs / healthy GPUs; None where there is none."""
    gfr: float | None
    """GPU node fragmentation ratio: broken nodes / nodes; None where there is none."""
    broken_nodes: int
    broken_leaves: int
    largest: tuple[LargestGang, ...]
    """Per pool (by name), level (outermost first, `node` last) and pod size (whole nodes first)."""


def before_and_after(placed: Placed, pod_sizes: Sequence[int] = ()) -> tuple[ClusterMeasures, ClusterMeasures]:
    """Return the measures of the request as it is and after the placement."""
    before = Placed(placed.request, fabric=placed.fabric)
    return cluster_measures(before, pod_sizes), cluster_measures(placed, pod_sizes)


def cluster_measures(placed: Placed, pod_sizes: Sequence[int] = ()) -> ClusterMeasures:
    """Return the cluster's measures after the placement; `pod_sizes` are GPUs per pod for `largest`.

    Linear in nodes, times pools, levels and pod sizes for `largest`.
    """
    usage = placed.usage
    counted = usage.counted
    gpus, nodes = int(usage.healthy[counted].sum()), int(counted.sum())
    free = int(usage.untouched[counted].sum())
    free_parts = float((usage.part_free / usage.unit[usage.part_node])[counted[usage.part_node]].sum())
    allocated = gpus - free - free_parts
    broken = int(usage.broken.sum())
    return ClusterMeasures(
        gpus=gpus,
        nodes=nodes,
        allocated_gpus=allocated,
        free_gpus=free,
        free_parts=free_parts,
        gar=allocated / gpus if gpus else None,
        gfr=broken / nodes if nodes else None,
        broken_nodes=broken,
        broken_leaves=broken_leaves(placed),
        largest=largest_gangs(placed, pod_sizes),
    )


def largest_gangs(placed: Placed, pod_sizes: Sequence[int] = ()) -> tuple[LargestGang, ...]:
    """Return for every pool, level and pod size how many pods one domain can take now.

    Raises InputError for a pod size below 1.
    """
    if bad := [size for size in pod_sizes if size < 1]:
        raise InputError(f"a pod size of {bad[0]} GPUs", way_out="give sizes of 1 or more")
    usage, nodes = placed.usage, placed.request.nodes
    installed = np.array([node.gpus for node in nodes], dtype=np.int64)
    empty = usage.counted & (usage.untouched == installed)
    fits: list[tuple[int | None, Integers]] = [(None, empty.astype(np.int64))]
    fits += [(size, np.where(usage.counted, usage.untouched // size, 0)) for size in sorted(set(pod_sizes))]
    return tuple(
        _largest(placed, LargestGang(pool, level, size, 0, ()), np.where(inside, pods, 0))
        for pool, inside in _pools(placed)
        for level in placed.fabric.levels
        for size, pods in fits
    )


def _largest(placed: Placed, gang: LargestGang, pods: Integers) -> LargestGang:
    per_domain = placed.sum_per_domain(gang.level, pods)
    best = int(per_domain.argmax())
    return replace(gang, pods=int(per_domain[best]), domain=placed.fabric.domains(gang.level)[best])


def _pools(placed: Placed) -> list[tuple[str, NDArray[np.bool_]]]:
    """Return every pool that holds GPUs with the mask of its nodes; a node may be in several."""
    nodes = placed.request.nodes
    members: dict[str, list[int]] = {}
    for n, node in enumerate(nodes):
        if node.gpus:
            for pool in node.pools:
                members.setdefault(pool, []).append(n)
    masks = []
    for pool in sorted(members):
        mask = np.zeros(len(nodes), dtype=np.bool_)
        mask[members[pool]] = True
        masks.append((pool, mask))
    return masks
