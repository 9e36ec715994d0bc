"""A fabric in numbers, and whether a request speaks of its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric.fabric import Fabric
from kant_opt.schema import Node, Request


@dataclass(frozen=True)
class Description:
    """How large a fabric is; the maps run from the outermost level to the innermost above the node."""

    nodes: int
    gpus: int
    """GPUs installed, healthy or not."""
    domains: Mapping[str, int]
    """Number of domains per level."""
    nodes_per_domain: Mapping[str, tuple[int, int]]
    """Nodes of the smallest and of the largest domain per level."""


def describe(fabric: Fabric, nodes: Sequence[Node]) -> Description:
    """Return the size of `fabric` with `nodes` as its nodes.

    >>> from kant_opt.fabric import build_fabric, irregular
    >>> spec, nodes = irregular(leaf_sizes=(5, 3, 8))
    >>> describe(build_fabric(spec, nodes), nodes).nodes_per_domain
    {'spine': (16, 16), 'leaf': (3, 8)}
    """
    sizes = {level: [len(fabric.nodes_of(d)) for d in fabric.domains(level)] for level in fabric.levels[:-1]}
    return Description(
        nodes=len(fabric.nodes),
        gpus=sum(node.gpus for node in nodes),
        domains={level: len(found) for level, found in sizes.items()},
        nodes_per_domain={level: (min(found, default=0), max(found, default=0)) for level, found in sizes.items()},
    )


def check_levels(request: Request, fabric: Fabric) -> None:
    """Raise UnknownName where `request` names a level that `fabric` has not, InputError where slices go outwards.

    A request whose levels are given has been checked already; this is for graph fabrics, whose levels are known only
    once derived.
    """
    for place, level in request.levels_named():
        if level not in fabric.levels:
            raise UnknownName("level", level, fabric.levels, place=place)
    for level in request.objective.traffic_weights:
        if level not in fabric.levels:
            raise UnknownName("level", level, fabric.levels, place="objective.traffic_weights")
    for i, job in enumerate(request.jobs):
        for k, podset in enumerate(job.podsets):
            slices = [piece.level for piece in podset.slices]
            depths = [fabric.depth(level) for level in slices]
            place = f"jobs.{i}.podsets.{k}.slices"
            if depths != sorted(set(depths)):
                raise InputError(
                    f"job {job.name!r} has slices of the levels {', '.join(slices)}",
                    place=place,
                    way_out="slices go from outer to inner levels, each level once",
                )
            if podset.required_level and slices and depths[0] < fabric.depth(podset.required_level):
                raise InputError(
                    f"job {job.name!r}: slice level {slices[0]!r} lies outside the required level "
                    f"{podset.required_level!r}",
                    place=place,
                    way_out="a slice is inside it",
                )
