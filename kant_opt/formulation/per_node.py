"""The reference formulation: pods per podset and node, exact for every request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import kant_opt.formulation.constraints
import kant_opt.formulation.terms  # noqa: F401  # both register what they hold
from kant_opt.errors import InputError
from kant_opt.formulation.registry import CONSTRAINTS, TERMS
from kant_opt.formulation.vars import Vars
from kant_opt.schema import Placement
from kant_opt.view import Cluster, Free, Gang, GpuIndices


@dataclass(frozen=True)
class Pods:
    """New pods of one part on one node; `gpus` pod by pod, empty where any will do."""

    part: int
    node: int
    count: int
    gpus: tuple[GpuIndices, ...] = ()


class PerNode:
    """The integer program of a request, and the ways into its values and back.

    Its size is parts x nodes and more where GPUs are shared: for some hundred nodes. With `everywhere` any placement
    of the request's podsets on its nodes can be written, valid or not; then the program is larger.
    """

    def __init__(self, cluster: Cluster, free: Free, gangs: Sequence[Gang], *, everywhere: bool = False) -> None:
        self.vars = Vars(cluster, free, gangs, everywhere=everywhere)
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
        pods = []
        for placed in placement.jobs:
            for entry in placed.pods:
                k = v.part_index.get((placed.job, entry.podset), -1)
                pods.append(Pods(k, v.tree.index.get(entry.node, -1), entry.count, entry.gpus))
        return self.values_of([placed.job for placed in placement.jobs], pods)

    def values_of(self, jobs: Iterable[str], pods: Iterable[Pods]) -> list[int]:
        """Return the values of placed jobs and their pods; raises InputError as `encode` does."""
        v = self.vars
        values = [0] * len(self.program.names)
        unnamed: dict[int, int] = {}
        try:
            for job in jobs:
                values[v.placed[job]] = 1
            for here in pods:
                k, node, gpus = here.part, here.node, here.gpus
                if k < 0:
                    raise KeyError(k)
                values[v.pods[k][node]] += here.count
                shape = v.parts[k].shape
                for indices in gpus:
                    for g in indices:
                        if shape.has_share:
                            values[v.shares[k, node, g]] += 1
                        elif (node, g) in v.whole:
                            values[v.whole[node, g]] += 1
                if shape.gpus and not gpus:
                    unnamed[node] = unnamed.get(node, 0) + here.count * shape.gpus
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
        """Return the names of the placed jobs and the pods of a solution, GPUs named where shares may meet them."""
        v = self.vars
        jobs = {job for job, var in v.placed.items() if values[var]}
        shared = set(v.shared_nodes)
        whole: dict[int, list[int]] = {}
        for (n, g), var in sorted(v.whole.items()):
            if values[var]:
                whole.setdefault(n, []).append(g)
        on_gpus: dict[tuple[int, int], list[GpuIndices]] = {}
        for (k, n, g), var in v.shares.items():
            on_gpus.setdefault((k, n), []).extend([(g,)] * values[var])
        found: list[Pods] = []
        for k, nodes in enumerate(v.pods):
            size = v.parts[k].shape.gpus
            for n, var in nodes.items():
                count = values[var]
                if not count:
                    continue
                gpus = tuple(on_gpus.get((k, n), ()))
                if size and n in shared:
                    gpus = tuple(tuple(whole[n][i * size : (i + 1) * size]) for i in range(count))
                    del whole[n][: count * size]
                found.append(Pods(k, n, count, gpus))
        return jobs, found
