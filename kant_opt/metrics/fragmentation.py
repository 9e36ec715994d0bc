"""Terms `broken_nodes` and `broken_leaves`: what is neither empty nor full."""

from __future__ import annotations

import numpy as np

from kant_opt.metrics.placed import Placed


def broken_nodes(placed: Placed) -> int:
    """Return how many schedulable nodes have 0 < used < healthy GPUs; a GPU used in part is used in part."""
    return int(placed.usage.broken.sum())


def broken_leaves(placed: Placed) -> int:
    """Return how many domains of the innermost level above `node` have 0 < used nodes < nodes; 0 without such a level.

    Only schedulable nodes with healthy GPUs count, used if any part of a healthy GPU is.
    """
    if not placed.outer_levels:
        return 0
    leaf, usage = placed.outer_levels[-1], placed.usage
    nodes = placed.sum_per_domain(leaf, usage.counted.astype(np.int64))
    used = placed.sum_per_domain(leaf, (usage.counted & usage.used).astype(np.int64))
    return int(((used > 0) & (used < nodes)).sum())
