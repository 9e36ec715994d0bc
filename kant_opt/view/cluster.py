"""The request as arrays: what every node can take at all, and which podsets may use it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from kant_opt.fabric import Fabric
from kant_opt.schema import Job, Node, PodSet, Request, Taint
from kant_opt.view.tree import Ints, Mask, Tree

NOT_COUNTED = 1 << 60
"""Capacity of a resource that a node does not count; sums of eight still fit in 64 bits."""


class Shape(NamedTuple):
    """What one pod takes. At most one of gpus, milli and mib is not zero."""

    gpus: int
    milli: int
    mib: int
    cpu: int
    memory: int

    @property
    def has_share(self) -> bool:
        return bool(self.milli or self.mib)

    @property
    def uses_gpu(self) -> bool:
        return bool(self.gpus or self.milli or self.mib)


def shape_of(podset: PodSet) -> Shape:
    """Return the shape of a podset's pods."""
    return Shape(podset.gpus, podset.gpu_milli or 0, podset.gpu_memory_mib or 0, podset.cpu_milli, podset.memory_bytes)


class Cluster:
    """Capacities of N nodes in the order of `tree.names`; read-only.

    `gpus` (N,) healthy GPUs; `unit` (N,) parts that one GPU is counted in, 1000 x its MiB (1000 where unknown), so
    that thousandths and MiB are both whole; `gpu_units` (N, G) capacity of each GPU in these parts, 0 where missing
    or unhealthy; `cpu`, `memory`, `pods` (N,) with NOT_COUNTED where the node does not count them.
    """

    def __init__(self, request: Request, fabric: Fabric) -> None:
        self.request = request
        self.tree = Tree(fabric)
        by_name = {node.name: node for node in request.nodes}
        self.nodes: list[Node] = [by_name[name] for name in self.tree.names]
        n = len(self.nodes)
        self.gpus = np.fromiter((node.healthy_gpus for node in self.nodes), np.int64, n)
        self.unit = np.fromiter((1000 * (node.gpu_memory_mib or 1) for node in self.nodes), np.int64, n)
        widest = max((node.gpus for node in self.nodes), default=0)
        healthy = np.arange(widest)[None, :] < np.fromiter((x.gpus for x in self.nodes), np.int64, n)[:, None]
        for i, node in enumerate(self.nodes):
            for gpu in node.gpu_details:
                healthy[i, gpu.index] = gpu.healthy
        self.gpu_units = np.where(healthy, self.unit[:, None], 0)
        self.cpu = _capacities([node.cpu_milli for node in self.nodes])
        self.memory = _capacities([node.memory_bytes for node in self.nodes])
        self.pods = _capacities([node.max_pods for node in self.nodes])
        self.schedulable = np.fromiter((node.schedulable for node in self.nodes), np.bool_, n)
        self.first_pool = [node.pools[0] for node in self.nodes]
        self.keeping_away: list[Job] = []
        """Jobs with rules towards other jobs."""
        self.asked_cpu, self.asked_gpu_milli = 0, 0
        """What the GPU pods of all jobs seen ask for in all: thousandths of CPUs and of GPUs."""
        for job in request.jobs:
            self.note(job)
        self.exclusive = [alloc for alloc in request.allocations if alloc.exclusive_level]
        """Running jobs that keep domains for themselves."""
        self._dealt: dict[tuple[bytes, int], tuple[tuple[int, ...], ...]] = {}
        self._masks: dict[tuple[object, ...], Mask] = {}

    def note(self, job: Job) -> None:
        """Take note of a job: its rules towards other jobs, and the CPU its pods ask for per GPU."""
        self._ask(job, 1)
        if job.exclusive_level or any(rule.jobs for rule in job.apart):
            self.keeping_away.append(job)

    def forget(self, job: Job) -> None:
        """Undo `note`."""
        self._ask(job, -1)
        self.keeping_away = [other for other in self.keeping_away if other is not job]

    def _ask(self, job: Job, times: int) -> None:
        for podset in job.podsets:
            gpu_milli = 1000 * podset.gpus or podset.gpu_milli or 0
            if gpu_milli:
                self.asked_cpu += times * podset.count * podset.cpu_milli
                self.asked_gpu_milli += times * podset.count * gpu_milli

    @cached_property
    def traffic_weights(self) -> tuple[int, ...]:
        """What one more domain costs per depth, 0 for the whole fabric and for the nodes."""
        return 0, *self.request.objective.weights_of(self.tree.levels[:-1]).values(), 0

    def whole_node(self, shape: Shape) -> bool:
        """Return whether pods of this shape take all GPUs of the largest node."""
        return shape.gpus > 0 and shape.gpus >= self.gpu_units.shape[1]

    def dealt(self, node: int, gpus: int) -> tuple[tuple[int, ...], ...]:
        """Return a node's healthy GPUs dealt out to pods of `gpus` each, lowest index first."""
        key = (self.gpu_units[node].tobytes(), gpus)
        if key not in self._dealt:
            healthy = np.flatnonzero(self.gpu_units[node]).tolist()
            self._dealt[key] = tuple(tuple(healthy[i : i + gpus]) for i in range(0, len(healthy), gpus))
        return self._dealt[key]

    def eligible(self, job: Job, podset: PodSet) -> Mask:
        """Return which nodes the rules `eligible` and `window` leave to the podset, (N,). Cached by its rules."""
        key = _rules_key(job, podset, with_window=bool(self.request.reservations))
        if key not in self._masks:
            mask = np.ones(len(self.nodes), dtype=bool)
            for _, excluded in self.exclusions(job, podset):
                mask &= ~excluded
            mask.setflags(write=False)
            self._masks[key] = mask
        return self._masks[key]

    def exclusions(self, job: Job, podset: PodSet) -> list[tuple[str, Mask]]:
        """Return (cause, nodes excluded by it) for every cause that excludes a node; a node may be under several."""
        found = [("not schedulable", ~self.schedulable)]
        if self.request.reservations:
            found.append(("reserved", self._reserved(job)))
        if job.after:
            found.append(("before other jobs end", np.ones(len(self.nodes), dtype=bool)))
        if podset.pools:
            wanted = set(podset.pools)
            found.append(("other pool", self._where(lambda node: wanted.isdisjoint(node.pools))))
        for key, allowed in sorted(podset.selector.items()):
            found.append((f"label {key}", self._where(partial(_lacks_label, key, allowed))))
        if podset.nodes:
            named = set(podset.nodes)
            found.append(("not among the nodes named", self._where(lambda node: node.name not in named)))
        if podset.not_nodes:
            barred = set(podset.not_nodes)
            found.append(("node ruled out by name", self._where(lambda node: node.name in barred)))
        for taint in sorted({t for node in self.nodes for t in node.taints}, key=lambda t: (t.key, t.value, t.effect)):
            if taint.effect == "PreferNoSchedule" or any(tol.covers(taint) for tol in podset.tolerations):
                continue
            found.append((f"taint {taint.key}", self._where(partial(_has_taint, taint))))
        if podset.gpu_memory_mib is not None:
            found.append(("GPU memory unknown", self._where(lambda node: node.gpus and node.gpu_memory_mib is None)))
        return [(cause, mask) for cause, mask in found if mask.any()]

    def _where(self, test: Callable[[Node], object]) -> Mask:
        return np.fromiter((bool(test(node)) for node in self.nodes), np.bool_, len(self.nodes))

    def _reserved(self, job: Job) -> Mask:
        start = self.request.now_s
        end: float = float("inf")
        if job.walltime_s is not None:
            end = start + job.walltime_s
        elif job.preemptible:
            end = start + 1
        mask = np.zeros(len(self.nodes), dtype=bool)
        for res in self.request.reservations:
            if job.name not in res.jobs and res.start_s < end and (res.end_s is None or res.end_s > start):
                mask[[self.tree.index[name] for name in res.nodes]] = True
        return mask


def _lacks_label(key: str, allowed: tuple[str, ...], node: Node) -> bool:
    return node.labels.get(key) not in allowed


def _has_taint(taint: Taint, node: Node) -> bool:
    return taint in node.taints


def _capacities(values: list[int | None]) -> Ints:
    return np.fromiter((NOT_COUNTED if v is None else v for v in values), np.int64, len(values))


def _rules_key(job: Job, podset: PodSet, *, with_window: bool) -> tuple[object, ...]:
    window = (job.walltime_s, job.preemptible, job.name) if with_window else ()
    return (
        podset.pools,
        tuple(sorted(podset.selector.items())),
        podset.nodes,
        podset.not_nodes,
        podset.tolerations,
        podset.gpu_memory_mib is not None,
        bool(job.after),
        window,
    )
