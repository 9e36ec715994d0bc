"""Instances where all compete: gangs of whole nodes, gangs of smaller pods and single small pods, on one fabric.

A `Recipe` and its seed make one request, the same on every machine and whatever the backends do. The stored ones are
in instances/coupled; `coupled_recipes` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random

from kant_opt.fabric.generators import fat_tree, leaf_spine
from kant_opt.io import save
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PodSet, Request

GPUS = 8
"""GPUs of every node."""
SMALL = (1, 1, 1, 2, 2, 4)
"""GPUs of a single small pod, drawn with equal weight."""
ODD = (2, 3, 3, 5, 5, 6, 7, 9, 11, 12, 13, 20, 24, 40)
LARGE_ODD = (*ODD, 31, 45, 57, 75, 90)
MIXES: dict[str, Callable[[Random, bool], int]] = {
    "pow2": lambda draw, large: 2 ** draw.randint(0, 7 if large else 5),
    "odd": lambda draw, large: draw.choice(LARGE_ODD if large else ODD),
    "wide": lambda draw, large: round(2 ** draw.uniform(0, 8 if large else 7)),
    "even": lambda draw, large: draw.randint(2, 54),
}
"""Nodes' worth of one gang, by the name of the mix; `large` on more than 4,096 nodes."""
_POOLS = ("a100", "h100")


@dataclass(frozen=True)
class Recipe:
    """What one instance is made from; shares are in %."""

    name: str
    why: str
    """What it is hard for."""
    seed: int
    fabric: tuple[int, ...]
    """How many domains each outer one holds, level by level, and the nodes of a leaf: (spines, leaves, nodes) or
    (cores, spines, leaves, nodes)."""
    mix: str
    """Of gang sizes, see MIXES."""
    fill: int
    """GPUs asked for, of those on wholly free nodes."""
    small: int = 5
    """GPUs asked for by single small pods, of all that are asked for."""
    part_node: int = 0
    """Gangs whose pods take 2 or 4 GPUs."""
    required: int = 0
    """Gangs that have to lie in one domain of the innermost level that holds so many nodes."""
    classes: int = 1
    """Priority classes, a number, equally likely."""
    pools: int = 1
    """1 or 2, a number; the first five of every eight leaves are of the first pool."""
    closed: int = 0
    """Nodes drained, anywhere."""
    churn: int = 0
    """GPUs in use by jobs left over when many have come and gone."""

    @property
    def num_nodes(self) -> int:
        return prod(self.fabric)


def coupled(recipe: Recipe) -> Request:
    """Return the request of a recipe. Costs well under a second for 8,192 nodes."""
    draw = Random(recipe.seed)
    spec, nodes = _cluster(recipe, draw)
    running = _left_by_churn(recipe, nodes, draw) if recipe.churn else ()
    return Request(
        name=recipe.name, fabric=spec, nodes=nodes, allocations=running, jobs=_waiting(recipe, nodes, running, draw)
    )


def write(recipes: tuple[Recipe, ...], folder: str | Path) -> None:
    """Write every recipe's request to `folder`/<name>.json.gz."""
    for recipe in recipes:
        save(coupled(recipe), Path(folder) / f"{recipe.name}.json.gz")


def _cluster(recipe: Recipe, draw: Random) -> tuple[FabricSpec, tuple[Node, ...]]:
    *outer, leaves, nodes_per_leaf = recipe.fabric
    if len(outer) == 1:
        spec, nodes = leaf_spine(spines=outer[0], leaves=leaves, nodes_per_leaf=nodes_per_leaf, gpus=GPUS)
    else:
        spec, nodes = fat_tree(cores=outer[0], spines=outer[1], leaves=leaves, nodes_per_leaf=nodes_per_leaf, gpus=GPUS)
    changed = []
    for i, node in enumerate(nodes):
        fields: dict[str, object] = {}
        if recipe.pools > 1:
            fields["pools"] = (_POOLS[i // nodes_per_leaf % 8 > 4],)
        if recipe.closed and draw.random() * 100 < recipe.closed:
            fields["schedulable"] = False
        changed.append(node.model_copy(update=fields) if fields else node)
    return spec, tuple(changed)


# -- what waits ------------------------------------------------------------------------------------


def _waiting(recipe: Recipe, nodes: tuple[Node, ...], running: tuple[Allocation, ...], draw: Random) -> tuple[Job, ...]:
    """Return gangs and small pods, per pool as many as `fill` says, in an order drawn at random."""
    used = {hold.node for alloc in running for hold in alloc.holds}
    jobs: list[Job] = []
    for pool in sorted({node.pools[0] for node in nodes}):
        free = sum(node.gpus for node in nodes if node.schedulable and node.pools[0] == pool and node.name not in used)
        asked = free * recipe.fill // 100
        small = asked * recipe.small // 100
        while small > 0:
            gpus = min(small, draw.choice(SMALL))
            jobs.append(_job(f"pod-{len(jobs):04}", 1, gpus, pool, recipe, draw))
            small -= gpus
            asked -= gpus
        while asked >= GPUS:
            size = min(asked // GPUS, MIXES[recipe.mix](draw, recipe.num_nodes > 4096))
            jobs.append(_gang(f"gang-{len(jobs):04}", size, pool, recipe, draw))
            asked -= sum(podset.count * podset.gpus for podset in jobs[-1].podsets)
        jobs += [_job(f"pod-{len(jobs) + i:04}", 1, 1, pool, recipe, draw) for i in range(asked)]
    draw.shuffle(jobs)
    return tuple(jobs)


def _gang(name: str, size: int, pool: str, recipe: Recipe, draw: Random) -> Job:
    """Return a gang of `size` whole nodes, or of smaller pods that take as much less at most one pod."""
    pods, gpus = size, GPUS
    if draw.random() * 100 < recipe.part_node:
        gpus = draw.choice((2, 4))
        pods = max(2, size * GPUS // gpus - draw.randint(0, 1))
    level = _innermost(size, recipe) if draw.random() * 100 < recipe.required else None
    return _job(name, pods, gpus, pool, recipe, draw, level)


def _job(
    name: str, pods: int, gpus: int, pool: str, recipe: Recipe, draw: Random, required_level: str | None = None
) -> Job:
    pools: tuple[str, ...] = ()
    if recipe.pools > 1 and draw.random() < 0.9:  # one in ten takes either
        pools = (pool,)
    podset = PodSet(count=pods, gpus=gpus, pools=pools, required_level=required_level)
    return Job(name=name, podsets=(podset,), priority=draw.randrange(recipe.classes))


def _innermost(size: int, recipe: Recipe) -> str | None:
    """Return the innermost level whose domains hold `size` nodes; None where none does."""
    names = ("leaf", "spine", "core")
    held = 1
    for name, number in zip(names, reversed(recipe.fabric), strict=False):
        held *= number
        if size <= held:
            return name
    return None


# -- what runs -------------------------------------------------------------------------------------


def _left_by_churn(recipe: Recipe, nodes: tuple[Node, ...], draw: Random) -> tuple[Allocation, ...]:
    """Return what is left of jobs that came and went: each placed first-fit by node name, each as likely to leave.

    The cluster is filled and half emptied again six times, then emptied until `churn` % are in use.
    """
    free = {node.name: node.gpus for node in nodes if node.schedulable}
    total = sum(free.values())
    running: list[tuple[str, dict[str, int]]] = []
    arrived = 0

    def leave(down_to: int) -> None:
        while running and total - sum(free.values()) > down_to:
            _, holds = running.pop(draw.randrange(len(running)))
            for node, gpus in holds.items():
                free[node] += gpus

    for _ in range(6):
        while True:
            arrived += 1
            holds = _first_fit(free, recipe, draw)
            if holds is None:
                break
            running.append((f"run-{arrived:05}", holds))
            for node, gpus in holds.items():
                free[node] -= gpus
        leave(total // 2)
    leave(total * recipe.churn // 100)
    return tuple(
        Allocation(job=name, holds=tuple(Hold(node=node, gpus=gpus) for node, gpus in holds.items()))
        for name, holds in sorted(running)
    )


def _first_fit(free: dict[str, int], recipe: Recipe, draw: Random) -> dict[str, int] | None:
    """Return GPUs per node for one job drawn: two in three are single small pods; None where it does not fit."""
    if draw.random() < 2 / 3:
        size, gpus = 1, draw.choice(SMALL)
    else:
        size, gpus = MIXES[recipe.mix](draw, recipe.num_nodes > 4096), GPUS
    found: dict[str, int] = {}
    for node, left in free.items():
        if left >= gpus:
            found[node] = gpus
            if len(found) == size:
                return found
    return None
