"""KAI's PodGroups as rules on the jobs of their pods, and Queues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from kant_opt.io.kubernetes.gang_rules import GangRules
from kant_opt.io.kubernetes.levels import Levels
from kant_opt.io.kubernetes.podsets import LeaveOut
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Job, Queue, parse
from kant_opt.units import whole

_MEGABYTE = 10**6
_CAPS = {"gpu": ("gpu", 1), "cpu": ("cpu_milli", 1), "memory": ("memory_bytes", _MEGABYTE)}


class KaiGangs:
    """Applies PodGroups to jobs. A sub-group is the podset that its pods name; one with children joins theirs."""

    def __init__(self, groups: Iterable[Object], topologies: Iterable[Object], levels: Levels, notes: Notes) -> None:
        self._groups = {f"{_meta(g).text('namespace', 'default')}/{_meta(g).required('name')}": g for g in groups}
        self._labels = {
            (_meta(t).text("name"), item.text("alias")): item.text("nodeLabel")
            for t in topologies
            for item in t.child("spec").children("levels")
        }
        self._levels, self._notes = levels, notes

    def apply(self, job: Job) -> Job | None:
        """Return the job with the rules of its PodGroup, None where it names a level that is not there."""
        if (group := self._groups.get(job.name)) is None:
            return job
        try:
            return self._ruled(job, group)
        except LeaveOut as why:
            self._notes.add(f"waiting jobs left out, {why}", job.name)
            return None

    def _ruled(self, job: Job, group: Object) -> Job:
        spec = group.child("spec")
        rules = GangRules(job, self._levels.names, self._notes)
        if queue := spec.text("queue"):
            rules.set(queue=queue)
        if "preemptibility" in spec:
            rules.set(preemptible=spec.text("preemptibility") == "preemptible")
        subs = {sub.required("name"): sub for sub in spec.children("subGroups")}
        self._constrain(spec, rules, None)
        if not subs:
            rules.at_least(spec.integer("minMember") or 0)
        children: dict[str, list[str]] = {}
        for name, sub in subs.items():
            children.setdefault(sub.text("parent"), []).append(name)
        for name, sub in subs.items():
            members = _members(name, children, rules.podsets, subs)
            self._constrain(sub, rules, members)
            if name not in children:
                rules.at_least(sub.integer("minMember") or 0, members)
        for parent, names in children.items():
            holder = subs.get(parent, spec)
            if (holder.integer("minSubGroup") or len(names)) < len(names):
                self._notes.add("gangs that may start with fewer sub-groups wait for all", job.name)
        return rules.build(group.place)

    def _constrain(self, holder: Object, rules: GangRules, podsets: list[str] | None) -> None:
        constraint = holder.child("topologyConstraint")
        topology = constraint.text("topology")
        for field, hard in (("preferredTopologyLevel", False), ("requiredTopologyLevel", True)):
            if named := constraint.text(field):
                label = self._labels.get((topology, named), named)
                if (level := self._levels.level_of(label)) is None:
                    raise LeaveOut(f"no level stands for their topology level {named!r}")
                rules.within(level, podsets, hard=hard)


def read_queues(items: Iterable[Object], notes: Notes) -> list[Queue]:
    """Return the queues; what caps one is its limit, as quota and weight only share out among the waiting."""
    queues = []
    for item in items:
        spec, name = item.child("spec"), _meta(item).required("name")
        quotas = []
        for kind, (resource, scale) in _CAPS.items():
            limit = spec.child("resources").child(kind).number("limit")
            if limit is not None and limit >= 0:
                quotas.append({"resource": resource, "guaranteed": whole(Decimal(str(limit)) * scale)})
        if "parentQueue" in spec:
            notes.add("limits of parent queues do not bind the queues below, of queues", name)
        queues.append(parse(Queue, {"name": name, "quotas": quotas}, place=item.place))
    return queues


def _members(
    name: str, children: Mapping[str, list[str]], podsets: tuple[str, ...], subs: Mapping[str, Object]
) -> list[str]:
    """Return the podsets of a sub-group and those below it; of a role with several shapes names end in a number."""
    names: list[str] = []
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in names:  # a circle of parents ends here
            names.append(here)
            waiting += children.get(here, [])
    return [p for p in podsets if p in names or (p not in subs and p.rpartition("-")[0] in names)]


def _meta(item: Object) -> Object:
    return item.child("metadata")
