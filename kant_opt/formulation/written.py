"""A request as an integer program, and the ways into its values and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import kant_opt.formulation.constraints
import kant_opt.formulation.terms  # noqa: F401  # both register what they hold
from kant_opt.errors import InputError
from kant_opt.formulation.bundles import Bundle
from kant_opt.formulation.classes import Fold
from kant_opt.formulation.registry import CONSTRAINTS, TERMS
from kant_opt.formulation.vars import Vars
from kant_opt.schema import Placement
from kant_opt.view import Cluster, Free, Gang, GpuIndices, Part


@dataclass(frozen=True)
class Pods:
    """New pods of one part on one node; `gpus` pod by pod, empty where any will do."""

    part: Part
    node: int
    count: int
    gpus: tuple[GpuIndices, ...] = ()


class Written:
    """The program of a request, folded or not: constraints and terms are the same, see `Fold` for what is counted."""

    def __init__(
        self, cluster: Cluster, free: Free, gangs: Sequence[Gang], fold: Fold, *, everywhere: bool = False
    ) -> None:
        self.vars = Vars(cluster, free, gangs, fold, everywhere=everywhere)
        self.program = self.vars.program
        for name, constraint in CONSTRAINTS.items():
            with self.program.part(name):
                constraint(self.vars)
        self._add_levels()

    def _add_levels(self) -> None:
        objective = self.vars.cluster.request.objective
        if objective.weights:
            total: dict[int, int] = {}
            constant = 0
            for term, weight in objective.weights.items():
                sign = -weight if term == "admitted" else weight
                for terms, fixed in self._term(term).values():
                    constant += sign * fixed
                    for var, coefficient in terms.items():
                        total[var] = total.get(var, 0) + sign * coefficient
            self.program.level("weighted", total, constant, "min")
            return
        for term in objective.order:
            for name, (terms, constant) in self._term(term).items():
                self.program.level(name, terms, constant, "max" if term == "admitted" else "min")

    def _term(self, name: str) -> dict[str, tuple[dict[int, int], int]]:
        return TERMS[name](self.vars) if name in TERMS else {}  # nothing moves yet

    # -- into values -----------------------------------------------------------------------------

    def encode(self, placement: Placement) -> list[int]:
        """Return the values that stand for `placement`.

        Raises InputError where it cannot be written: it names a job, podset, node or GPU without a variable.
        """
        v = self.vars
        parts = {(part.job.name, part.podset.name): part for parts in v.demands for part in parts}
        pods = []
        for placed in placement.jobs:
            for entry in placed.pods:
                part = parts.get((placed.job, entry.podset))
                if part is None:
                    raise InputError(f"the placement has no variable for {placed.job}/{entry.podset} in this program")
                pods.append(Pods(part, v.tree.index.get(entry.node, -1), entry.count, entry.gpus))
        return self.values_of([placed.job for placed in placement.jobs], pods)

    def values_of(self, jobs: Iterable[str], pods: Iterable[Pods]) -> list[int]:
        """Return the values of placed jobs and their pods; raises InputError as `encode` does."""
        v = self.vars
        values = [0] * len(self.program.names)
        unnamed: dict[int, int] = {}
        loads: dict[int, dict[int, list[int]]] = {first: {} for first in v.classes}
        try:
            for job in jobs:
                values[v.placed[job]] += 1
            for here in pods:
                part, node, gpus = here.part, here.node, here.gpus
                k, shape = v.part_index[part.job.name, part.podset.name], part.shape
                first = v.first_of.get(node, node)
                values[v.pods[k][first]] += here.count
                if first in loads:
                    bundles = v.classes[first].bundles
                    load = loads[first].setdefault(node, [0] * len(bundles))
                    load[bundles.index(Bundle(shape, v.bundles[k]))] += here.count
                    continue
                for indices in gpus:
                    for g in indices:
                        if shape.has_share:
                            values[v.shares[k, node, g]] += 1
                        elif (node, g) in v.whole:
                            values[v.whole[node, g]] += 1
                if shape.gpus and not gpus:
                    unnamed[node] = unnamed.get(node, 0) + here.count * shape.gpus
            for first, on_nodes in loads.items():
                sizes = [bundle.pods for bundle in v.classes[first].bundles]
                whole = {n: [pods // s for pods, s in zip(load, sizes, strict=True)] for n, load in on_nodes.items()}
                v.classes[first].filling.set(values, whole)
        except KeyError as error:
            raise InputError(f"the placement has no variable {error} in this program") from None
        for node, wanted in sorted(unnamed.items()):
            for g in self._untouched(values, node)[:wanted]:
                values[v.whole[node, g]] = 1
        v.complete(values)
        return values

    def _untouched(self, values: list[int], node: int) -> list[int]:
        v = self.vars
        taken = {g for (k, n, g), var in v.shares.items() if n == node and values[var]}
        return [g for g in v.gpus(node) if (node, g) in v.whole and not values[v.whole[node, g]] and g not in taken]

    # -- back from values ------------------------------------------------------------------------

    def decode(self, values: Sequence[int]) -> tuple[set[str], list[Pods]]:
        """Return the names of the placed jobs and the pods of a solution, GPUs named where shares may meet them.

        Of jobs alike the first ones are placed.
        """
        v = self.vars
        of_demand: list[list[Pods]] = [[] for _ in v.demands]
        for k, here in self._by_themselves(values):
            of_demand[k].append(here)
        coming = v.on_node()
        for first in v.classes:
            for k, here in self._of_class(first, coming[first], values):
                of_demand[k].append(here)
        jobs: set[str] = set()
        found: list[Pods] = []
        for parts, pods in zip(v.demands, of_demand, strict=True):
            placed = parts[: values[v.placed[parts[0].job.name]]]
            jobs.update(part.job.name for part in placed)
            found += pods if len(parts) == 1 else _dealt(placed, pods)
        return jobs, found

    def _by_themselves(self, values: Sequence[int]) -> Iterator[tuple[int, Pods]]:
        """Yield (demand, pods) on the nodes of no class."""
        v = self.vars
        shared = set(v.shared_nodes)
        whole: dict[int, list[int]] = {}
        for (n, g), var in sorted(v.whole.items()):
            if values[var]:
                whole.setdefault(n, []).append(g)
        on_gpus: dict[tuple[int, int], list[GpuIndices]] = {}
        for (k, n, g), var in v.shares.items():
            on_gpus.setdefault((k, n), []).extend([(g,)] * values[var])
        for k, nodes in enumerate(v.pods):
            part = v.demands[k][0]
            size = part.shape.gpus
            for n, var in nodes.items():
                count = values[var]
                if not count or n in v.classes:
                    continue
                gpus = tuple(on_gpus.get((k, n), ()))
                if size and n in shared:
                    gpus = tuple(tuple(whole[n][i * size : (i + 1) * size]) for i in range(count))
                    del whole[n][: count * size]
                yield k, Pods(part, n, count, gpus)

    def _of_class(
        self, first: int, coming: Sequence[tuple[int, int]], values: Sequence[int]
    ) -> Iterator[tuple[int, Pods]]:
        """Yield (demand, pods) on the nodes of a class: bundles alike are dealt out in the order of demands."""
        v = self.vars
        nodes = v.classes[first]
        wanted: list[list[tuple[Part, int]]] = [[] for _ in nodes.bundles]
        index: dict[int, int] = {}
        for k, var in coming:
            part, size = v.demands[k][0], v.bundles[k]
            index[id(part)] = k
            wanted[nodes.bundles.index(Bundle(part.shape, size))].append((part, values[var] // size))
        loads = nodes.filling.fill(values, [sum(count for _, count in parts) for parts in wanted])
        for s, (bundle, parts) in enumerate(zip(nodes.bundles, wanted, strict=True)):
            room = [(n, load[s], ()) for n, load in sorted(loads.items()) if load[s]]
            for pods in _shared_out(parts, room):
                yield index[id(pods.part)], replace(pods, count=pods.count * bundle.pods)


def _dealt(parts: Sequence[Part], pods: Iterable[Pods]) -> Iterator[Pods]:
    """Deal pods out to parts alike, each its target."""
    return _shared_out([(part, part.target) for part in parts], [(p.node, p.count, p.gpus) for p in pods])


def _shared_out(
    parts: Iterable[tuple[Part, int]], room: Iterable[tuple[int, int, tuple[GpuIndices, ...]]]
) -> Iterator[Pods]:
    """Yield so many pods of each part on nodes with so much room each, both in their order; the sums are equal."""
    nodes = iter(room)
    left = 0
    for part, count in parts:
        while count:
            if not left:
                node, left, gpus = next(nodes)
            here = min(count, left)
            yield Pods(part, node, here, gpus[:here])
            count, left, gpus = count - here, left - here, gpus[here:]
