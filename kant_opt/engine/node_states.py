"""How many pods a node could take by itself, by which of the units on it (jobs, or the node's closure) are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kant_opt.engine.relaxed import opened
from kant_opt.engine.what_if import WhatIf
from kant_opt.fabric import build_fabric
from kant_opt.schema import Allocation, FabricSpec, Hold, Node, Request
from kant_opt.view import Cluster, Free, Ints, Part

_BITS = 6
"""Units of one node that are told apart; where there are more, the last bit stands for any of the rest."""


@dataclass(frozen=True)
class Group:
    """Units of a node that one bit stands for, and the jobs that hold less there once all of them are gone."""

    units: tuple[int, ...]
    jobs: frozenset[str] = frozenset()


@dataclass(eq=False)
class NodeStates:
    """`slots[k]` (N, M): pods of the k-th open part that fit on each node once the groups of a set of bits are gone.

    Rules between jobs, quotas and the gang's other parts are left aside, so it is never less than what really fits.
    """

    slots: tuple[Ints, ...]
    groups: Mapping[int, Sequence[Group]]
    """Node index -> its groups, one per bit."""

    @cached_property
    def useful(self) -> frozenset[int]:
        """Units that are part of some set that makes room for a pod on some node."""
        gains = np.any([(slots > slots[:, :1]).any(axis=1) for slots in self.slots], axis=0)
        return frozenset(
            unit for node, groups in self.groups.items() if gains[node] for group in groups for unit in group.units
        )

    @cached_property
    def touched(self) -> dict[int, tuple[Ints, Ints]]:
        """Unit -> (nodes, bit on each)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for node, groups in self.groups.items():
            for bit, group in enumerate(groups):
                for unit in group.units:
                    found.setdefault(unit, []).append((node, 1 << bit))
        arrays = {unit: np.array(pairs, dtype=np.int64).T for unit, pairs in found.items()}
        return {unit: (array[0], array[1]) for unit, array in arrays.items()}

    def without(self, units: frozenset[int]) -> tuple[Ints, ...]:
        """Return the slots per open part, (N,), once these units are gone."""
        size = len(self.slots[0])
        bits = np.zeros(size, dtype=np.int64)
        for unit in units:
            if unit in self.touched:
                nodes, values = self.touched[unit]
                bits[nodes] |= values
        return tuple(slots[np.arange(size), bits] for slots in self.slots)


def open_parts(case: WhatIf) -> list[Part]:
    """Return the gang's parts with pods to place, in the size without which it does not run."""
    gang = case.smallest_gang
    return [gang.parts[i] for i in gang.open_parts]


def opened_states(case: WhatIf) -> tuple[list[str], NodeStates]:
    """Return the closed nodes that would be eligible once opened, and what they could take then."""
    everything = opened(case.request, case.tree.index)
    parts = open_parts(case)
    eligible = [case.compile(everything).parts[i].eligible for i in case.smallest_gang.open_parts]
    gained = np.zeros(len(case.tree.names), dtype=bool)
    slots = []
    for part, mask in zip(parts, eligible, strict=True):
        gained |= mask & ~part.eligible
        now, then = (case.free.slots(part.shape, m).copy() for m in (part.eligible, mask))
        slots.append(np.stack([now, then], axis=1))
    nodes = np.flatnonzero(gained).tolist()
    groups = {node: (Group((unit,)),) for unit, node in enumerate(nodes)}
    return [case.tree.names[node] for node in nodes], NodeStates(tuple(slots), groups)


def emptied(case: WhatIf, groups: Mapping[int, Sequence[Group]]) -> NodeStates:
    """Return what nodes can take once some of what runs on them is gone. `groups`: node index -> who may go.

    Every state of a node is a node of its own in a request made for it, equal states one, so that what is free is
    worked out where it always is.
    """
    groups = {node: _merged(list(of)) for node, of in groups.items()}
    width = max((len(of) for of in groups.values()), default=0)
    on: dict[int, list[tuple[str, Hold]]] = {}
    for alloc in case.request.allocations:
        for hold in alloc.holds:
            on.setdefault(case.tree.index[hold.node], []).append((alloc.job, hold))
    states: dict[tuple[object, ...], int] = {}
    nodes: list[Node] = []
    holds: list[Hold] = []
    rows: list[tuple[int, int, int]] = []
    for node, of in groups.items():
        for bits in range(1, 1 << len(of)):
            gone = frozenset().union(*(group.jobs for bit, group in enumerate(of) if bits >> bit & 1))
            rest = [hold for job, hold in on.get(node, ()) if job not in gone]
            key = (_kind(case.cluster.nodes[node]), *map(_amounts, rest))
            if key not in states:
                states[key] = len(nodes)
                name = str(len(nodes))
                nodes.append(case.cluster.nodes[node].model_copy(update={"name": name, "path": ()}))
                holds += [hold.model_copy(update={"node": name}) for hold in rest]
            rows.append((node, bits, states[key]))
    free = _free(nodes, holds)
    everywhere = np.ones(len(nodes), dtype=bool)
    index = {name: i for i, name in enumerate(free.cluster.tree.names)}
    at = np.array([index[str(i)] for i in range(len(nodes))], dtype=np.int64)
    found = []
    for part in open_parts(case):
        now = case.free.slots(part.shape, part.eligible)
        slots = np.repeat(now[:, None], 1 << width, axis=1)
        if rows:
            node_of, bits_of, state_of = np.array(rows, dtype=np.int64).T
            then = free.slots(part.shape, everywhere)[at[state_of]]
            slots[node_of, bits_of] = np.where(part.eligible[node_of], then, 0)
        found.append(slots)
    return NodeStates(tuple(found), groups)


def _merged(groups: list[Group]) -> tuple[Group, ...]:
    if len(groups) <= _BITS:
        return tuple(groups)
    rest = groups[_BITS - 1 :]
    last = Group(tuple(u for g in rest for u in g.units), frozenset().union(*(g.jobs for g in rest)))
    return (*groups[: _BITS - 1], last)


def _free(nodes: Sequence[Node], holds: Sequence[Hold]) -> Free:
    allocations = (Allocation(job="rest", holds=tuple(holds)),) if holds else ()
    request = Request(fabric=FabricSpec(levels=()), nodes=tuple(nodes), allocations=allocations)
    return Free(Cluster(request, build_fabric(request.fabric, request.nodes)))


def _kind(node: Node) -> tuple[object, ...]:
    return (node.gpus, node.gpu_details, node.gpu_memory_mib, node.cpu_milli, node.memory_bytes, node.max_pods)


def _amounts(hold: Hold) -> tuple[object, ...]:
    share = (hold.gpu_milli, hold.gpu_memory_mib)
    return (hold.pods, hold.gpus, hold.gpu_indices, *share, hold.cpu_milli, hold.memory_bytes)
