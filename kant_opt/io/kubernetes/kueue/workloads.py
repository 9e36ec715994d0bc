"""Workloads that wait to jobs, admitted ones with an assignment to hosts to allocations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kant_opt.io.kubernetes.kueue.assignment import read_assignment
from kant_opt.io.kubernetes.kueue.queues import Queues
from kant_opt.io.kubernetes.levels import HOST_KEYS
from kant_opt.io.kubernetes.pods import Pod
from kant_opt.io.kubernetes.podsets import PREFERRED, REQUIRED, SLICE_LEVEL, SLICE_SIZE, LeaveOut, PodSetReader
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Allocation, Job, Node, parse

_REQUEST_FIELDS = {
    REQUIRED: "required",
    PREFERRED: "preferred",
    SLICE_LEVEL: "podSetSliceRequiredTopology",
}


@dataclass(frozen=True)
class _Assigned:
    """Pods of a podset on hosts, as Kueue assigned them."""

    podset: str
    hosts: tuple[tuple[str, int], ...]


class Workload:
    """A Workload as far as placement is concerned."""

    def __init__(self, item: Object) -> None:
        self.item, self.meta, self.spec, self.status = item, *map(item.child, ("metadata", "spec", "status"))
        self.namespace = self.meta.text("namespace", "default")
        self.name = f"{self.namespace}/{self.meta.required('name')}"
        self.created_s = self.meta.seconds("creationTimestamp")
        self.longest_s = self.spec.integer("maximumExecutionTimeSeconds")
        self.podsets = list(self.spec.children("podSets"))
        self.admission = self.status.child("admission")
        self.since_s = next(
            (c.seconds("lastTransitionTime") for c in self.status.children("conditions") if _is(c, "Admitted")), None
        )

    @property
    def over(self) -> bool:
        """True where it has finished."""
        return any(_is(c, "Finished") for c in self.status.children("conditions"))

    @property
    def is_admitted(self) -> bool:
        """True where Kueue has reserved its quota."""
        return "admission" in self.status

    @property
    def is_stopped(self) -> bool:
        """True where it was deactivated: it waits for somebody to start it again."""
        return "active" in self.spec and not self.spec.flag("active")

    @property
    def groups(self) -> set[tuple[str, str]]:
        """Names by which its pods may call their gang: its owners' and its own, with the namespace."""
        owners = [owner.required("name") for owner in self.meta.children("ownerReferences")]
        return {(self.namespace, name) for name in (*owners, self.meta.required("name"))}

    def template(self, podset: Object) -> Pod:
        """Return a pod as the podset describes it."""
        return Pod(podset.child("template"), name=f"{self.name}/{podset.text('name', 'main')}")


class WorkloadReader:
    """Reads all Workloads of a cluster."""

    def __init__(
        self, nodes: Sequence[Node], podsets: PodSetReader, queues: Queues, hosts: Mapping[str, str], notes: Notes
    ) -> None:
        self._nodes = {n.name for n in nodes}
        self._podsets, self._queues, self._hosts, self._notes = podsets, queues, hosts, notes
        self.jobs: list[Job] = []
        self.allocations: list[Allocation] = []

    def read(self, workloads: Iterable[Workload], pods: Sequence[Pod]) -> list[Pod]:
        """Fill `jobs` and `allocations`; return the pods that no Workload speaks for.

        A Workload that waits speaks for its waiting pods, one that is admitted for all, where each of its podsets is
        assigned to hosts or none of its pods is known. The others are told by their pods.
        """
        told_by: dict[tuple[str, str], bool] = {}
        running = {(p.group.namespace, p.group.value) for p in pods if p.node and not p.over}
        for workload in sorted(workloads, key=lambda w: w.name):
            if workload.over:
                continue
            if workload.is_admitted:
                if not self._read_admitted(workload, has_pods=bool(running & workload.groups)):
                    continue
                told_by |= dict.fromkeys(workload.groups, True)
            else:
                told_by |= dict.fromkeys(workload.groups, False)
                self._read_waiting(workload)
        self.jobs.sort(key=lambda j: (j.submit_s, j.name))
        return [p for p in pods if not _spoken_for(p, told_by)]

    def _read_waiting(self, workload: Workload) -> None:
        if workload.is_stopped:
            self._notes.add("workloads left out, they are deactivated", workload.name)
            return
        try:
            queue = self._queues.resolve(workload.namespace, workload.spec.text("queueName"))
            podsets = [self._podset(workload, item, queue) for item in workload.podsets]
        except LeaveOut as why:
            self._notes.add(f"waiting jobs left out, {why}", workload.name)
            return
        together = self._together(workload)
        job = {
            "name": workload.name,
            "podsets": podsets,
            "tenant": workload.namespace,
            "queue": queue,
            "priority": workload.spec.integer("priority") or 0,
            "submit_s": workload.created_s or 0,
            "walltime_s": workload.longest_s,
            "together": together,
        }
        self.jobs.append(parse(Job, job, place=workload.item.place))

    def _podset(self, workload: Workload, item: Object, queue: str) -> dict[str, object]:
        pod = workload.template(item)
        count = _count(item)
        rules = self._podsets.rules(pod)
        request = item.child("topologyRequest")
        if "topologyRequest" in item:
            rules |= {key: request.text(field) for key, field in _REQUEST_FIELDS.items()}
            rules[SLICE_SIZE] = str(request.integer("podSetSliceSize") or "")
        self._queues.restrict(queue, pod.demand, rules)
        data = {
            "name": item.text("name", "main"),
            "count": count,
            "min_count": item.integer("minCount"),
            "finished": _finished(workload, item.text("name", "main")),
            **pod.demand,
            **self._podsets.fields([pod], count, rules),
        }
        layers = list(request.children("podsetSliceRequiredTopologyConstraints"))
        if layers:
            sizes = [(layer.required("topology"), str(layer.integer("size") or "")) for layer in layers]
            data["slices"] = [self._podsets.slice(key, size, count) for key, size in sizes]
        self._podsets.note_unread(pod)
        return data

    def _together(self, workload: Workload) -> list[dict[str, object]]:
        """Podsets of one group (a leader and its workers) lie in one domain of the level that they require."""
        groups: dict[tuple[str, str], list[str]] = {}
        for item in workload.podsets:
            request = item.child("topologyRequest")
            if not (group := request.text("podSetGroupName")):
                continue
            if not (key := request.text("required")):
                self._notes.add("groups of podsets that only prefer a level are read one by one", workload.name)
                continue
            groups.setdefault((group, key), []).append(item.text("name", "main"))
        return [
            {"level": self._podsets.level(key), "podsets": names}
            for (_, key), names in groups.items()
            if len(names) > 1
        ]

    def _read_admitted(self, workload: Workload, *, has_pods: bool) -> bool:
        """Add an allocation from the assignment. Return False where the pods are to tell."""
        assigned = [
            found for item in workload.admission.children("podSetAssignments") if (found := self._hosts_of(item))
        ]
        without = {item.text("name", "main") for item in workload.podsets} - {a.podset for a in assigned}
        if without and (has_pods or not assigned):
            if not has_pods:
                self._notes.add("admitted workloads without an assignment to hosts and without pods", workload.name)
            return False
        if without:
            self._notes.add("podsets of admitted workloads without an assignment to hosts", workload.name)
        demands = {i.text("name", "main"): self._whole_gpus(workload.template(i)) for i in workload.podsets}
        holds: dict[tuple[str, str], int] = {}
        for part in assigned:
            if part.podset not in demands:
                self._notes.add("assignments of podsets that their workload does not have", workload.name)
                continue
            for host, count in part.hosts:
                if host not in self._nodes:
                    self._notes.add("pods on nodes that are not in the files are left out", workload.name)
                    continue
                holds[host, part.podset] = holds.get((host, part.podset), 0) + count
        if not holds:
            return True
        since, longest = workload.since_s, workload.longest_s
        allocation = {
            "job": workload.name,
            "holds": [
                {"node": node, "podset": podset, "pods": num, **{k: v * num for k, v in demands[podset].items()}}
                for (node, podset), num in sorted(holds.items())
            ],
            "queue": workload.admission.text("clusterQueue"),
            "tenant": workload.namespace,
            "priority": workload.spec.integer("priority") or 0,
            "since_s": since,
            "until_s": since + longest if since is not None and longest is not None else None,
        }
        self.allocations.append(parse(Allocation, allocation, place=workload.item.place))
        return True

    def _hosts_of(self, item: Object) -> _Assigned | None:
        levels, domains = read_assignment(item.child("topologyAssignment"))
        if not domains or levels[-1] not in HOST_KEYS:
            return None
        hosts = tuple((self._hosts.get(values[-1], values[-1]), count) for values, count in domains)
        return _Assigned(item.text("name", "main"), hosts)

    def _whole_gpus(self, pod: Pod) -> dict[str, int]:
        demand = dict(pod.demand)
        if "gpu_milli" in demand or "gpu_memory_mib" in demand:
            self._notes.add("running pods with a share of an unknown GPU count as a whole one", pod.name)
            demand = {k: v for k, v in demand.items() if k not in ("gpu_milli", "gpu_memory_mib")} | {"gpus": 1}
        return demand


def _is(condition: Object, kind: str) -> bool:
    return condition.text("type") == kind and condition.text("status") == "True"


def _spoken_for(pod: Pod, told_by: Mapping[tuple[str, str], bool]) -> bool:
    whole = told_by.get((pod.group.namespace, pod.group.value))
    return whole is True or (whole is False and pod.waits)


def _count(item: Object) -> int:
    """Return the number of pods of a podset, 1 where untold, as the API server fills it in."""
    count = item.integer("count")
    return 1 if count is None else count


def _finished(workload: Workload, podset: str) -> int:
    for item in workload.status.children("reclaimablePods"):
        if item.text("name") == podset:
            return item.integer("count") or 0
    return 0
