"""How many pods a node could take by itself, by which of the units on it (jobs, or the node's closure) are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import gcd

import numpy as np

from kant_opt.engine.relaxed import opened
from kant_opt.engine.what_if import WhatIf
from kant_opt.fabric import build_fabric
from kant_opt.schema import Allocation, FabricSpec, Hold, Node, Request
from kant_opt.view import NOT_COUNTED, Cluster, Free, Ints, Part, Shape

_STATES = 64
"""States of one node that are told apart."""


@dataclass(frozen=True)
class Group:
    """Units that take the same from a node, and the jobs that hold less there once each is gone.

    How many of them are gone tells what is free. `blurred`: they are not alike, and one of them counts as all.
    """

    units: tuple[int, ...]
    jobs: tuple[frozenset[str], ...] = ()
    blurred: bool = False


@dataclass(eq=False)
class NodeStates:
    """`slots[k]` (N, S): pods of the k-th open part that fit on each node in each of its states.

    A state says how many units of each of the node's groups are gone; groups are the digits of its number, the first
    one the lowest. Rules between jobs, quotas and the gang's other parts are left aside, so it is never less than what
    really fits.
    """

    slots: tuple[Ints, ...]
    groups: Mapping[int, Sequence[Group]]

    @cached_property
    def useful(self) -> frozenset[int]:
        """Units that are part of some set that makes room for a pod on some node."""
        gains = np.any([(slots > slots[:, :1]).any(axis=1) for slots in self.slots], axis=0)
        return frozenset(
            unit for node, groups in self.groups.items() if gains[node] for group in groups for unit in group.units
        )

    @cached_property
    def touched(self) -> dict[int, tuple[Ints, Ints]]:
        """Unit -> (nodes, what its going adds to the number of each one's state)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for node, groups in self.groups.items():
            step = 1
            for group in groups:
                for unit in group.units:
                    found.setdefault(unit, []).append((node, step))
                step *= len(group.units) + 1
        arrays = {unit: np.array(pairs, dtype=np.int64).T for unit, pairs in found.items()}
        return {unit: (array[0], array[1]) for unit, array in arrays.items()}

    def without(self, units: Iterable[int]) -> tuple[Ints, ...]:
        """Return the slots per open part, (N,), once these units are gone."""
        size = len(self.slots[0])
        state = np.zeros(size, dtype=np.int64)
        for unit in units:
            if unit in self.touched:
                nodes, steps = self.touched[unit]
                state[nodes] += steps
        return tuple(slots[np.arange(size), state] for slots in self.slots)


def states_of(groups: Sequence[Group]) -> Iterator[tuple[int, ...]]:
    """Yield how many units of each group are gone in every state of a node, by the state's number."""
    for counts in product(*(range(len(group.units) + 1) for group in reversed(groups))):
        yield counts[::-1]


def open_parts(case: WhatIf) -> list[Part]:
    """Return the gang's parts with pods to place, in the size without which it does not run.

    Of several parts also all of them as one: so many GPUs in pieces that divide all pods.
    """
    gang = case.smallest_gang
    parts = [gang.parts[i] for i in gang.open_parts]
    piece = gcd(*(part.shape.gpus for part in parts))
    if len(parts) > 1 and piece and (case.cluster.pods == NOT_COUNTED).all():  # else a piece would count as a pod
        total = sum(part.target * part.shape.gpus for part in parts) // piece
        mask = np.any([part.eligible for part in parts], axis=0)
        bare = replace(parts[0], living={}, required=0, slices=(), spread=())
        parts.append(replace(bare, shape=Shape(piece, 0, 0, 0, 0), eligible=mask, target=total, least=total))
    return parts


def opened_states(case: WhatIf) -> tuple[list[str], NodeStates]:
    """Return the closed nodes that would be eligible once opened, and what they could take then."""
    slots = []
    gained = np.zeros(len(case.tree.names), dtype=bool)
    for part, then in zip(open_parts(case), open_parts(case.under(opened(case.request, case.tree.index))), strict=True):
        gained |= then.eligible & ~part.eligible
        slots.append(np.stack([case.free.slots(p.shape, p.eligible).copy() for p in (part, then)], axis=1))
    nodes = np.flatnonzero(gained).tolist()
    groups = {node: (Group((unit,)),) for unit, node in enumerate(nodes)}
    return [case.tree.names[node] for node in nodes], NodeStates(tuple(slots), groups)


def emptied(case: WhatIf, leaving: Mapping[int, Sequence[tuple[int, frozenset[str]]]]) -> NodeStates:
    """Return what nodes can take once some of what runs on them is gone. `leaving`: node index -> (unit, its jobs).

    Every state of a node is a node of its own in a request made for it, equal states one, so that what is free is
    worked out where it always is.
    """
    on: dict[int, list[tuple[str, Hold]]] = {}
    for alloc in case.request.allocations:
        for hold in alloc.holds:
            on.setdefault(case.tree.index[hold.node], []).append((alloc.job, hold))
    states: dict[tuple[object, ...], int] = {}
    nodes: list[Node] = []
    holds: list[Hold] = []
    rows: list[tuple[int, int, int]] = []
    all_groups = {}
    for node, units in leaving.items():
        kind = _kind(case.cluster.nodes[node])
        amounts = _amounts(case.cluster.nodes[node], on.get(node, []))
        groups = all_groups[node] = _groups(units, amounts)
        for number, counts in enumerate(states_of(groups)):
            gone = {
                job
                for group, count in zip(groups, counts, strict=True)
                for jobs in group.jobs[: len(group.jobs) if group.blurred and count else count]
                for job in jobs
            }
            rest = [(amount, hold) for job, amount, hold in amounts if job not in gone]
            key = (kind, *(amount for amount, _ in rest))
            if key not in states:
                states[key] = len(nodes)
                name = str(len(nodes))
                nodes.append(case.cluster.nodes[node].model_copy(update={"name": name, "path": ()}))
                holds += [hold.model_copy(update={"node": name}) for _, hold in rest]
            rows.append((node, number, states[key]))
    free = _free(nodes, holds)
    at = np.array([free.cluster.tree.index[str(i)] for i in range(len(nodes))], dtype=np.int64)
    everywhere = np.ones(len(nodes), dtype=bool)
    width = max((number for _, number, _ in rows), default=0) + 1
    found = []
    for part in open_parts(case):
        slots = np.repeat(case.free.slots(part.shape, part.eligible)[:, None], width, axis=1)
        if rows:
            node_of, number_of, state_of = np.array(rows, dtype=np.int64).T
            slots[node_of, number_of] = np.where(
                part.eligible[node_of], free.slots(part.shape, everywhere)[at[state_of]], 0
            )
        found.append(slots)
    return NodeStates(tuple(found), all_groups)


Amounts = list[tuple[str, tuple[object, ...], Hold]]
"""(job, what the hold takes, the hold) of one node."""


def _groups(units: Sequence[tuple[int, frozenset[str]]], amounts: Amounts) -> list[Group]:
    """Return the units of a node, those that take the same together; what is too much to tell apart in one group."""
    alike: dict[tuple[object, ...], list[tuple[int, frozenset[str]]]] = {}
    for unit, jobs in units:
        taken = tuple(amount for job, amount, _ in amounts if job in jobs)
        alike.setdefault(taken, []).append((unit, jobs))
    found: list[Group] = []
    rest: list[tuple[int, frozenset[str]]] = []
    states = 1
    for members in alike.values():
        if states * (len(members) + 1) > _STATES:
            rest += members
            continue
        states *= len(members) + 1
        found.append(_group(members))
    if rest:
        found.append(_group(rest, blurred=True))
    return found


def _group(members: Sequence[tuple[int, frozenset[str]]], *, blurred: bool = False) -> Group:
    return Group(tuple(unit for unit, _ in members), tuple(jobs for _, jobs in members), blurred)


def _amounts(node: Node, on: Sequence[tuple[str, Hold]]) -> Amounts:
    """Return what each hold takes, without GPU indices where only their number matters."""
    healthy = set(range(node.gpus)) - {gpu.index for gpu in node.gpu_details if not gpu.healthy}
    named = [i for _, hold in on for i in hold.gpu_indices]
    plain = (
        all(hold.gpu_milli is None and hold.gpu_memory_mib is None for _, hold in on)
        and sum(hold.gpus for _, hold in on) <= len(healthy)
        and len(set(named)) == len(named)
        and healthy.issuperset(named)
    )
    found: Amounts = []
    for job, hold in on:
        bare = hold.model_copy(update={"gpu_indices": ()}) if plain and hold.gpu_indices else hold
        share = (bare.gpu_milli, bare.gpu_memory_mib)
        taken = (bare.pods, bare.gpus, bare.gpu_indices, *share, bare.cpu_milli, bare.memory_bytes)
        found.append((job, taken, bare))
    return found


def _free(nodes: Sequence[Node], holds: Sequence[Hold]) -> Free:
    allocations = (Allocation(job="rest", holds=tuple(holds)),) if holds else ()
    request = Request(fabric=FabricSpec(levels=()), nodes=tuple(nodes), allocations=allocations)
    return Free(Cluster(request, build_fabric(request.fabric, request.nodes)))


def _kind(node: Node) -> tuple[object, ...]:
    return (node.gpus, node.gpu_details, node.gpu_memory_mib, node.cpu_milli, node.memory_bytes, node.max_pods)
