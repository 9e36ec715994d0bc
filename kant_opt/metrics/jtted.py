"""JTTED: how much further than necessary each job is stretched, and what that may cost in training time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kant_opt.errors import InputError
from kant_opt.metrics.least import LeastDomains
from kant_opt.metrics.placed import Placed
from kant_opt.schema import NODE_LEVEL

INSIDE_NODE_GBPS = 3600.0
"""Per GPU and direction between GPUs of one node: NVLink 4 (450 GB/s)."""
BETWEEN_NODES_GBPS = 400.0
"""Per GPU out of a node: one 400 Gbit/s port each."""
OVERSUBSCRIPTION = 2.0
"""Each level outwards is assumed this much narrower per GPU than the one inside it, where nothing is known."""


@dataclass(frozen=True)
class JobStretch:
    """Domains that one placed job uses and the least possible, per level (outermost first, `node` last)."""

    job: str
    used: dict[str, int]
    least: dict[str, int]
    """A counting bound on the empty cluster, never above the true least (see `LeastDomains`)."""
    slowdown: float
    """Estimated step time / step time of the least possible placement, at least 1."""

    @property
    def ratio(self) -> dict[str, float]:
        """used / least per level; 1 is ideal."""
        return {level: used / self.least[level] for level, used in self.used.items()}


def job_stretch(
    placed: Placed,
    *,
    communication_share: float = 0.3,
    gbps_per_gpu: Mapping[str, float] | None = None,
    inside_node_gbps: float = INSIDE_NODE_GBPS,
) -> tuple[JobStretch, ...]:
    """Return the stretch of every placed job that has pods, in order of the request.

    slowdown = 1 + phi (B_ideal / B_placed - 1), with phi the share of communication in an ideally placed step and B
    the bandwidth per GPU of the narrowest level crossed: a level is crossed where more than one of its domains is
    used, through the narrowest uplink used (placed) or the widest there is (ideal). A domain's bandwidth per GPU is
    its uplink / its healthy GPUs, as if all of them spoke; where the fabric does not know the uplink,
    `gbps_per_gpu[level]`, by default 400 for `node` and half as much per level outwards. Jobs with communication
    `none` have slowdown 1. The formula is ours; Kant (arXiv 2510.01256) names the measure.

    Raises InputError for a share outside 0 .. 1, an unknown level or a bandwidth that is not positive.
    """
    if not 0 <= communication_share <= 1:
        raise InputError(f"a share of communication of {communication_share}", way_out="give 0 to 1")
    bandwidth = _bandwidths(placed, gbps_per_gpu or {}, inside_node_gbps)
    least_domains = LeastDomains(placed)
    found = []
    for name, on in placed.pods_on.items():
        if not on:
            continue
        nodes = np.fromiter((placed.node_index[node] for node in on), np.int64, len(on))
        domains = {level: np.unique(placed.domain_ids(level)[nodes]) for level in placed.fabric.levels}
        used = {level: len(ids) for level, ids in domains.items()}
        least = {level: min(used[level], least_domains.of(name, level)) for level in used}
        slowdown = 1.0
        if placed.jobs[name].communication != "none":
            crossed = [float(bandwidth[level][ids].min()) for level, ids in domains.items() if len(ids) > 1]
            needed = [float(bandwidth[level].max()) for level, number in least.items() if number > 1]
            ideal, real = min([inside_node_gbps, *needed]), min([inside_node_gbps, *crossed])
            slowdown = 1 + communication_share * (ideal / real - 1)
        found.append(JobStretch(name, used, least, slowdown))
    return tuple(found)


def _bandwidths(placed: Placed, given: Mapping[str, float], inside_node: float) -> dict[str, NDArray[np.float64]]:
    """Return Gbit/s per GPU out of every domain, per level; infinite where a domain has no GPU."""
    fabric = placed.fabric
    if unknown := sorted(set(given) - set(fabric.levels)):
        raise InputError(
            f"bandwidth for the unknown level {unknown[0]!r}", way_out=f"levels: {', '.join(fabric.levels)}"
        )
    if bad := [gbps for gbps in (inside_node, *given.values()) if not gbps > 0]:
        raise InputError(f"a bandwidth of {bad[0]} Gbit/s", way_out="give positive numbers")
    found = {}
    default = BETWEEN_NODES_GBPS
    for level in reversed(fabric.levels):
        gpus = placed.sum_per_domain(level, placed.usage.healthy).astype(np.float64)
        uplinks = [fabric.uplink_gbps(domain) for domain in fabric.domains(level)]
        known = np.array([gbps is not None for gbps in uplinks], dtype=np.bool_)
        per_gpu = np.full(len(uplinks), given.get(level, default))
        total = np.array([gbps or 0 for gbps in uplinks], dtype=np.float64)
        np.divide(total, gpus, out=per_gpu, where=known & (gpus > 0))
        per_gpu[gpus == 0] = np.inf
        found[level] = per_gpu
        default /= OVERSUBSCRIPTION
    return {level: found[level] for level in (*placed.outer_levels, NODE_LEVEL)}
