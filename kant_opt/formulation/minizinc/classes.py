"""Alike nodes for `models/classes.mzn`, and the requests for which that twin is exact."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import pairwise

from kant_opt.errors import InputError
from kant_opt.fabric import Fabric
from kant_opt.formulation.minizinc.tables import Cells, Tables, Values
from kant_opt.schema import NODE_LEVEL, Request

_WAY_OUT = "export the per-node form, which is exact for every request"


def check_classes_are_exact(request: Request, fabric: Fabric) -> None:
    """Raise InputError naming the first thing in `request` for which classes of nodes are not enough."""
    reason = next(_what_needs_nodes(request, fabric), "")
    if reason:
        raise InputError(f"the class form is not exact where {reason}", way_out=_WAY_OUT)


def alike_nodes(tables: Tables) -> Cells:
    """Return the nodes in classes: of one innermost domain, and alike in all that rules and terms ask of a node."""
    nodes = tables.fabric.nodes
    each = [(node,) for node in nodes]
    rows = [tables.eligible(each).numbers, *(tables.charges(cap, each) for cap in tables.caps)]
    found: dict[Hashable, list[str]] = {}
    for i, name in enumerate(nodes):
        columns = tuple(tuple(row[i :: len(nodes)]) for row in rows)
        key = (tables.fabric.paths[name][:-1], _state(tables, name), columns)
        found.setdefault(key, []).append(name)
    return list(found.values())


def class_values(tables: Tables, cells: Cells) -> Values:
    """Return what `classes.mzn` asks for beyond `rules.mzn`."""
    states = [_state(tables, cell[0]) for cell in cells]
    return {
        "num_nodes": [len(cell) for cell in cells],
        "free": [free for free, _, _, _ in states],
        "counted": [counted for _, counted, _, _ in states],
        "begun": [begun for _, _, begun, _ in states],
        "in_part": [in_part for _, _, _, in_part in states],
        "whole": tables.whole(),
    }


def _state(tables: Tables, name: str) -> tuple[int, bool, bool, bool]:
    """Return free GPUs, and whether the node counts as broken if used in part, is begun, has a GPU used in part."""
    room = tables.gpu_room[name]
    return room.free, tables.nodes[name].schedulable and bool(room.used), any(room.used), room.in_part


def _what_needs_nodes(request: Request, fabric: Fabric) -> Iterator[str]:
    podsets = [(job, podset) for job in request.jobs for podset in job.podsets]
    sizes = sorted({podset.gpus for _, podset in podsets if podset.gpus})
    for small, large in pairwise(sizes):
        if large % small:
            yield f"pods of {small} and of {large} GPUs meet: {small} does not divide {large}"
    for job, podset in podsets:
        if podset.has_share:
            yield f"pods of job {job.name!r} take shares of a GPU"
    for resource, asked in (("cpu_milli", "CPU"), ("memory_bytes", "memory")):
        counts = any(getattr(node, resource) is not None for node in request.nodes)
        if counts and any(getattr(podset, resource) for _, podset in podsets):
            yield f"pods ask for {asked} and nodes count it"
    if any(node.max_pods is not None for node in request.nodes):
        yield "nodes limit the number of pods"
    for place, level in request.levels_named():
        if level == NODE_LEVEL:
            yield f"a rule names the level 'node' ({place})"
    if fabric.separate_roots and len(fabric.levels) == 1:
        yield "every node is a root of its own"
