"""One Kubernetes pod: its state, what it holds or asks for, and which gang it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kant_opt.errors import InputError
from kant_opt.io.kubernetes.resources import Amounts, cpu_and_memory, effective_requests, gpu_resource, num_gpus
from kant_opt.io.objects import Object
from kant_opt.units import MILLI, quantity, whole

_GROUP_MARKS: tuple[tuple[str, ...], ...] = (
    ("scheduling.k8s.io/group-name",),  # Volcano
    ("pod-group-name",),  # KAI
    ("kueue.x-k8s.io/pod-group-name",),
    ("scheduling.x-k8s.io/pod-group",),  # coscheduling
    ("pod-group.scheduling.sigs.k8s.io",),  # coscheduling, before
    ("pod-group.scheduling.sigs.k8s.io/name",),
    ("gang.scheduling.koordinator.sh/name",),
    ("jobset.sigs.k8s.io/jobset-name",),
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
    ("training.kubeflow.org/job-name",),
    ("ray.io/cluster",),
    ("batch.kubernetes.io/job-name",),
    ("job-name",),
)
"""Labels or annotations that name a gang, the scheduler's own before those of controllers."""
_ROLE_MARKS = (
    "jobset.sigs.k8s.io/replicatedjob-name",
    "volcano.sh/task-spec",
    "training.kubeflow.org/replica-type",
    "kueue.x-k8s.io/podset",
    "kai.scheduler/subgroup-name",
)
_QUEUE_MARKS = ("kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "scheduling.volcano.sh/queue-name")
_NO_GANGS = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Node"))
"""Owners whose pods start one by one."""


@dataclass(frozen=True, order=True)
class Group:
    """Pods that belong together; `source` is the mark or kind of owner that says so."""

    namespace: str
    value: str
    source: str
    gang: bool


class Pod:
    """A pod as far as placement is concerned. Fields that only some pods are asked for are read late."""

    def __init__(self, item: Object, *, name: str = "") -> None:
        """Read the object of a pod, or the template of one, which is known by the `name` given."""
        self.item = item
        self.meta, self.spec, status = item.child("metadata"), item.child("spec"), item.child("status")
        self.labels, self.annotations = self.meta.texts("labels"), self.meta.texts("annotations")
        self.namespace = self.meta.text("namespace", "default")
        self.name = name or f"{self.namespace}/{self.meta.required('name')}"
        self.node = self.spec.text("nodeName")
        self.phase = status.text("phase")
        self.ending = "deletionTimestamp" in self.meta
        self.created_s = self.meta.seconds("creationTimestamp")
        self.started_s = status.seconds("startTime")
        self.longest_s = self.spec.integer("activeDeadlineSeconds")

    @property
    def over(self) -> bool:
        """True where it has ended and holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def waits(self) -> bool:
        """True where it has no node and still needs one."""
        return not (self.node or self.over)

    def mark(self, key: str) -> str:
        """Return an annotation or label, empty where there is none."""
        return self.annotations.get(key) or self.labels.get(key, "")

    @cached_property
    def group(self) -> Group:
        """The gang or controller it belongs to, itself where it stands alone."""
        for keys in _GROUP_MARKS:
            if all(values := [self.mark(key) for key in keys]):
                return Group(self.namespace, "-".join(values), keys[0], gang=True)
        for owner in self.meta.children("ownerReferences"):
            if owner.flag("controller"):
                kind = owner.required("kind")
                return Group(self.namespace, owner.required("name"), kind, gang=kind not in _NO_GANGS)
        return Group(self.namespace, self.meta.required("name"), "Pod", gang=False)

    @property
    def role(self) -> str:
        """What its gang calls pods of its sort, empty where untold."""
        return next((role for key in _ROLE_MARKS if (role := self.mark(key))), "")

    @property
    def queue(self) -> str:
        """The queue it was sent to, empty where untold."""
        return next((queue for key in _QUEUE_MARKS if (queue := self.mark(key))), "")

    @cached_property
    def held(self) -> Amounts:
        """Its effective requests, exact."""
        return effective_requests(self.item)

    @cached_property
    def demand(self) -> dict[str, int]:
        """Its requests as podset fields: CPU, memory, and GPUs or a share of one."""
        gpus = num_gpus(self.held)
        found: dict[str, int] = cpu_and_memory(self.held, up=True)
        return found | ({"gpus": gpus} if gpus else self._share())

    @property
    def gpu_resource(self) -> str:
        """The resource by which it asks for whole GPUs."""
        return gpu_resource(self.held)

    @property
    def gpu_models(self) -> tuple[str, ...]:
        """GPU models it is limited to (openb's pods), empty where any will do."""
        text = self.annotations.get("alibabacloud.com/gpu-card-model", "")
        return tuple(filter(None, text.split("|")))

    @property
    def gpu_index(self) -> int | None:
        """The one GPU that a running pod with a share uses, where an annotation tells it."""
        text = self.annotations.get("alibabacloud.com/gpu-index", "")
        return int(text) if text.isdecimal() and len(text) <= 4 else None

    def _share(self) -> dict[str, int]:
        """GPUs that are asked for by annotation: openb's count and thousandths, KAI's fraction and MiB."""
        for key, field, scale in (
            ("alibabacloud.com/gpu-milli", "gpu_milli", 1),
            ("gpu-fraction", "gpu_milli", MILLI),
            ("gpu-memory", "gpu_memory_mib", 1),
        ):
            if not (text := self.annotations.get(key, "")):
                continue
            value = self._amount(key, text, scale)
            if field == "gpu_milli" and value >= MILLI:
                counted = self.annotations.get("alibabacloud.com/gpu-count", "")
                return {"gpus": self._amount("alibabacloud.com/gpu-count", counted) if counted else value // MILLI}
            return {field: value} if value else {}
        return {}

    def _amount(self, key: str, text: str, scale: int = 1) -> int:
        try:
            value = whole(quantity(text) * scale, up=True)
        except InputError as error:
            raise error.within(f"{self.item.place}.metadata.annotations.{key}") from None
        if value < 0:
            raise self.meta.fault(f"annotations.{key}", f"{text!r} is below 0", "amounts start at 0")
        return value
