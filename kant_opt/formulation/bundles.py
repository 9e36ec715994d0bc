"""Pods that come to a node by the bundle: what most rules on the level of nodes come to."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kant_opt.view import Free, Gang, Shape


class Bundle(NamedTuple):
    """So many pods of one shape, all on one node."""

    shape: Shape
    pods: int = 1

    @property
    def needs(self) -> tuple[int, int, int, int]:
        """GPUs, CPU, memory and pods."""
        return self.shape.gpus * self.pods, self.shape.cpu * self.pods, self.shape.memory * self.pods, self.pods


def bundle_size(free: Free, gang: Gang, i: int, running: Collection[str]) -> int:
    """Return of what the pods of a part on any node are a multiple, and nothing else is asked of them there.

    The whole part where one node has to hold it, its slices of nodes, else 1; 0 where a rule on the level of nodes
    says more than that. `running` are the jobs with allocations.
    """
    part, depth = gang.parts[i], free.cluster.tree.node_depth
    alone = any(level == depth and is_alone(gang, parts, i) for level, parts in gang.scopes)
    one = part.required == depth or alone
    size = next((size for level, size in part.slices if level == depth), 1)
    spread = [most for level, most in part.spread if level == depth]
    if (one or size > 1 or spread) and part.job.name in running:
        return 0
    if one and (part.least != part.target or part.target % size):
        return 0
    size = part.target if one else size
    fits = min(part.target, int(free.slots(part.shape, part.eligible).max(initial=0))) // size * size
    return 0 if any(fits > most for most in spread) else size


def is_alone(gang: Gang, parts: frozenset[int], i: int) -> bool:
    """Return whether part `i` is the only one of `parts` with pods to place."""
    return parts.intersection(gang.open_parts) == {i}
