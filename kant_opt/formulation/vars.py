"""The variables of a formulation, and what every constraint and term reads of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kant_opt.formulation.alike import Demand, on_one_node
from kant_opt.formulation.classes import Fold, NodeClass
from kant_opt.formulation.program import Program, Sense
from kant_opt.schema import Job
from kant_opt.view import Cluster, Free, Gang, Mask, Part

Terms = dict[int, int]
"""Variable -> coefficient."""
Values = Sequence[int]
"""A value per variable."""


class Vars:
    """Placed jobs, pods per podset and node, and the GPUs that shares meet on.

    - `placed[job]`: how many are placed of the job and those alike, 0 or 1 where there are none.
    - `pods[k][n]`: new pods of part k on node n, where n is eligible and has room for one. Where nodes are folded, n is
      the first of its class and stands for all of them; where jobs are, k stands for the parts of all of them.
    - `shares[k, n, g]`: pods of part k on GPU g of node n, for parts that ask for a share of a GPU.
    - `whole[n, g]`: binary, GPU g is taken whole; only on nodes where shares and whole GPUs may meet.

    All further variables are *derived*: their value follows from these, see `derived`. With `everywhere` there are
    variables for all podsets on all nodes, wanted or not, so that broken placements can be written too.
    """

    def __init__(
        self, cluster: Cluster, free: Free, gangs: Sequence[Gang], fold: Fold, *, everywhere: bool = False
    ) -> None:
        self.program = Program()
        self.cluster, self.free, self.tree, self.gangs = cluster, free, cluster.tree, gangs
        self.everywhere = everywhere
        self.demands: list[Demand] = fold.demands
        self.parts: list[Part] = [_counted(parts, self.tree.node_depth) for parts in fold.demands]
        self.bundles = fold.bundles
        """Per part what its pods on a node are a multiple of."""
        self.jobs: dict[str, Job] = {part.job.name: part.job for part in self.parts}
        self.parts_of: dict[str, tuple[int, ...]] = {
            name: tuple(k for k, part in enumerate(self.parts) if part.job.name == name) for name in self.jobs
        }
        self.part_index = {(p.job.name, p.podset.name): k for k, parts in enumerate(self.demands) for p in parts}
        copies = {parts[0].job.name: len(parts) for parts in self.demands}
        placed = {name: self.program.var(f"placed_{j}", 0, copies[name]) for j, name in enumerate(self.jobs)}
        self.placed = {part.job.name: placed[parts[0].job.name] for parts in self.demands for part in parts}
        self.classes: dict[int, NodeClass] = {c.nodes[0]: c for c in fold.classes}
        """Classes by their first node."""
        self.first_of: dict[int, int] = {n: c.nodes[0] for c in fold.classes for n in c.nodes}
        self.pods: list[dict[int, int]] = []
        self.shares: dict[tuple[int, int, int], int] = {}
        self.whole: dict[tuple[int, int], int] = {}
        self.shared_nodes: list[int] = []
        """Nodes on which pods with shares may come, sorted."""
        self.node_used: dict[int, int] = {}
        """Node -> the binary that says it is used, made by the terms of fragmentation."""
        self._derived: list[tuple[int, Callable[[Values], int]]] = []
        self._living: dict[str, dict[int, int]] = {}
        for alloc in cluster.request.allocations:
            held = self._living.setdefault(alloc.job, {})
            for hold in alloc.holds:
                if hold.pods:
                    node = self.tree.index[hold.node]
                    held[node] = held.get(node, 0) + hold.pods
        self._new: dict[tuple[tuple[int, ...], int], dict[int, Terms]] = {}
        self._present: dict[tuple[tuple[int, ...], int, int], int] = {}
        self._add_pods()
        self._add_gpus()

    # -- building --------------------------------------------------------------------------------

    def _add_pods(self) -> None:
        first = np.arange(len(self.cluster.nodes))
        first[list(self.first_of)] = list(self.first_of.values())
        for k, part in enumerate(self.parts):
            if self.everywhere:
                self.pods.append({n: self.program.var(f"pods_{k}_{n}", 0, self.most(k)) for n in self._all_nodes()})
                continue
            bundles = self.free.slots(part.shape, part.eligible) // self.bundles[k]
            room = np.zeros(len(first), dtype=np.int64)
            np.add.at(room, first, np.minimum(bundles * self.bundles[k], self.most(k)))
            room = np.minimum(room, self.most(k))
            nodes = np.flatnonzero(room)
            self.pods.append(
                {
                    n: self.program.var(f"pods_{k}_{n}", 0, upper)
                    for n, upper in zip(nodes.tolist(), room[nodes].tolist(), strict=True)
                }
            )

    def _add_gpus(self) -> None:
        shared = sorted({n for k, part in enumerate(self.parts) if part.shape.has_share for n in self.pods[k]})
        self.shared_nodes = shared
        for k, part in enumerate(self.parts):
            if not part.shape.has_share:
                continue
            for n in self.pods[k]:
                share = self.share(k, n)
                for g in self.gpus(n):
                    fits = self.most(k) if self.everywhere else int(self.free.units[n, g]) // share
                    if fits:
                        var = self.program.var(f"share_{k}_{n}_{g}", 0, min(fits, self.most(k)))
                        self.shares[k, n, g] = var
        wanted = {n for k, part in enumerate(self.parts) if part.shape.gpus for n in self.pods[k]}
        for n in shared:
            if n in wanted:
                for g in self.gpus(n):
                    if self.free.units[n, g] == self.cluster.unit[n]:
                        self.whole[n, g] = self.program.var(f"whole_{n}_{g}", 0, 1)

    def derived(self, name: str, upper: int, rule: Callable[[Values], int]) -> int:
        """Add a variable whose exact value `rule` tells from the values of variables added before it."""
        var = self.program.var(name, 0, upper)
        self._derived.append((var, rule))
        return var

    def complete(self, values: list[int]) -> None:
        """Set every derived variable from the others."""
        for var, rule in self._derived:
            values[var] = rule(values)

    # -- reading ---------------------------------------------------------------------------------

    def most(self, k: int) -> int:
        """Return the most new pods of part k that can be written anywhere."""
        part, copies = self.parts[k], len(self.demands[k])
        return max(part.target, part.podset.count + 1) if self.everywhere else part.target * copies

    def is_single(self, job: str) -> bool:
        """Return whether levels mean nothing to the job: its pods are on one node, or jobs alike are counted."""
        if self.everywhere or self.living(job):
            return False
        ks = self.parts_of[job]
        whole = len(ks) == 1 and on_one_node(self.cluster, self.demands[ks[0]][0])
        return whole or sum(self.parts[k].target for k in ks) <= 1 or any(len(self.demands[k]) > 1 for k in ks)

    def gpus(self, node: int) -> range:
        """Return the GPU indices of a node, healthy or not."""
        return range(self.cluster.nodes[node].gpus)

    def share(self, k: int, node: int) -> int:
        """Return what one pod with a share takes of its GPU, in parts as in `Cluster.unit`."""
        shape, unit = self.parts[k].shape, int(self.cluster.unit[node])
        if shape.milli:
            return shape.milli * unit // 1000
        known = self.cluster.nodes[node].gpu_memory_mib is not None
        return 1000 * shape.mib if known else unit

    def gpu_units(self, k: int, node: int) -> int:
        """Return what one pod takes of the node's GPUs in all, in parts as in `Cluster.unit`."""
        shape = self.parts[k].shape
        return self.share(k, node) if shape.has_share else shape.gpus * int(self.cluster.unit[node])

    def gpu_milli(self, k: int, node: int) -> int:
        """Return the same in thousandths of a GPU, rounded up."""
        return -(-1000 * self.gpu_units(k, node) // int(self.cluster.unit[node]))

    def on_node(self) -> dict[int, list[tuple[int, int]]]:
        """Return node -> (part, its pods variable there)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for k, nodes in enumerate(self.pods):
            for n, var in nodes.items():
                found.setdefault(n, []).append((k, var))
        return dict(sorted(found.items()))

    def living(self, job: str) -> Mapping[int, int]:
        """Return the pods of a job that run already, by node; any running job may be named."""
        return self._living.get(job, {})

    @property
    def running(self) -> Iterable[str]:
        """Names of the jobs with living pods."""
        return self._living

    def domains(self, nodes: Iterable[int], depth: int) -> set[int]:
        """Return the domains of `depth` that hold the nodes."""
        at = self.tree.of_node[depth]
        return {int(at[n]) for n in nodes}

    def new_in(self, parts: Iterable[int], depth: int) -> dict[int, Terms]:
        """Return domain -> the new pods of `parts` there, as terms; only domains that can get some. Cached.

        Nodes of classes are not told apart, and no rule on the level of nodes binds there: at that depth they are
        left out.
        """
        key = (tuple(parts), depth)
        if key not in self._new:
            at = self.tree.of_node[depth].tolist()
            found: dict[int, Terms] = {}
            for k in key[0]:
                for n, var in self.pods[k].items():
                    if depth < self.tree.node_depth or n not in self.classes:
                        found.setdefault(at[n], {})[var] = 1
            self._new[key] = dict(sorted(found.items()))
        return self._new[key]

    def most_of(self, parts: Iterable[int], terms: Terms) -> int:
        """Return an upper bound on a sum of new pods of `parts`."""
        upper = self.program.upper
        return min(sum(self.most(k) for k in parts), sum(upper[var] for var in terms))

    def present(self, parts: Sequence[int], depth: int, domain: int) -> int:
        """Return a binary that is 1 where `parts` have new pods in the domain. Made once."""
        key = (tuple(parts), depth, domain)
        if key not in self._present:
            terms = self.new_in(key[0], depth)[domain]
            with self.program.part(""):
                name = f"present_{'_'.join(map(str, parts))}_{depth}_{domain}"
                var = self.derived(name, 1, lambda values: int(any(values[i] for i in terms)))
                self.program.row(f"is_{name}", {**terms, var: -self.most_of(parts, terms)}, Sense.LE, 0)
            self._present[key] = var
        return self._present[key]

    def forbid(self, name: str, terms: Terms) -> None:
        """Add a row that keeps a sum of counts at 0."""
        if terms:
            self.program.row(name, terms, Sense.LE, 0)

    def excluded(self, k: int, window: bool) -> Mask:
        """Return the nodes closed to part k by the rule `window`, or by the rule `eligible`, (N,)."""
        mask = np.zeros(len(self.cluster.nodes), dtype=bool)
        for cause, nodes in self.cluster.exclusions(self.parts[k].job, self.parts[k].podset):
            if (cause == "reserved") == window:
                mask |= nodes
        if not window and self.parts[k].shape.mib:  # said of nodes without GPUs too, which the view counts as full
            mask |= [node.gpu_memory_mib is None for node in self.cluster.nodes]
        return mask

    def _all_nodes(self) -> range:
        return range(len(self.cluster.nodes))


def _counted(parts: Demand, node_depth: int) -> Part:
    """Return the part that stands for a demand; to jobs alike levels mean nothing, but what is on one node stays so."""
    first = parts[0]
    if len(parts) == 1:
        return first
    slices = ((node_depth, first.target),) if first.required == node_depth and first.target > 1 else ()
    return replace(first, required=0, preferred=0, slices=slices, spread=())
