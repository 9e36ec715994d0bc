"""Kubernetes: `kubectl get nodes,pods -A -o json`, as JSON or YAML, one file or a folder of them."""

from __future__ import annotations

from pathlib import Path

from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.kubernetes.gangs import GangReader
from kant_opt.io.kubernetes.kueue import Queues, Workload, WorkloadReader
from kant_opt.io.kubernetes.levels import HOST_KEYS, find_levels
from kant_opt.io.kubernetes.nodes import NodeFacts, read_node
from kant_opt.io.kubernetes.objects import Notes
from kant_opt.io.kubernetes.pods import Pod
from kant_opt.io.kubernetes.podsets import PodSetReader
from kant_opt.io.kubernetes.sources import KUEUE, gather, looks_kubernetes
from kant_opt.schema import FabricSpec, Node, Request, parse


class KubernetesFormat:
    """Nodes and pods as the API server tells them.

    Levels come from node labels, GPUs and other room from `allocatable`. Pods on nodes become allocations, one per
    gang or controller; pods that wait become jobs: one per gang (pods of one shape are one podset), or one per pod of
    a Deployment and its like. What Kubernetes can say and a request cannot is noted. `now_s` is the latest time
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
        kinds = {f.gpu_resource for f in facts if f.gpu_resource}
        mixed = len(kinds) > 1
        telling = [f for f in facts if f.gpu_resource] or facts
        levels = find_levels([(f.name, f.labels) for f in telling], cluster.topologies, notes)
        nodes = tuple(read_node(f, levels, mixed=mixed, notes=notes) for f in facts)
        queues = Queues(cluster, notes)
        nodes = tuple(_in_flavors(n, queues) for n in nodes)
        hosts = {f.labels[key]: f.name for f in facts for key in HOST_KEYS if f.labels.get(key)}
        podsets = PodSetReader(nodes, levels, mixed=mixed, notes=notes)
        pods = [Pod(item) for item in cluster.pods]
        workloads = [Workload(item) for item in cluster.of(KUEUE, "Workload")]
        told = WorkloadReader(nodes, podsets, queues, hosts, notes)
        gangs = GangReader(nodes, podsets, notes)
        gangs.read(told.read(workloads, pods))
        jobs = [*told.jobs, *queues.rename(gangs.jobs)]
        times = [t for pod in pods for t in (pod.created_s, pod.started_s) if t is not None]
        times += [t for workload in workloads for t in (workload.created_s, workload.since_s) if t is not None]
        request = parse(
            Request,
            {
                "now_s": max(times, default=0),
                "fabric": FabricSpec(levels=levels.names),
                "nodes": nodes,
                "allocations": sorted((*told.allocations, *gangs.allocations), key=lambda a: a.job),
                "queues": queues.all,
                "jobs": sorted(jobs, key=lambda j: (j.submit_s, j.name)),
            },
            place=source.name,
        )
        return request, notes.sentences()


def _in_flavors(node: Node, queues: Queues) -> Node:
    pools = queues.pools(node.labels)
    return node.model_copy(update={"pools": (*pools, *node.pools)}) if pools else node


FORMATS.add("kubernetes", KubernetesFormat())
