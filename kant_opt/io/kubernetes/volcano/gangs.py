"""Volcano's PodGroups as rules on the jobs of their pods, and Queues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kant_opt.io.kubernetes.gang_rules import GangRules
from kant_opt.io.kubernetes.resources import GPU_RESOURCES, amounts
from kant_opt.io.kubernetes.volcano.hypernodes import HyperNodes
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Job, Queue, parse
from kant_opt.units import MILLI, whole

TASK = "volcano.sh/task-spec"


class VolcanoGangs:
    """Applies PodGroups to jobs. A hard topology is a required level, a soft one a preferred level."""

    def __init__(self, groups: Iterable[Object], hypers: HyperNodes, levels: Sequence[str], notes: Notes) -> None:
        self._groups = {f"{_meta(g).text('namespace', 'default')}/{_meta(g).required('name')}": g for g in groups}
        self._hypers, self._levels, self._notes = hypers, levels, notes

    def apply(self, job: Job) -> Job:
        """Return the job with the rules of its PodGroup, where there is one."""
        if (group := self._groups.get(job.name)) is None:
            return job
        spec = group.child("spec")
        rules = GangRules(job, self._levels, self._notes)
        if queue := spec.text("queue"):
            rules.set(queue=queue)
        self.topology(spec, rules, job.name)
        rules.at_least(spec.integer("minMember") or 0)
        by_task = spec.child("minTaskMember")
        for name in rules.podsets:
            if name in by_task:
                rules.at_least(by_task.integer(name) or 0, [name])
        for policy in spec.children("subGroupPolicy"):
            self._sub_groups(policy, rules, job.name)
        return rules.build(group.place)

    def topology(self, holder: Object, rules: GangRules, job: str, podset: str = "") -> None:
        """Add the rule of a `networkTopology`, of one podset where named."""
        if "networkTopology" not in holder:
            return
        level, hard = self.level_and_mode(holder)
        if level is None:
            self._notes.add("network topologies of tiers that no HyperNode has are not read, of jobs", job)
        rules.within(level, [podset] if podset else None, hard=hard)

    def level_and_mode(self, holder: Object) -> tuple[str | None, bool]:
        """Return the level of a `networkTopology` and whether it is hard."""
        topology = holder.child("networkTopology")
        mode = topology.text("mode") or "hard"
        if mode not in ("hard", "soft"):
            raise topology.fault("mode", f"unknown mode {mode[:40]!r}", "use hard or soft")
        level = self._hypers.level(topology.integer("highestTierAllowed"), topology.text("highestTierName"))
        return level, mode == "hard"

    def _sub_groups(self, policy: Object, rules: GangRules, job: str) -> None:
        """Pods of one shape are alike, so sub-groups of equal size are slices of their podset."""
        wanted = policy.child("labelSelector").texts("matchLabels").get(TASK)
        podset = rules.podsets[0] if len(rules.podsets) == 1 else wanted
        size = policy.integer("subGroupSize") or 1
        level, hard = self.level_and_mode(policy)
        if podset not in rules.podsets or podset is None or level is None or not hard:
            self._notes.add("sub-groups without a hard topology or over several podsets are not read, of jobs", job)
        elif not rules.slices(level, size, podset):
            self._notes.add(f"sub-groups of {size} pods that do not divide the gang are not read, of jobs", job)
        else:
            rules.at_least((policy.integer("minSubGroups") or 0) * size, [podset])


def read_queues(items: Iterable[Object], notes: Notes) -> list[Queue]:
    """Return the queues; what caps one is its capability, as shares by weight or desert only order the jobs."""
    queues = []
    for item in items:
        spec, name = item.child("spec"), _meta(item).required("name")
        cap = amounts(spec, "capability")
        gpus = [whole(cap[r]) for r in GPU_RESOURCES if r in cap]
        caps = {"gpu": sum(gpus)} if gpus else {}
        if "cpu" in cap:
            caps["cpu_milli"] = whole(cap["cpu"] * MILLI)
        if "memory" in cap:
            caps["memory_bytes"] = whole(cap["memory"])
        for field in ("deserved", "guarantee", "parent"):
            if field in spec:
                notes.add(f"{field} is not read, of queues", name)
        quotas = [{"resource": resource, "guaranteed": value} for resource, value in caps.items()]
        queues.append(parse(Queue, {"name": name, "quotas": quotas}, place=item.place))
    return queues


def _meta(item: Object) -> Object:
    return item.child("metadata")
