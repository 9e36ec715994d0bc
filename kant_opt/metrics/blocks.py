"""Slurm's block sum: how many nodes lie in blocks that can no longer be given away whole."""

from __future__ import annotations

import numpy as np

from kant_opt.metrics.placed import Placed


def block_sum(placed: Placed) -> int:
    """Return the sum of sizes, in nodes, of all blocks on all levels that are not wholly free, plus the nodes in use.

    The blocks are the domains of every level, nodes themselves being the smallest. A domain counts with all its nodes
    as soon as one of them is used, closed, or has an unhealthy GPU; nodes without GPUs are left out. Lower is better;
    0 is the empty cluster. The idea is the fragmentation that Slurm's topology/block plugin (24.05 and later) gives its
    backfill scheduler: sizes of unavailable base and aggregate blocks plus nodes taken. Departures:
    (1) blocks may differ in size, since fabrics do; (2) a base block has no spare nodes, all of its nodes must be free;
    (3) blocks of aggregates are the domains of the outer levels, not runs of 2^k consecutive blocks.
    """
    usage = placed.usage
    installed = np.array([node.gpus for node in placed.request.nodes], dtype=np.int64)
    has_gpus = installed > 0
    taken = has_gpus & ~(usage.schedulable & (usage.untouched == installed))
    total = 0
    for level in placed.fabric.levels:
        size = placed.sum_per_domain(level, has_gpus.astype(np.int64))
        spoiled = placed.sum_per_domain(level, taken.astype(np.int64)) > 0
        total += int(size[spoiled].sum())
    return total
