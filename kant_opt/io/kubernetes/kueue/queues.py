"""ClusterQueues to queues with quotas, LocalQueues to the ClusterQueue behind them, flavors to nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from kant_opt.io.kubernetes.podsets import LeaveOut, Rules
from kant_opt.io.kubernetes.resources import GPU_RESOURCES, amount
from kant_opt.io.kubernetes.sources import KUEUE, Cluster
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Job, Queue, parse
from kant_opt.units import MILLI, whole

_RESOURCES = {"cpu": "cpu_milli", "memory": "memory_bytes"} | dict.fromkeys(GPU_RESOURCES, "gpu")


@dataclass(frozen=True)
class Flavor:
    """A ResourceFlavor: the nodes with all its labels, and what pods that are sent there tolerate."""

    name: str
    labels: dict[str, str]
    tolerations: list[dict[str, str]]

    def covers(self, labels: dict[str, str]) -> bool:
        """Return whether a node with these labels is of this flavor."""
        return all(labels.get(key) == value for key, value in self.labels.items())


@dataclass
class _ClusterQueue:
    queue: Queue
    flavors: dict[str, list[Flavor]] = field(default_factory=dict)
    """Resource -> the flavors that offer it."""


class Queues:
    """Kueue's queues. A queue of several flavors for one resource has a quota for each: flavors are node pools then."""

    def __init__(self, cluster: Cluster, notes: Notes) -> None:
        self._notes = notes
        self._flavors = {_name(item): _flavor(item) for item in cluster.of(KUEUE, "ResourceFlavor")}
        found = [self._read(item) for item in cluster.of(KUEUE, "ClusterQueue")]
        self._by_name = {q.queue.name: q for q in found}
        self._local = {_full_name(i): i.child("spec").required("clusterQueue") for i in cluster.of(KUEUE, "LocalQueue")}
        self.flavors_are_pools = any(len(f) > 1 for q in found for f in q.flavors.values())

    @property
    def all(self) -> tuple[Queue, ...]:
        """Every ClusterQueue, in the order of the files."""
        return tuple(q.queue for q in self._by_name.values())

    def pools(self, labels: dict[str, str]) -> tuple[str, ...]:
        """Return the flavors of a node where flavors are pools."""
        if not self.flavors_are_pools:
            return ()
        return tuple(f.name for f in self._flavors.values() if f.covers(labels))

    def resolve(self, namespace: str, local: str) -> str:
        """Return the ClusterQueue behind a LocalQueue; the name as it is where no ClusterQueue is in the files.

        Raises LeaveOut for a queue that leads to none of them.
        """
        if not self._by_name or not local:
            return local
        target = self._local.get(f"{namespace}/{local}", "")
        if target not in self._by_name:
            raise LeaveOut(f"their queue {local!r} leads to no ClusterQueue in the files")
        return target

    def rename(self, job: Job) -> Job:
        """Return a job whose pods name a LocalQueue with the ClusterQueue behind it; others as they are."""
        queue = self._local.get(f"{job.tenant}/{job.queue}", job.queue)
        return job.model_copy(update={"queue": queue})

    def restrict(self, queue: str, demand: dict[str, int], rules: Rules) -> None:
        """Narrow the rules of a podset to the nodes of the flavors that its queue offers for what it asks."""
        if (known := self._by_name.get(queue)) is None:
            return
        asked = [r for r in ("gpu", "cpu_milli", "memory_bytes") if _asks(demand, r)]
        seen: list[list[Flavor]] = []
        for resource in asked:
            flavors = known.flavors.get(resource, [])
            if not flavors or flavors in seen:
                continue
            seen.append(flavors)
            if len(flavors) == 1:
                _send_to(flavors[0], rules)
            elif not rules.get("pools"):
                rules["pools"] = tuple(f.name for f in flavors)
            else:
                self._notes.add("queues with several flavors whose nodes are not told apart", queue)

    def _read(self, item: Object) -> _ClusterQueue:
        name, spec = _name(item), item.child("spec")
        cohort = spec.text("cohortName") or spec.text("cohort")
        nominal: dict[tuple[str, str], Decimal] = {}
        limits: dict[tuple[str, str], Decimal | None] = {}
        flavors: dict[str, list[Flavor]] = {}
        for group in spec.children("resourceGroups"):
            for entry in group.children("flavors"):
                flavor = self._flavors.get(entry.required("name")) or Flavor(entry.required("name"), {}, [])
                if flavor.name not in self._flavors:
                    self._notes.add("flavors that are not in the files are taken for all nodes", flavor.name)
                for quota in entry.children("resources"):
                    resource = _RESOURCES.get(quota.required("name"))
                    if resource is None:
                        self._notes.add(f"quotas of {quota.text('name')} are not counted, of queues", name)
                        continue
                    if flavor not in flavors.setdefault(resource, []):
                        flavors[resource].append(flavor)
                    key = (resource, flavor.name)
                    own = amount(quota, "nominalQuota")
                    most = own + amount(quota, "borrowingLimit") if cohort and "borrowingLimit" in quota else None
                    before = limits.get(key, Decimal(0))
                    nominal[key] = nominal.get(key, Decimal(0)) + own
                    limits[key] = None if most is None or before is None else before + most
                    if "lendingLimit" in quota:
                        self._notes.add("lending limits are not read, of queues", name)
        quotas = []
        for (resource, flavor_name), own in nominal.items():
            limit = limits[resource, flavor_name]
            pool = flavor_name if len(flavors[resource]) > 1 else ""
            quotas.append(
                {
                    "resource": resource,
                    "pool": pool,
                    "guaranteed": _units(own, resource),
                    "limit": None if limit is None else _units(limit, resource),
                }
            )
        for resource in ("gpu", "cpu_milli", "memory_bytes"):
            if resource not in flavors:  # Kueue admits nothing that asks for a resource its queue does not cover
                quotas.append({"resource": resource, "limit": 0})
        queue = parse(Queue, {"name": name, "cohort": cohort, "quotas": quotas}, place=item.place)
        return _ClusterQueue(queue, flavors)


def _send_to(flavor: Flavor, rules: Rules) -> None:
    selector = rules.get("selector")
    merged: dict[str, tuple[str, ...]] = dict(selector) if isinstance(selector, dict) else {}
    for key, value in flavor.labels.items():
        merged[key] = (value,) if value in merged.get(key, (value,)) else ()
    rules["selector"] = merged
    tolerations = rules.get("tolerations")
    rules["tolerations"] = [*(tolerations if isinstance(tolerations, list) else ()), *flavor.tolerations]


def _asks(demand: dict[str, int], resource: str) -> bool:
    if resource != "gpu":
        return bool(demand.get(resource))
    return any(demand.get(key) for key in ("gpus", "gpu_milli", "gpu_memory_mib"))


def _units(value: Decimal, resource: str) -> int:
    return whole(value * MILLI if resource == "cpu_milli" else value)


def _flavor(item: Object) -> Flavor:
    spec = item.child("spec")
    tolerations = [
        {"operator": t.text("operator") or "Equal", **{k: t.text(k) for k in ("key", "value", "effect") if t.text(k)}}
        for t in spec.children("tolerations")
    ]
    return Flavor(_name(item), spec.texts("nodeLabels"), tolerations)


def _name(item: Object) -> str:
    return item.child("metadata").required("name")


def _full_name(item: Object) -> str:
    return f"{item.child('metadata').text('namespace', 'default')}/{_name(item)}"
