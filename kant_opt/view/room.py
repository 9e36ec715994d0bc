"""Where one part of a gang could go: pods per domain at every depth, with the rules of counting applied."""

from __future__ import annotations

import numpy as np

from kant_opt.view.free import Free
from kant_opt.view.gang import Gang, Part, domain_counts
from kant_opt.view.tree import Ints, Mask


def capacities(free: Free, part: Part, open_nodes: Mask | None = None) -> list[Ints]:
    """Return how many new pods of `part` fit in each domain, one array per depth, 0 = the whole fabric.

    Slices round down, spreads cap, and both are exact for pods of one shape: any multiple of the slice size up to
    the number given can be placed inside. `open_nodes` (N,) masks nodes. For a part with slices and living pods the
    numbers are upper bounds only. Costs one pass over the nodes.
    """
    tree = free.cluster.tree
    room = free.slots(part.shape, part.eligible)
    room = room.copy() if open_nodes is None else np.where(open_nodes, room, 0)
    found = [room] * tree.depths
    sizes = dict(part.slices)
    for depth in range(tree.node_depth, -1, -1):
        if depth < tree.node_depth:
            room = tree.fold(room, depth + 1)
        for level, most in part.spread:
            if level == depth:
                room = np.maximum(0, np.minimum(room, most - domain_counts(tree, part.living, depth)))
                if not part.living:
                    whole = next((size for inner, size in part.slices if inner >= depth), 1)
                    room = room // whole * whole
        if depth in sizes and not part.living:
            room = room // sizes[depth] * sizes[depth]
        found[depth] = room
    if part.spread or part.slices:  # what an outer domain may not take, no domain inside it may
        for depth in range(1, tree.depths):
            found[depth] = np.minimum(found[depth], found[depth - 1][tree.parent[depth]])
    return found


def open_nodes(free: Free, gang: Gang) -> Mask | None:
    """Return the nodes that rules towards other jobs leave to the gang, (N,); None where they leave all.

    Looks at jobs to stay apart from, exclusive domains of this gang and of others, and at groups whose other jobs
    hold a domain already.
    """
    own = {job.name for job in gang.jobs}
    closed: Mask | None = None
    for depth, others, inside in _rules_towards_others(free, gang):
        tree = free.cluster.tree
        hit = np.zeros(tree.num_domains(depth), dtype=bool)
        for name in others:
            if name not in own:
                for node in free.pods_of.get(name, {}):
                    hit[tree.of_node[depth][node]] = True
        if not hit.any():
            continue
        mask = hit[tree.of_node[depth]]
        if inside:  # those torn already leave nothing
            mask = ~mask if np.count_nonzero(hit) == 1 else np.ones_like(mask)
        closed = mask if closed is None else closed | mask
    return None if closed is None else ~closed


def _rules_towards_others(free: Free, gang: Gang) -> list[tuple[int, list[str], bool]]:
    """Return (depth, other jobs, inside): with `inside` the gang stays where they are, else where they are not."""
    request, tree = free.cluster.request, free.cluster.tree
    own = {job.name for job in gang.jobs}
    found: list[tuple[int, list[str], bool]] = []
    for job in gang.jobs:
        for rule in job.apart:
            if rule.jobs:
                found.append((tree.depth(rule.level), list(rule.jobs), False))
        if job.exclusive_level:
            found.append((tree.depth(job.exclusive_level), sorted(free.pods_of), False))
    for other in free.cluster.keeping_away:
        if other.name in own or not free.pods_of.get(other.name):
            continue
        for rule in other.apart:
            if not own.isdisjoint(rule.jobs):
                found.append((tree.depth(rule.level), [other.name], False))
        if other.exclusive_level:
            found.append((tree.depth(other.exclusive_level), [other.name], False))
    for alloc in free.cluster.exclusive:
        assert alloc.exclusive_level is not None
        others = sorted(free.pods_of) if alloc.job in own else [alloc.job]
        found.append((tree.depth(alloc.exclusive_level), others, False))
    for group in request.groups:
        if group.together_level and not own.isdisjoint(group.jobs):
            found.append((tree.depth(group.together_level), list(group.jobs), True))
    return found
