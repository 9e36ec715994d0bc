"""Pods to allocations (what runs) and jobs (what waits)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kant_opt.io.kubernetes.pods import Group, Pod
from kant_opt.io.kubernetes.podsets import LeaveOut, PodSetReader
from kant_opt.io.objects import Notes
from kant_opt.schema import Allocation, Job, Node, parse


@dataclass
class _PodSet:
    """Pods of one shape; those that run or are done join the waiting ones of equal role and demand."""

    role: str
    demand: dict[str, int]
    rules: dict[str, object]
    waiting: list[Pod] = field(default_factory=list)
    running: list[Pod] = field(default_factory=list)
    done: int = 0
    name: str = ""


class GangReader:
    """Reads all pods of a cluster whose nodes and levels are known."""

    def __init__(self, nodes: Sequence[Node], podsets: PodSetReader, notes: Notes) -> None:
        self._nodes = {n.name for n in nodes}
        self._podsets, self._notes = podsets, notes
        self.allocations: list[Allocation] = []
        self.jobs: list[Job] = []

    def read(self, pods: Iterable[Pod]) -> None:
        """Fill `allocations` and `jobs`: allocations by name, jobs by submit time, then name."""
        groups: dict[Group, list[Pod]] = {}
        for pod in sorted(pods, key=lambda p: p.name):
            if self._counts(pod):
                groups.setdefault(_alone(pod) if pod.waits and not pod.group.gang else pod.group, []).append(pod)
        names = _names(groups)
        for group, members in groups.items():
            if any(p.waits for p in members):
                self._read_waiting(names[group], members)
            else:
                self._add_allocation(names[group], [(p, "") for p in members if not p.over])
        self.allocations.sort(key=lambda a: a.job)
        self.jobs.sort(key=lambda j: (j.submit_s, j.name))

    def _counts(self, pod: Pod) -> bool:
        if pod.over:
            return pod.group.gang  # a gang that still waits remembers its finished members
        if pod.node and pod.node not in self._nodes:
            self._notes.add("pods on nodes that are not in the files are left out", pod.name)
            return False
        if pod.waits and pod.group.source == "DaemonSet":
            self._notes.add("waiting pods of DaemonSets are left out (each has its node)", pod.name)
            return False
        return not (pod.waits and pod.ending)

    def _read_waiting(self, name: str, members: list[Pod]) -> None:
        podsets: dict[str, _PodSet] = {}
        for pod in (p for p in members if p.waits):
            shape = self._shape(pod)
            podsets.setdefault(repr((shape.role, shape.demand, shape.rules)), shape).waiting.append(pod)
        by_demand = {repr((s.role, s.demand)): s for s in podsets.values()}
        for pod in members:
            if pod.waits or pod.ending or pod.phase == "Failed":
                continue  # what is ending is replaced by a pod that waits, or is not part of the gang any more
            key = repr((pod.role, pod.demand))
            if key not in by_demand:
                by_demand[key] = podsets[f"old {key}"] = _PodSet(pod.role, pod.demand, {})
            if pod.over:
                by_demand[key].done += 1
            else:
                by_demand[key].running.append(pod)
        _name_podsets(list(podsets.values()))
        self._add_job(name, list(podsets.values()))
        self._add_allocation(name, [(p, s.name) for s in podsets.values() for p in s.running])
        self._add_allocation(f"{name} (ending)", [(p, "") for p in members if p.ending and not p.over])

    def _shape(self, pod: Pod) -> _PodSet:
        return _PodSet(pod.role, pod.demand, self._podsets.rules(pod))

    def _add_job(self, name: str, podsets: list[_PodSet]) -> None:
        pods = [p for s in podsets for p in s.waiting]
        try:
            data = [self._podset_data(s) for s in podsets]
        except LeaveOut as why:
            self._notes.add(f"waiting jobs left out, {why}", name)
            return
        for pod in pods:
            self._podsets.note_unread(pod)
        if any(any(p.spec.children("schedulingGates")) for p in pods):
            self._notes.add("waiting jobs with scheduling gates are read as if the gates were open", name)
        known = [p for s in podsets for p in (*s.waiting, *s.running)]
        longest = [p.longest_s for p in pods]
        job: dict[str, object] = {
            "name": name,
            "podsets": data,
            "tenant": pods[0].namespace,
            "queue": next((p.queue for p in known if p.queue), ""),
            "priority": max(p.spec.integer("priority") or 0 for p in pods),
            "submit_s": min((p.created_s for p in known if p.created_s is not None), default=0),
            "walltime_s": None if None in longest else max(x for x in longest if x is not None),
        }
        self.jobs.append(parse(Job, job, place=pods[0].item.place))

    def _podset_data(self, podset: _PodSet) -> dict[str, object]:
        count = len(podset.waiting) + len(podset.running) + podset.done
        return {
            "name": podset.name,
            "count": count,
            "finished": podset.done,
            **podset.demand,
            **self._podsets.fields(podset.waiting, count, podset.rules),
        }

    def _add_allocation(self, name: str, members: list[tuple[Pod, str]]) -> None:
        if not members:
            return
        holds: dict[tuple[str, str], dict[str, int]] = {}
        shares: list[dict[str, object]] = []
        for pod, podset in members:
            self._podsets.note_resources(pod)
            demand = dict(pod.demand)
            if "gpu_milli" in demand or "gpu_memory_mib" in demand:
                if (index := pod.gpu_index) is not None:
                    shares.append({"node": pod.node, "podset": podset, "gpu_indices": (index,), **demand})
                    continue
                self._notes.add("running pods with a share of an unknown GPU count as a whole one", pod.name)
                demand = {k: v for k, v in demand.items() if k not in ("gpu_milli", "gpu_memory_mib")} | {"gpus": 1}
            hold = holds.setdefault((pod.node, podset), {"pods": 0})
            for key, value in {"pods": 1, **demand}.items():
                hold[key] = hold.get(key, 0) + value
        pods = [pod for pod, _ in members]
        since = [p.started_s for p in pods]
        until = [p.started_s + p.longest_s for p in pods if p.started_s is not None and p.longest_s is not None]
        allocation: dict[str, object] = {
            "job": name,
            "holds": [{"node": n, "podset": s, **hold} for (n, s), hold in sorted(holds.items())] + shares,
            "queue": next((p.queue for p in pods if p.queue), ""),
            "tenant": pods[0].namespace,
            "priority": max(p.spec.integer("priority") or 0 for p in pods),
            "since_s": min((s for s in since if s is not None), default=None),
            "until_s": max(until) if len(until) == len(pods) else None,
        }
        self.allocations.append(parse(Allocation, allocation, place=pods[0].item.place))


def _alone(pod: Pod) -> Group:
    """A pod that waits by itself is a job by itself, whatever its owner runs besides."""
    return Group(pod.namespace, pod.meta.required("name"), "Pod", gang=False)


def _names(groups: Mapping[Group, object]) -> dict[Group, str]:
    """Namespace and name; where a gang and a controller share both, all but the first also tell their source."""
    names: dict[Group, str] = {}
    taken: set[str] = set()
    for group in sorted(groups):
        name = f"{group.namespace}/{group.value}"
        names[group] = f"{name} ({group.source})" if name in taken else name
        taken.add(names[group])
    return names


def _name_podsets(podsets: list[_PodSet]) -> None:
    """Name each after its role where the roles tell them apart, else with its number as well."""
    roles = [s.role for s in podsets]
    for i, podset in enumerate(podsets):
        if all(roles) and len(set(roles)) == len(roles):
            podset.name = podset.role
        else:
            podset.name = "main" if len(podsets) == 1 else f"{podset.role or 'pods'}-{i + 1}"
