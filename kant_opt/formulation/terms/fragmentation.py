"""Terms `broken_nodes` and `broken_leaves`: what is neither empty nor full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import gcd

import numpy as np

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import TERMS
from kant_opt.formulation.vars import Terms, Values, Vars
from kant_opt.view import NOT_COUNTED


@TERMS.register("broken_nodes")
def broken_nodes(v: Vars) -> dict[str, tuple[Terms, int]]:
    """Return used nodes less full ones, of the schedulable nodes with healthy GPUs."""
    terms: Terms = {}
    constant = int(v.free.is_broken().sum())
    used, on_node = v.free.is_used(), _gpu_pods(v)
    for nodes in v.classes.values():
        for var, coefficient in nodes.filling.used.items():
            terms[var] = terms.get(var, 0) + coefficient
        for var, coefficient in nodes.filling.full.items():
            terms[var] = terms.get(var, 0) - coefficient
    for n in np.flatnonzero(v.cluster.schedulable & (v.free.spare > 0)).tolist():
        if n in on_node:
            if not used[n]:
                terms[node_used(v, n, on_node[n])] = 1
            if _can_fill(v, n, on_node[n]):
                terms[_node_full(v, n, on_node[n])] = -1
    return {"broken_nodes": (terms, constant)}


@TERMS.register("broken_leaves")
def broken_leaves(v: Vars) -> dict[str, tuple[Terms, int]]:
    """Return leaves with a used node less leaves with all nodes used, nodes as in `broken_nodes`."""
    terms: Terms = {}
    constant = 0
    depth = v.tree.leaf_depth
    if depth == 0:
        return {"broken_leaves": (terms, constant)}
    counted = v.cluster.schedulable & (v.free.capacity > 0)
    is_used, on_node = v.free.is_used(), _gpu_pods(v)
    for leaf in range(v.tree.num_domains(depth)):
        run = v.tree.nodes_of(depth, leaf)
        nodes = (np.flatnonzero(counted[run]) + run.start).tolist()
        idle = [n for n in nodes if not is_used[n]]
        can_be = [*_used_of_classes(v, idle), *(({node_used(v, n, on_node[n]): 1}, 1) for n in idle if n in on_node)]
        if len(idle) < len(nodes):
            constant += bool(idle)
        elif can_be:
            terms[_any(v, leaf, can_be)] = 1
        if idle and sum(most for _, most in can_be) == len(idle):
            terms[_all(v, leaf, can_be)] = -1
    return {"broken_leaves": (terms, constant)}


Used = tuple[Terms, int]
"""How many nodes get used, as a sum, and at most."""


def _used_of_classes(v: Vars, idle: list[int]) -> Iterator[Used]:
    """Yield the idle nodes of each class that get used."""
    inside = Counter(v.first_of[n] for n in idle if n in v.first_of)
    for first, number in inside.items():
        if terms := v.classes[first].filling.used:
            yield terms, number


def _gpu_pods(v: Vars) -> dict[int, Terms]:
    """Return node -> what new pods take of its GPUs, in parts as in `Cluster.unit`; nodes of classes left out."""
    found = {}
    for n, here in v.on_node().items():
        if n in v.classes:
            continue
        terms = {var: units for k, var in here if (units := v.gpu_units(k, n))}
        if terms:
            found[n] = terms
    return found


def node_used(v: Vars, n: int, takes: Terms) -> int:
    """Return a binary that is 1 exactly where a node that is idle now gets a pod with GPUs. Made once."""
    if n not in v.node_used:
        var = v.derived(f"used_{n}", 1, lambda values: int(any(values[i] for i in takes)))
        pods = dict.fromkeys(takes, 1)
        with v.program.part(""):
            v.program.row(f"used_{n}_least", {**pods, var: -1}, Sense.GE, 0)
            most = sum(v.program.upper[i] for i in takes)
            room = int(v.free.spare[n]) // min(takes.values()) if not v.everywhere else most
            v.program.row(f"used_{n}_most", {**pods, var: -min(room, most)}, Sense.LE, 0)
            if not v.everywhere:
                _room_where_used(v, n, takes, var)
        v.node_used[n] = var
    return v.node_used[n]


def _room_where_used(v: Vars, n: int, takes: Terms, used: int) -> None:
    """Add: what pods with GPUs take of the node's GPUs and CPU <= what is free x used.

    Follows from the other rows for whole values; in the LP it is what tells that nodes are needed at all.
    """
    needs = {"gpus": (takes, int(v.free.spare[n]))}
    if v.cluster.cpu[n] < NOT_COUNTED:
        needs["cpu"] = (_cpu(v, n, takes), int(v.free.cpu[n]))
    for resource, (terms, free) in needs.items():
        if step := gcd(*terms.values()):
            row = {var: units // step for var, units in terms.items()}
            v.program.row(f"used_{n}_{resource}", {**row, used: -(free // step)}, Sense.LE, 0)


def _can_fill(v: Vars, n: int, takes: Terms) -> bool:
    """Return whether the node's CPU could do for pods on all its free GPUs, if all asked for as little as any does."""
    if v.everywhere or v.cluster.cpu[n] >= NOT_COUNTED:
        return True
    spare, free = int(v.free.spare[n]), int(v.free.cpu[n])
    return any(cpu * spare <= free * takes[var] for var, cpu in _cpu(v, n, takes).items())


def _cpu(v: Vars, n: int, takes: Terms) -> Terms:
    """Return the CPU of one pod for each variable of `takes`."""
    return {nodes[n]: part.shape.cpu for part, nodes in zip(v.parts, v.pods, strict=True) if nodes.get(n) in takes}


def _node_full(v: Vars, n: int, takes: Terms) -> int:
    """Return a binary that may be 1 only where new pods take all that is free of the node's GPUs."""
    spare = int(v.free.spare[n])
    step = gcd(spare, *takes.values())
    terms = {var: units // step for var, units in takes.items()}
    need = spare // step

    def is_full(values: Values) -> int:
        return int(sum(c * values[i] for i, c in terms.items()) >= need)

    var = v.derived(f"full_{n}", 1, is_full)
    with v.program.part(""):
        v.program.row(f"full_{n}_least", {**terms, var: -need}, Sense.GE, 0)
    return var


def _any(v: Vars, leaf: int, used: list[Used]) -> int:
    var = v.derived(f"leaf_used_{leaf}", 1, lambda values: int(any(_sum(values, terms) for terms, _ in used)))
    with v.program.part(""):
        for i, (terms, most) in enumerate(used):
            v.program.row(f"leaf_used_{leaf}_{i}", {**terms, var: -most}, Sense.LE, 0)
    return var


def _all(v: Vars, leaf: int, used: list[Used]) -> int:
    var = v.derived(f"leaf_full_{leaf}", 1, lambda values: int(all(_sum(values, t) == most for t, most in used)))
    with v.program.part(""):
        for i, (terms, most) in enumerate(used):
            v.program.row(f"leaf_full_{leaf}_{i}", {**terms, var: -most}, Sense.GE, 0)
    return var


def _sum(values: Values, terms: Terms) -> int:
    return sum(c * values[i] for i, c in terms.items())
