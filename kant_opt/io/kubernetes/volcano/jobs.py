"""Volcano's Jobs whose pods are not there yet: tasks to podsets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kant_opt.io.kubernetes.gang_rules import GangRules
from kant_opt.io.kubernetes.pods import Pod
from kant_opt.io.kubernetes.podsets import LeaveOut, PodSetReader
from kant_opt.io.kubernetes.volcano.gangs import VolcanoGangs
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Job, parse

_JOB = "volcano.sh/job-name"
_OVER = ("Completed", "Failed", "Terminated", "Aborted", "Completing", "Terminating", "Aborting")


class VolcanoJobReader:
    """Reads Jobs that have no pod in the files and have not ended; the others are told by their pods."""

    def __init__(self, podsets: PodSetReader, gangs: VolcanoGangs, levels: Sequence[str], notes: Notes) -> None:
        self._podsets, self._gangs, self._levels, self._notes = podsets, gangs, levels, notes

    def read(self, items: Iterable[Object], pods: Iterable[Pod]) -> list[Job]:
        """Return the waiting jobs by name."""
        with_pods = {(pod.namespace, pod.mark(_JOB)) for pod in pods}
        found: list[Job] = []
        for item in items:
            meta = item.child("metadata")
            key = meta.text("namespace", "default"), meta.required("name")
            if key in with_pods or item.child("status").child("state").text("phase") in _OVER:
                continue
            try:
                found.append(self._job(item, *key))
            except LeaveOut as why:
                self._notes.add(f"waiting jobs left out, {why}", "/".join(key))
        return sorted(found, key=lambda j: j.name)

    def _job(self, item: Object, namespace: str, name: str) -> Job:
        spec = item.child("spec")
        tasks = list(spec.children("tasks"))
        if not tasks:
            raise LeaveOut("they have no tasks")
        data = {
            "name": f"{namespace}/{name}",
            "podsets": [self._podset(task, f"{namespace}/{name}") for task in tasks],
            "tenant": namespace,
            "queue": spec.text("queue") or "default",
            "submit_s": item.child("metadata").seconds("creationTimestamp") or 0,
        }
        job = parse(Job, data, place=item.place)
        rules = GangRules(job, self._levels, self._notes)
        self._gangs.topology(spec, rules, job.name)
        rules.at_least(spec.integer("minAvailable") or 0)
        for task, podset in zip(tasks, job.podsets, strict=True):
            if (least := task.integer("minAvailable")) is not None:
                rules.at_least(least, [podset.name])
            self._partition(task, podset.name, rules, job.name)
        return rules.build(item.place)

    def _podset(self, task: Object, job: str) -> dict[str, object]:
        pod = Pod(task.child("template"), name=f"{job}/{task.text('name', 'main')}")
        replicas = task.integer("replicas")
        count = 1 if replicas is None else replicas
        self._podsets.note_unread(pod)
        fields = self._podsets.fields([pod], count, self._podsets.rules(pod))
        return {"name": task.text("name", "main"), "count": count, **pod.demand, **fields}

    def _partition(self, task: Object, podset: str, rules: GangRules, job: str) -> None:
        policy = task.child("partitionPolicy")
        if "networkTopology" not in policy:
            return
        size = policy.integer("partitionSize") or 0
        level, hard = self._gangs.level_and_mode(policy)
        if level is None or not hard or not rules.slices(level, size, podset):
            self._notes.add(
                "partitions that are soft, of no tier, or do not divide the task are not read, of jobs", job
            )
        else:
            rules.at_least((policy.integer("minPartitions") or 0) * size, [podset])
