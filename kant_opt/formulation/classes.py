"""Nodes alike: classes within which it does not matter which node takes a pod.

Two nodes are of one class where they lie in the same innermost domain, suit the same podsets and are charged to the
same pools. Every rule and cost that speaks of levels above the node, of pools or of totals sees only how many pods a
class takes; what fits on its nodes together is said by a filling. Where a rule speaks of single nodes or GPUs, nodes
stay by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kant_opt.formulation.alike import Demand, demands, each_alone
from kant_opt.formulation.arcs import Arcs
from kant_opt.formulation.bundles import Bundle, bundle_size, is_alone
from kant_opt.formulation.filling import Filling
from kant_opt.formulation.patterns import Patterns
from kant_opt.formulation.slots import Slots
from kant_opt.formulation.stock import stock_of
from kant_opt.view import Cluster, Free, Gang, Ints, Mask, Part, Quotas

FILLINGS = (Slots, Patterns, Arcs)
"""In order of preference where several need equally many variables."""


@dataclass(frozen=True, eq=False)
class NodeClass:
    """Nodes alike, the first of which stands for all, and what may come there."""

    nodes: tuple[int, ...]
    bundles: tuple[Bundle, ...]
    filling: Filling


@dataclass(frozen=True, eq=False)
class Fold:
    """What is counted together: parts of jobs alike, nodes of classes. Nodes of no class stay by themselves."""

    demands: list[Demand]
    bundles: list[int]
    """Per demand what its pods on a node are a multiple of."""
    classes: list[NodeClass] = field(default_factory=list)
    alone: dict[str, int] = field(default_factory=dict)
    """Why nodes stay by themselves though others are like them -> how many."""
    variables: int = 0
    """Variables for pods and fillings."""
    per_node: int = 0
    """Variables that the same takes with nothing folded."""

    def __str__(self) -> str:
        words = sorted({c.filling.word for c in self.classes}, key=[f.word for f in FILLINGS].index)
        text = " and ".join(words) or "per node"
        if self.variables:
            text += f", {self.variables:,} variables for pods"
        if self.variables < self.per_node:
            text += f" (per node: {self.per_node:,})"
        if self.classes:
            folded = sum(len(c.nodes) for c in self.classes)
            text += f"; {folded:,} nodes in {len(self.classes):,} class{'es' * (len(self.classes) > 1)}"
        stay = [f"{count:,} by themselves: {why}" for why, count in self.alone.items()]
        return "; ".join([text, *stay])


def unfolded(gangs: Sequence[Gang], *, also_empty: bool = False) -> Fold:
    """Return the fold that folds nothing; its variables are not counted."""
    parts = each_alone(gangs, also_empty=also_empty)
    return Fold(parts, [1] * len(parts))


def fold(
    cluster: Cluster,
    free: Free,
    gangs: Sequence[Gang],
    *,
    fillings: Sequence[type[Filling]] = FILLINGS,
    always: bool = False,
) -> Fold:
    """Return the fold with the fewest variables that is exact. Costs some passes over the nodes per podset.

    With `always` nodes alike are folded also where that takes more variables: for testing.
    """
    found = demands(cluster, gangs)
    running = {alloc.job for alloc in cluster.request.allocations}
    sizes = {id(g.parts[i]): bundle_size(free, g, i, running) for g in gangs for i in g.open_parts}
    bundles = [max(1, sizes[id(parts[0])]) for parts in found]
    rooms = [free.slots(parts[0].shape, parts[0].eligible) // size for parts, size in zip(found, bundles, strict=True)]
    objective = cluster.request.objective
    fragments = any(term in (objective.weights or objective.order) for term in ("broken_nodes", "broken_leaves"))
    here = np.zeros(len(cluster.nodes), dtype=bool)
    for room in rooms:
        here |= room > 0
    alone = {why: mask & here for why, mask in _alone(cluster, free, gangs, sizes).items()}
    closed = np.logical_or.reduce([~here, *alone.values()])
    marks = 2 * (free.spare > 0) if fragments else np.zeros(len(here), dtype=np.int64)
    classes, saved = [], 0
    groups = _groups(cluster, [parts[0] for parts in found], np.flatnonzero(~closed))
    for nodes, coming in zip(groups, _coming(groups, rooms, len(here)), strict=True):
        wanted: dict[Bundle, int] = {}
        for k, _ in coming:
            bundle, most = Bundle(found[k][0].shape, bundles[k]), sum(part.target for part in found[k])
            wanted[bundle] = wanted.get(bundle, 0) + most // bundle.pods
        stock = stock_of(free, tuple(wanted), tuple(wanted.values()), nodes, fragments=fragments)
        suitable = [filling(stock) for filling in fillings if filling.suits(stock)]
        if suitable:
            best = min(suitable, key=lambda filling: filling.variables)
            own = sum(2 if bundles[k] > 1 else 1 for k, _ in coming) + best.variables
            less = sum(number for _, number in coming) + int(marks[nodes].sum()) - own
            if less >= 0 or always:
                classes.append(NodeClass(tuple(nodes.tolist()), tuple(wanted), best))
                saved += less
    variables = [int((room > 0).sum()) for room in rooms]
    return Fold(
        demands=found,
        bundles=bundles,
        classes=classes,
        alone={why: int(mask.sum()) for why, mask in alone.items() if mask.any()},
        variables=sum(variables) + int(marks[here].sum()) - saved,
        per_node=sum(number * len(parts) for number, parts in zip(variables, found, strict=True))
        + int(marks[here].sum()),
    )


def _groups(cluster: Cluster, parts: Sequence[Part], nodes: Ints) -> list[Ints]:
    """Return the nodes in sets of two or more that are alike."""
    tree = cluster.tree
    masks = {part.eligible.tobytes(): part.eligible for part in parts}
    marks = [tree.of_node[tree.leaf_depth][nodes], *(mask[nodes] for mask in masks.values())]
    if Quotas(cluster):
        number: dict[tuple[str, ...], int] = {}
        marks.append(np.array([number.setdefault(cluster.nodes[n].pools, len(number)) for n in nodes], dtype=np.int64))
    _, kind = np.unique(np.column_stack(marks), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    order = np.argsort(kind, kind="stable")
    parts_of = np.split(nodes[order], np.flatnonzero(np.diff(kind[order])) + 1)
    return [group for group in parts_of if len(group) > 1]


def _coming(groups: Sequence[Ints], rooms: Sequence[Ints], num_nodes: int) -> list[list[tuple[int, int]]]:
    """Return per group (demand, nodes of the group with room for a pod of it), where there are some."""
    group_of = np.full(num_nodes, len(groups), dtype=np.int64)
    for g, nodes in enumerate(groups):
        group_of[nodes] = g
    found: list[list[tuple[int, int]]] = [[] for _ in groups]
    for k, room in enumerate(rooms):
        counts = np.bincount(group_of[room > 0], minlength=len(groups) + 1)[: len(groups)]
        for g in np.flatnonzero(counts).tolist():
            found[g].append((k, int(counts[g])))
    return found


# -- what speaks of single nodes or GPUs -------------------------------------------------------------


def _alone(cluster: Cluster, free: Free, gangs: Sequence[Gang], sizes: Mapping[int, int]) -> dict[str, Mask]:
    """Return why nodes stay by themselves -> which. `sizes` are those of bundles by id of the part."""
    found: dict[str, Mask] = {}
    for why, mask in _named_nodes(cluster, free, gangs, sizes):
        found[why] = found[why] | mask if why in found else mask
    return found


def _named_nodes(
    cluster: Cluster, free: Free, gangs: Sequence[Gang], sizes: Mapping[int, int]
) -> Iterator[tuple[str, Mask]]:
    depth = cluster.tree.node_depth
    for gang in gangs:
        sets = [parts for level, parts in gang.scopes if level == depth]
        sets = [parts for parts in sets if not any(is_alone(gang, parts, i) for i in parts)]
        sets += [parts for level, several in gang.apart if level == depth for parts in several]
        for i in gang.open_parts:
            part = gang.parts[i]
            if part.shape.has_share:
                yield "shares of GPUs", _room(free, part)
            if not sizes[id(part)]:
                yield "a rule of a podset on level 'node'", _room(free, part)
            if any(i in parts for parts in sets):
                yield "podsets together or apart on level 'node'", _room(free, part)
    yield from _jobs_at_odds(cluster, free, gangs)


def _jobs_at_odds(cluster: Cluster, free: Free, gangs: Sequence[Gang]) -> Iterator[tuple[str, Mask]]:
    """Yield where jobs live or may come that mind other jobs on single nodes; the others may be counted elsewhere."""
    request, why = cluster.request, "jobs together, apart or exclusive on level 'node'"
    level = cluster.tree.level(cluster.tree.node_depth)
    jobs = {name for group in request.groups if group.together_level == level for name in group.jobs}
    for job in request.jobs:
        if job.exclusive_level == level or any(rule.level == level and rule.jobs for rule in job.apart):
            jobs.add(job.name)
    jobs |= {alloc.job for alloc in request.allocations if alloc.exclusive_level == level}
    for gang in gangs:
        for i in gang.open_parts:
            if gang.parts[i].job.name in jobs:
                yield why, _room(free, gang.parts[i])
    lives = np.zeros(len(cluster.nodes), dtype=bool)
    for alloc in request.allocations:
        if alloc.job in jobs:
            lives[[cluster.tree.index[hold.node] for hold in alloc.holds if hold.pods]] = True
    if lives.any():
        yield why, lives


def _room(free: Free, part: Part) -> Mask:
    return free.slots(part.shape, part.eligible) > 0
