"""What may change places: nodes that were alike before the answer, with all that it put on them.

Where nodes are alike, the load of one (the pods that the answer put there) may go to any other. A load without traffic
is *loose* and goes anywhere by itself; the loads of one gang are moved together. Pods without traffic that share a
node with a gang's go along.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kant_opt.backends.base import Answer, Task
from kant_opt.backends.placer import Taken
from kant_opt.view import Gang, Mask

Load = list[tuple[int, Taken]]
"""(position in `Answer.taken`, pods) of one node."""
Kind = tuple[object, ...]


@dataclass(frozen=True)
class Loads:
    """Nodes whose loads are moved as one: those of a gang, or one that is loose (`gang` is None)."""

    gang: Gang | None
    nodes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Area:
    """Nodes alike, (N,), each empty or under a load of one of `items`; any load may go to any of them."""

    nodes: Mask
    items: list[Loads]
    loads: dict[int, Load]
    unused: bool
    """Whether nobody else uses GPUs of these nodes and every load does, so that a load moves what is unused too."""


class _Seen(NamedTuple):
    """What may be moved in an answer as it is now."""

    loads: dict[int, Load]
    gangs: dict[tuple[Kind, bytes], list[Loads]]
    """By the kind of their nodes and the nodes that they may use."""
    loose: list[int]
    """Nodes whose loads are loose."""


class Movable:
    """Made before anything is placed, asked when everything is: `areas`, then `move`."""

    def __init__(self, task: Task) -> None:
        free = task.free
        self.task = task
        self.whole, self.spare, self.units = free.whole.copy(), free.spare.copy(), free.units.copy()
        self.cpu, self.memory, self.pods = free.cpu.copy(), free.memory.copy(), free.pods.copy()
        self.settled = _settled(task)
        self.moves = 0
        """Times that something was moved."""
        keeping = any(job.exclusive_level for job in task.cluster.keeping_away)
        self.someone_is_alone = keeping or bool(task.cluster.exclusive)
        """Whether a job keeps domains for itself, which all others would have to mind on their way."""

    def areas(self, answer: Answer) -> Iterator[Area]:
        """Yield areas, those with most nodes under gangs first. Each is read off the answer as it is then, so that the
        loads of one may be moved before the next is asked for.
        """
        if self.someone_is_alone or self.task.deadline.passed:
            return
        seen, moves = self._look(answer), self.moves
        size = {key: sum(len(item.nodes) for item in items) for key, items in seen.gangs.items()}
        for key in sorted(size, key=lambda key: (-size[key], repr(key[0]), key[1])):
            if self.moves != moves:
                seen, moves = self._look(answer), self.moves
            area = self._area(key, seen)
            if area.items:
                yield area

    def _look(self, answer: Answer) -> _Seen:
        """Return what may be moved as the answer is now. Costs a pass over pods and, per gang, one over the nodes."""
        fixed, loads = self._fixed(answer), _loads(answer)
        loose = [
            node
            for node, load in sorted(loads.items())
            if all(i not in fixed and self._is_loose(t) for i, t in load)
            and any(t.part.shape.uses_gpu for _, t in load)
        ]
        return _Seen(loads, self._groups(answer, loads, fixed), loose)

    def _groups(self, answer: Answer, loads: dict[int, Load], fixed: set[int]) -> dict[tuple[Kind, bytes], list[Loads]]:
        """Return the gangs that may be moved, by the kind of their nodes and the nodes that they may use."""
        tied = set[int]()
        for load in loads.values():
            gangs = {i for i, t in load if not self._is_loose(t)}
            if len(gangs) > 1 or any(i in fixed for i, _ in load):
                tied |= gangs
        found: dict[tuple[Kind, bytes], list[Loads]] = {}
        for i, (gang, taken) in enumerate(answer.taken):
            if i in fixed or i in tied or not taken or all(map(self._is_loose, taken)):
                continue
            nodes = tuple(sorted({t.node for t in taken}))
            kinds = {self._kind(node) for node in nodes}
            talk = gang.jobs[0].communication  # without any, where it lies costs nothing, so it stays
            if len(kinds) == 1 and (talk == "ring" or (talk == "all_to_all" and _is_even(taken))):
                mask: Mask = np.logical_and.reduce([gang.parts[k].eligible for k in gang.open_parts])
                found.setdefault((kinds.pop(), mask.tobytes()), []).append(Loads(gang, nodes))
        return found

    def _fixed(self, answer: Answer) -> set[int]:
        return {i for i, (gang, _) in enumerate(answer.taken) if not self.may_move(gang)}

    def may_move(self, gang: Gang) -> bool:
        """Return whether no rule but a common domain binds the gang's pods to where they are."""
        tree = self.task.cluster.tree
        everyone = frozenset(gang.open_parts)
        return (
            not self.someone_is_alone
            and len(gang.jobs) == 1
            and gang.jobs[0].name not in self.settled
            and not gang.apart
            and all(scope >= everyone for _, scope in gang.scopes)
            and gang.common_depth <= tree.leaf_depth
            and not any(p.living or p.slices or p.spread or p.podset.balance for p in gang.parts)
            and all(p.preferred < tree.node_depth for p in gang.parts)
        )

    def _is_loose(self, taken: Taken) -> bool:
        """Return whether these pods may go anywhere, one without the other, and cause no traffic there."""
        job = taken.part.job
        one_root = self.task.cluster.tree.fabric.separate_roots and not job.may_span_fabrics
        bound = one_root or job.together or any(podset.required_level for podset in job.podsets)
        return sum(podset.count for podset in job.podsets) == 1 or (job.communication == "none" and not bound)

    def _kind(self, node: int) -> Kind:
        pools = self.task.cluster.nodes[node].pools if self.task.quotas else ()
        sizes = (self.whole, self.spare, self.task.free.capacity, self.task.cluster.unit)
        return *(int(size[node]) for size in sizes), pools

    def _alike(self, kind: Kind) -> Mask:
        whole, spare, capacity, unit, pools = kind
        nodes: Mask = (self.whole == whole) & (self.spare == spare) & (self.task.free.capacity == capacity)
        nodes &= self.task.cluster.unit == unit
        if pools:
            nodes &= np.fromiter((node.pools == pools for node in self.task.cluster.nodes), np.bool_, len(nodes))
        return nodes

    def _area(self, key: tuple[Kind, bytes], seen: _Seen) -> Area:
        """Return the area of some gangs, with all loose loads in it that may go anywhere there."""
        kind, allowed = key
        loads = seen.loads
        nodes = self._alike(kind) & np.frombuffer(allowed, dtype=np.bool_)
        items = [*seen.gangs[key], *(Loads(None, (node,)) for node in seen.loose if nodes[node])]
        nodes = self._roomy(nodes, [loads[node] for item in items for node in item.nodes if nodes[node]])
        one_row = bool((self.units[nodes] == self.units[nodes][:1]).all())

        def fits(item: Loads) -> bool:
            pods = [t for node in item.nodes for _, t in loads[node]]
            everywhere = all(not (nodes & ~part.eligible).any() for part in {id(t.part): t.part for t in pods}.values())
            any_row = one_row or not any(t.part.shape.has_share for t in pods)
            return everywhere and any_row and bool(nodes[list(item.nodes)].all())

        items = [item for item in items if fits(item)]
        nodes = nodes.copy()
        nodes[sorted(loads.keys() - {node for item in items for node in item.nodes})] = False
        on_them = {node: loads[node] for item in items for node in item.nodes}
        unused = bool((self.spare == self.task.free.capacity)[nodes].all())
        unused = unused and all(any(t.part.shape.uses_gpu for _, t in load) for load in on_them.values())
        return Area(nodes, items, on_them, unused)

    def _roomy(self, nodes: Mask, loads: Sequence[Load]) -> Mask:
        """Return the nodes that have CPU, memory and pods for every one of the loads."""
        most = [0, 0, 0]
        for load in loads:
            for k in range(3):
                most[k] = max(most[k], sum(t.pods * (t.part.shape.cpu, t.part.shape.memory, 1)[k] for _, t in load))
        roomy: Mask = nodes & (self.cpu >= most[0]) & (self.memory >= most[1]) & (self.pods >= most[2])
        return roomy

    def move(self, answer: Answer, area: Area, new_nodes: Sequence[Sequence[int]]) -> None:
        """Put every item's loads on new nodes of the area, item by item; room is given back and taken."""
        free = self.task.free
        where = {
            old: new
            for item, nodes in zip(area.items, new_nodes, strict=True)
            for old, new in _paired(item.nodes, nodes)
        }
        changed = {old: new for old, new in where.items() if old != new}
        self.moves += bool(changed)
        for old in changed:
            for _, t in area.loads[old]:
                free.release(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus)
        moved: dict[int, dict[int, list[Taken]]] = {}
        for old, new in sorted(changed.items()):
            named = any(t.part.shape.has_share for _, t in area.loads[old])  # then the nodes' GPUs are alike one by one
            for i, t in area.loads[old]:
                gpus = free.take(new, t.part.shape, t.pods, t.part.job.name, t.gpus if named else None)
                moved.setdefault(i, {}).setdefault(old, []).append(t._replace(node=new, gpus=gpus))
        for i, by_node in moved.items():
            gang, taken = answer.taken[i]
            stays = [t for t in taken if t.node not in by_node]
            answer.taken[i] = (gang, stays + [t for pods in by_node.values() for t in pods])


def _settled(task: Task) -> set[str]:
    """Return the jobs that other jobs' rules look at."""
    request = task.cluster.request
    names = {name for group in request.groups if group.together_level for name in group.jobs}
    for job in task.cluster.keeping_away:
        names |= {job.name, *(name for rule in job.apart for name in rule.jobs)}
    return names


def _is_even(taken: Sequence[Taken]) -> bool:
    """Return whether every node has as many of these pods."""
    pods: dict[int, int] = {}
    for t in taken:
        pods[t.node] = pods.get(t.node, 0) + t.pods
    return len(set(pods.values())) == 1


def _loads(answer: Answer) -> dict[int, Load]:
    """Return what the answer put on each node."""
    found: dict[int, Load] = {}
    for i, (_, taken) in enumerate(answer.taken):
        for t in taken:
            found.setdefault(t.node, []).append((i, t))
    return found


def _paired(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pair old nodes with new ones; what may stay stays."""
    both = set(old) & set(new)
    yield from ((node, node) for node in sorted(both))
    yield from zip([n for n in old if n not in both], [n for n in new if n not in both], strict=True)
