"""Instances by generator: whole-node gangs that fill a large cluster, so that each leaf left over cuts one of them.

10,240 and 102,400 nodes make files of many megabytes; a seed makes the same request on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kant_opt.fabric.generators import leaf_spine
from kant_opt.schema import Job, PodSet, Request

_SIZES = {
    "odd": (1, 2, 3, 3, 5, 5, 6, 7, 9, 11, 12, 13, 20, 24, 40),
    "even": (2, 4, 6, 8, 10, 12, 14, 20, 26, 36, 54),
}
"""Nodes of a gang, each drawn with equal weight."""


@dataclass(frozen=True)
class SpansRecipe:
    """What one instance is made from: spines x 32 leaves x 32 nodes of 8 GPUs."""

    name: str
    why: str
    """What it is hard for."""
    seed: int
    spines: int
    mix: str
    fill: int
    """Nodes asked for, in % of all."""


_RECIPES = (
    SpansRecipe("spans/10k-odd-full", "10,240 nodes full of gangs of odd sizes: many must be cut", 1, 10, "odd", 100),
    SpansRecipe("spans/10k-odd-tight", "10,240 nodes, odd sizes, little room", 2, 10, "odd", 97),
    SpansRecipe("spans/10k-even-over", "10,240 nodes, even sizes, more than fits", 3, 10, "even", 110),
    SpansRecipe("spans/100k-odd-full", "102,400 nodes: the same at ten times the size", 4, 100, "odd", 100),
)
SPANS = {recipe.name: recipe for recipe in _RECIPES}


def spans(recipe: SpansRecipe) -> Request:
    """Return the request of a recipe; 102,400 nodes take some seconds."""
    draw = Random(recipe.seed)  # noqa: S311  # lots for data, not for secrets
    spec, nodes = leaf_spine(spines=recipe.spines, leaves=32, nodes_per_leaf=32)
    left = len(nodes) * recipe.fill // 100
    jobs: list[Job] = []
    while left:
        size = min(left, draw.choice(_SIZES[recipe.mix]))
        jobs.append(Job(name=f"gang-{len(jobs):05}", podsets=(PodSet(count=size, gpus=8),)))
        left -= size
    draw.shuffle(jobs)
    return Request(name=recipe.name, fabric=spec, nodes=nodes, jobs=tuple(jobs))
