"""Nothing on a node is given away twice: GPUs, CPU, memory, pods."""

from __future__ import annotations

from functools import partial
from math import gcd

from kant_opt.formulation.bundles import Bundle
from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Terms, Values, Vars
from kant_opt.view import NOT_COUNTED


@CONSTRAINTS.register("capacity")
def capacity(v: Vars) -> None:
    """Per node: what new pods take of each resource stays within what is free of it; per GPU where shares may come.

    Per class of nodes: its filling says which pods fit.
    """
    free, cluster = v.free, v.cluster
    shared = set(v.shared_nodes)
    for n, here in v.on_node().items():
        if n in v.classes:
            v.classes[n].filling.write(v.program, str(n), _by_shape(v, n, here))
            continue
        shapes = [(v.parts[k].shape, var) for k, var in here]
        if cluster.cpu[n] < NOT_COUNTED:
            _within(v, f"cpu_{n}", {var: shape.cpu for shape, var in shapes}, int(free.cpu[n]))
        if cluster.memory[n] < NOT_COUNTED:
            _within(v, f"memory_{n}", {var: shape.memory for shape, var in shapes}, int(free.memory[n]))
        if cluster.pods[n] < NOT_COUNTED:
            _within(v, f"max_pods_{n}", {var: 1 for _, var in shapes}, int(free.pods[n]))
        whole = {var: shape.gpus for shape, var in shapes if shape.gpus}
        if n in shared:
            _shared_gpus(v, n, here, whole)
        else:
            _within(v, f"gpus_{n}", whole, int(free.whole[n]))


def _by_shape(v: Vars, n: int, here: list[tuple[int, int]]) -> list[Terms]:
    """Return the bundles of each shape that come to the class of node n, as sums."""
    found: dict[Bundle, Terms] = {bundle: {} for bundle in v.classes[n].bundles}
    for k, var in here:
        bundle = Bundle(v.parts[k].shape, v.bundles[k])
        if bundle.pods > 1:
            pods, size = var, bundle.pods
            var = v.derived(f"bundles_{k}_{n}", v.program.upper[pods] // size, partial(_whole, pods, size))
            v.program.row(f"bundles_{k}_{n}", {pods: 1, var: -size}, Sense.EQ, 0)
        found[bundle][var] = 1
    return list(found.values())


def _whole(pods: int, size: int, values: Values) -> int:
    return values[pods] // size


def _shared_gpus(v: Vars, n: int, here: list[tuple[int, int]], whole: Terms) -> None:
    """Each share lies on a GPU, shares add up to what is free of it, and to nothing where it is taken whole."""
    unit = int(v.cluster.unit[n])
    taken: Terms = {}
    for k, var in here:
        if v.parts[k].shape.has_share:
            on = {v.shares[k, n, g]: 1 for g in v.gpus(n) if (k, n, g) in v.shares}
            v.program.row(f"on_gpus_{k}_{n}", {**on, var: -1}, Sense.EQ, 0)
    for g in v.gpus(n):
        row = {v.shares[k, n, g]: v.share(k, n) for k, _ in here if (k, n, g) in v.shares}
        if (n, g) in v.whole:
            row[v.whole[n, g]] = unit
            taken[v.whole[n, g]] = -1
        _within(v, f"gpu_{n}_{g}", row, int(v.free.units[n, g]))
    if whole:
        v.program.row(f"gpus_{n}", {**whole, **taken}, Sense.EQ, 0)


def _within(v: Vars, name: str, terms: Terms, room: int) -> None:
    """Add terms <= room, divided by what all coefficients share: bytes would be beyond what solvers count exactly."""
    terms = {var: c for var, c in terms.items() if c}
    if terms:
        step = gcd(*terms.values())
        v.program.row(name, {var: c // step for var, c in terms.items()}, Sense.LE, room // step)
