"""Kubernetes: `kubectl get nodes,pods -A -o json`, as JSON or YAML, one file or a folder of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.kubernetes.gangs import GangReader
from kant_opt.io.kubernetes.kai import KaiGangs
from kant_opt.io.kubernetes.kai import read_queues as kai_queues
from kant_opt.io.kubernetes.kueue import Queues, Workload, WorkloadReader
from kant_opt.io.kubernetes.levels import HOST_KEYS, find_levels
from kant_opt.io.kubernetes.nodes import NodeFacts, read_node
from kant_opt.io.kubernetes.pods import Pod
from kant_opt.io.kubernetes.podsets import PodSetReader
from kant_opt.io.kubernetes.sources import (
    KAI,
    KUEUE,
    VOLCANO,
    VOLCANO_BATCH,
    VOLCANO_TOPOLOGY,
    gather,
    looks_kubernetes,
)
from kant_opt.io.kubernetes.volcano import HyperNodes, VolcanoGangs, VolcanoJobReader
from kant_opt.io.kubernetes.volcano import read_queues as volcano_queues
from kant_opt.io.objects import Notes
from kant_opt.schema import FabricSpec, Job, Node, Queue, Request, parse


class KubernetesFormat:
    """Nodes and pods as the API server tells them.

    Levels come from node labels, GPUs and other room from `allocatable`. Pods on nodes become allocations, one per
    gang or controller; pods that wait become jobs: one per gang (pods of one shape are one podset), or one per pod of
    a Deployment and its like. The objects of Kueue, Volcano and KAI add queues, levels, rules of gangs, and jobs whose
    pods are not there yet. What Kubernetes can say and a request cannot is noted. `now_s` is the latest time
    that any pod tells.
    """

    name = "kubernetes"
    looks_for = "Kubernetes nodes and pods ('kubectl get nodes,pods -A -o json'), as JSON or YAML, or a folder of such"

    def sniff(self, source: Path) -> bool:
        """Return whether the file, or one in the folder, begins with or lists Kubernetes nodes or pods."""
        return looks_kubernetes(source)

    def read_with_notes(self, source: Path) -> Read:
        """Return the cluster as a request. Costs time linear in nodes and pods."""
        notes = Notes()
        cluster = gather(source, notes)
        facts = [NodeFacts(item) for item in cluster.nodes]
        hypers = HyperNodes(cluster.of(VOLCANO_TOPOLOGY, "HyperNode"), {f.name: f.labels for f in facts}, notes)
        for f in facts:
            f.places = f.labels | hypers.labels(f.name)
        kinds = {f.gpu_resource for f in facts if f.gpu_resource}
        mixed = len(kinds) > 1
        telling = [(f.name, f.places) for f in facts if f.gpu_resource] or [(f.name, f.places) for f in facts]
        levels = find_levels(telling, cluster.topologies, notes, given=hypers.family)
        queues = Queues(cluster, notes)
        nodes = tuple(_in_flavors(read_node(f, levels, mixed=mixed, notes=notes), queues) for f in facts)
        hosts = {f.labels[key]: f.name for f in facts for key in HOST_KEYS if f.labels.get(key)}
        podsets = PodSetReader(nodes, levels, mixed=mixed, notes=notes)
        pods = [Pod(item) for item in cluster.pods]
        workloads = [Workload(item) for item in cluster.of(KUEUE, "Workload")]
        told = WorkloadReader(nodes, podsets, queues, hosts, notes)
        gangs = GangReader(nodes, podsets, notes)
        gangs.read(told.read(workloads, pods))
        volcano = VolcanoGangs(cluster.of(VOLCANO, "PodGroup"), hypers, levels.names, notes)
        kai = KaiGangs(cluster.of(KAI, "PodGroup"), cluster.topologies, levels, notes)
        ruled = [job for found in gangs.jobs if (job := kai.apply(volcano.apply(queues.rename(found)))) is not None]
        vcjobs = VolcanoJobReader(podsets, volcano, levels.names, notes).read(cluster.of(VOLCANO_BATCH, "Job"), pods)
        known = (
            *queues.all,
            *volcano_queues(cluster.of(VOLCANO, "Queue"), notes),
            *kai_queues(cluster.of(KAI, "Queue"), notes),
        )
        jobs = _in_queues([*told.jobs, *ruled, *vcjobs], known, notes)
        times = [t for pod in pods for t in (pod.created_s, pod.started_s) if t is not None]
        times += [t for workload in workloads for t in (workload.created_s, workload.since_s) if t is not None]
        request = parse(
            Request,
            {
                "now_s": max(times, default=0),
                "fabric": FabricSpec(levels=levels.names),
                "nodes": nodes,
                "allocations": sorted((*told.allocations, *gangs.allocations), key=lambda a: a.job),
                "queues": known,
                "jobs": jobs,
            },
            place=source.name,
        )
        return request, notes.sentences()


def _in_queues(jobs: Iterable[Job], queues: Iterable[Queue], notes: Notes) -> list[Job]:
    """Return the jobs by submit time, then name; where queues are known, those of an unknown one are left out."""
    known = {q.name for q in queues}
    kept = []
    for job in sorted(jobs, key=lambda j: (j.submit_s, j.name)):
        if known and job.queue and job.queue not in known:
            notes.add(f"waiting jobs left out, their queue {job.queue!r} is not in the files", job.name)
        else:
            kept.append(job)
    return kept


def _in_flavors(node: Node, queues: Queues) -> Node:
    pools = queues.pools(node.labels)
    return node.model_copy(update={"pools": (*pools, *node.pools)}) if pools else node


FORMATS.add("kubernetes", KubernetesFormat())
