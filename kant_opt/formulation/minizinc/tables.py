"""The data of the MiniZinc twins: rules and terms of a request as numbers that count from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from operator import mul

from kant_opt.fabric import Fabric
from kant_opt.formulation.minizinc.goals import goals_of, priorities, terms
from kant_opt.formulation.minizinc.nodes import gpu_milli, gpu_room, gpu_units, in_common_unit, is_eligible
from kant_opt.formulation.minizinc.quotas import Cap, caps_of, running_usage
from kant_opt.schema import Hold, Job, Node, PodSet, Request


@dataclass(frozen=True)
class Table:
    """Numbers of two or three dimensions, row after row."""

    sizes: tuple[int, ...]
    numbers: list[int]


Value = str | int | set[int] | Sequence[int] | Sequence[set[int]] | Table
Values = dict[str, Value]
Cells = Sequence[Sequence[str]]
"""The nodes of each cell; those of one cell are alike."""


class Tables:
    """A request and its fabric, numbered: jobs, podsets, then actors, which are the jobs and whatever else runs."""

    def __init__(self, request: Request, fabric: Fabric) -> None:
        self.request, self.fabric = request, fabric
        self.nodes = {node.name: node for node in request.nodes}
        self.podsets = [(job, podset) for job in request.jobs for podset in job.podsets]
        self.number_of_job = {job.name: i for i, job in enumerate(request.jobs, start=1)}
        self.number_of_podset = {(job.name, k.name): i for i, (job, k) in enumerate(self.podsets, start=1)}
        actors = dict.fromkeys([*self.number_of_job, *(allocation.job for allocation in request.allocations)])
        self.number_of_actor = {name: i for i, name in enumerate(actors, start=1)}
        self.holds: dict[str, list[Hold]] = {name: [] for name in self.nodes}
        for allocation in request.allocations:
            for hold in allocation.holds:
                self.holds[hold.node].append(hold)
        self.gpu_room = {name: gpu_room(node, self.holds[name]) for name, node in self.nodes.items()}
        self.living = self._living()
        self.caps = [*caps_of(request)]

    def shared(self, cells: Cells) -> Values:
        """Return the data that `rules.mzn` asks for."""
        jobs, groups = self.request.jobs, self.request.groups
        to_place = [self._pods_to_place(job, podset) for job, podset in self.podsets]
        return {
            "num_cells": len(cells),
            "num_levels": len(self.fabric.levels),
            **self._domains(cells),
            "separate_roots": self.fabric.separate_roots,
            "num_jobs": len(jobs),
            "num_podsets": len(self.podsets),
            "job_of": [self.number_of_job[job.name] for job, _ in self.podsets],
            "least": [least for least, _ in to_place],
            "most": [most for _, most in to_place],
            "living": Table(
                (len(self.podsets), len(cells)),
                [
                    sum(self.living.get((job.name, podset.name, node), 0) for node in cell)
                    for job, podset in self.podsets
                    for cell in cells
                ],
            ),
            "eligible": self.eligible(cells),
            "communication": f"[{', '.join(job.communication for job in jobs)}]",
            "may_span": [job.may_span_fabrics for job in jobs],
            "all_or_none": [{self.number_of_job[name] for name in g.jobs} for g in groups if g.all_or_none],
            **self._podset_rules(),
            **self._ties(),
            **self._apart(cells),
            **self._quota(cells),
            **self._terms(cells),
        }

    def of_nodes(self) -> Values:
        """Return what `per_node.mzn` asks for beyond it; cells are the nodes in the fabric's order."""
        nodes = [self.nodes[name] for name in self.fabric.nodes]
        asks = [[gpu_units(podset, node) for node in nodes] for _, podset in self.podsets]
        rooms = [in_common_unit(self.gpu_room[node.name], (row[i] for row in asks)) for i, node in enumerate(nodes)]
        return {
            **self._resources(),
            "num_gpus": sum(len(room.used) for room, _ in rooms),
            "node_of": [i for i, (room, _) in enumerate(rooms, start=1) for _ in room.used],
            "used": [units for room, _ in rooms for units in room.used],
            "full_gpu": [room.full for room, _ in rooms],
            "whole": self.whole(),
            "has_share": [podset.has_share for _, podset in self.podsets],
            "ask": Table(
                (len(asks), len(nodes)),
                [units // unit for row in asks for units, (_, unit) in zip(row, rooms, strict=True)],
            ),
            "schedulable": [node.schedulable for node in nodes],
        }

    def eligible(self, cells: Cells) -> Table:
        """Return per podset and cell whether pods may come to its nodes."""
        return self.by_cell(cells, lambda job, podset, node: is_eligible(self.request, job, podset, node))

    def whole(self) -> list[int]:
        """Return the whole GPUs that a pod of each podset takes."""
        return [podset.gpus for _, podset in self.podsets]

    def by_cell(self, cells: Cells, value: Callable[[Job, PodSet, Node], int]) -> Table:
        """Return a value per podset and cell, taken from the cell's first node: they are alike."""
        firsts = [self.nodes[cell[0]] for cell in cells]
        return Table(
            (len(self.podsets), len(cells)),
            [value(job, podset, node) for job, podset in self.podsets for node in firsts],
        )

    # -- the rules

    def _domains(self, cells: Cells) -> Values:
        """Classes of several nodes have no domain on the level of the node, so there it is left out."""
        single = all(len(cell) == 1 for cell in cells)
        levels = [*enumerate(self.fabric.levels[: None if single else -1], start=1)]
        number = {node: i for i, cell in enumerate(cells, start=1) for node in cell}
        found = [(depth, domain) for depth, level in levels for domain in self.fabric.domains(level)]
        return {
            "num_domains": len(found),
            "level_of": [depth for depth, _ in found],
            "cells_of": [{number[node] for node in self.fabric.nodes_of(domain)} for _, domain in found],
        }

    def _pods_to_place(self, job: Job, podset: PodSet) -> tuple[int, int]:
        """Return L and T, the least and the most pods to place."""
        living = sum(self.living.get((job.name, podset.name, node), 0) for node in self.nodes)
        left = podset.count - podset.finished
        most = max(0, left - living)
        return (most if podset.min_count is None else max(0, min(podset.min_count, left) - living)), most

    def _living(self) -> dict[tuple[str, str, str], int]:
        """Return the pods that run now by (job, podset, node)."""
        first = {job.name: job.podsets[0].name for job in self.request.jobs}
        found: dict[tuple[str, str, str], int] = {}
        for allocation in self.request.allocations:
            for hold in allocation.holds:
                key = allocation.job, hold.podset or first.get(allocation.job, ""), hold.node
                found[key] = found.get(key, 0) + hold.pods
        return found

    def _podset_rules(self) -> Values:
        podsets = [*enumerate((podset for _, podset in self.podsets), start=1)]
        slices = [(i, piece) for i, podset in podsets for piece in podset.slices]
        spreads = [(i, spread) for i, podset in podsets for spread in podset.spread]
        return {
            "required": [self._depth(podset.required_level) if podset.required_level else 0 for _, podset in podsets],
            "num_slices": len(slices),
            "slice_podset": [i for i, _ in slices],
            "slice_level": [self._depth(piece.level) for _, piece in slices],
            "slice_size": [piece.size for _, piece in slices],
            "num_spreads": len(spreads),
            "spread_podset": [i for i, _ in spreads],
            "spread_level": [self._depth(spread.level) for _, spread in spreads],
            "spread_most": [spread.max_per_domain for _, spread in spreads],
        }

    def _ties(self) -> Values:
        of_job = {job.name: {self.number_of_podset[job.name, k.name] for k in job.podsets} for job in self.request.jobs}
        ties = [
            (tie.level, {self.number_of_podset[job.name, name] for name in tie.podsets} or of_job[job.name])
            for job in self.request.jobs
            for tie in job.together
        ]
        for group in self.request.groups:
            if group.together_level:
                ties.append((group.together_level, set().union(*(of_job[name] for name in group.jobs))))
        return {
            "num_ties": len(ties),
            "tie_level": [self._depth(level) for level, _ in ties],
            "tie_podsets": [podsets for _, podsets in ties],
        }

    def _apart(self, cells: Cells) -> Values:
        """Return who keeps apart from whom; an exclusive level may come from the job or from its allocation."""
        bans: list[tuple[int, int, int]] = []
        feuds: list[tuple[int, int, int]] = []
        for job in self.request.jobs:
            for apart in job.apart:
                level, me = self._depth(apart.level), self.number_of_job[job.name]
                podsets = [self.number_of_podset[job.name, name] for name in dict.fromkeys(apart.podsets)]
                bans += [(level, one, other) for one, other in combinations(podsets, 2)]
                feuds += [(level, me, self.number_of_actor[name]) for name in apart.jobs]
        owners = [(job.name, job.exclusive_level) for job in self.request.jobs]
        owners += [(allocation.job, allocation.exclusive_level) for allocation in self.request.allocations]
        exclusives = [(self._depth(level), self.number_of_actor[name]) for name, level in owners if level]
        held = {(name, node) for (name, _, node), pods in self.living.items() if pods}
        return {
            "num_actors": len(self.number_of_actor),
            "runs": Table(
                (len(self.number_of_actor), len(cells)),
                [any((name, node) in held for node in cell) for name in self.number_of_actor for cell in cells],
            ),
            "num_bans": len(bans),
            "ban_level": [level for level, _, _ in bans],
            "ban": Table((len(bans), 2), [i for _, *pair in bans for i in pair]),
            "num_feuds": len(feuds),
            "feud_level": [level for level, _, _ in feuds],
            "feud": Table((len(feuds), 2), [i for _, *pair in feuds for i in pair]),
            "num_exclusives": len(exclusives),
            "exclusive_level": [level for level, _ in exclusives],
            "exclusive": [actor for _, actor in exclusives],
        }

    def _quota(self, cells: Cells) -> Values:
        """Usage and room of every cap, divided by what divides all that pods may add to it."""
        rooms, charges = [], []
        for cap in self.caps:
            added = self.charges(cap, cells)
            unit = gcd(*added) or 1
            rooms.append(
                min(max(0, cap.amount - running_usage(self.request, cap)), self._demand(added, len(cells))) // unit
            )
            charges += [number // unit for number in added]
        return {
            "num_caps": len(self.caps),
            "cap_room": rooms,
            "charge": Table((len(self.caps), len(self.podsets), len(cells)), charges),
        }

    def charges(self, cap: Cap, cells: Cells) -> list[int]:
        """Return what one pod of each podset adds to the usage of `cap` in each cell, row after row."""
        return self.by_cell(cells, cap.charge_of_pod).numbers

    def _demand(self, added: list[int], width: int) -> int:
        """Return a number that the usage of all pods to place cannot exceed."""
        most = [self._pods_to_place(job, podset)[1] for job, podset in self.podsets]
        return sum(pods * max(added[i * width : (i + 1) * width], default=0) for i, pods in enumerate(most))

    def _resources(self) -> Values:
        """CPU, memory and number of pods, divided by what divides all needs; where not counted, all that is wanted."""
        most = [self._pods_to_place(job, podset)[1] for job, podset in self.podsets]
        needs = [
            [podset.cpu_milli for _, podset in self.podsets],
            [podset.memory_bytes for _, podset in self.podsets],
            [1] * len(self.podsets),
        ]
        units = [gcd(*row) or 1 for row in needs]
        demands = [sum(map(mul, most, row)) for row in needs]
        left = [self._left(node) for node in self.fabric.nodes]
        return {
            "num_resources": len(needs),
            "need": Table(
                (len(needs), len(most)), [n // unit for row, unit in zip(needs, units, strict=True) for n in row]
            ),
            "free": Table(
                (len(needs), len(left)),
                [
                    (demand if (room := node[r]) is None else min(room, demand)) // units[r]
                    for r, demand in enumerate(demands)
                    for node in left
                ],
            ),
        }

    def _left(self, name: str) -> tuple[int | None, ...]:
        """Return free CPU, memory and pods of a node; None where the node does not count them."""
        node, holds = self.nodes[name], self.holds[name]
        pairs = (
            (node.cpu_milli, sum(hold.cpu_milli for hold in holds)),
            (node.memory_bytes, sum(hold.memory_bytes for hold in holds)),
            (node.max_pods, sum(hold.pods for hold in holds)),
        )
        return tuple(None if capacity is None else max(0, capacity - used) for capacity, used in pairs)

    # -- the terms

    def _terms(self, cells: Cells) -> Values:
        classes, found, names = priorities(self.request), goals_of(self.request), terms(self.request)
        above = self.fabric.levels[:-1]
        weights = self.request.objective.weights_of(above)
        return {
            "num_priorities": len(classes),
            "priority_of": [classes.index(job.priority) + 1 for job in self.request.jobs],
            "worth": self.by_cell(cells, lambda _, podset, node: gpu_milli(podset, node) or 1),
            "weight": [weights[level] for level in above],
            "num_goals": len(found),
            "maximised": [goal.maximised for goal in found],
            "share_of": Table(
                (len(found), len(names)), [goal.share_of.get(term, 0) for goal in found for term in names]
            ),
        }

    def _depth(self, level: str) -> int:
        return self.fabric.depth(level) + 1
