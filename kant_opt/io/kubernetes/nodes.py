"""Kubernetes nodes to nodes."""

from __future__ import annotations

from kant_opt.io.kubernetes.levels import Labels, Levels
from kant_opt.io.kubernetes.resources import (
    Amounts,
    amounts,
    cpu_and_memory,
    cuts_a_gpu,
    gpu_resource,
    num_gpus,
)
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Node, parse
from kant_opt.units import whole

_MODEL_KEYS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "gpu.nvidia.com/model",
    "cloud.google.com/gke-accelerator",
    "alibabacloud.com/gpu-card-model",
)


class NodeFacts:
    """What of a Node object is asked for more than once."""

    def __init__(self, item: Object) -> None:
        self.item = item
        meta, status = item.child("metadata"), item.child("status")
        self.name: str = meta.required("name")
        self.labels: Labels = meta.texts("labels")
        self.places: Labels = self.labels
        """Its labels, and those that other objects give it for its place in the fabric."""
        self.room: Amounts = amounts(status, "allocatable" if "allocatable" in status else "capacity")

    @property
    def gpu_resource(self) -> str:
        """The resource by which its GPUs are asked for, empty without GPUs."""
        return gpu_resource(self.room)


def read_node(facts: NodeFacts, levels: Levels, *, mixed: bool, notes: Notes) -> Node:
    """Return the node. Where GPUs of several makers are about (`mixed`), its resource name becomes a second pool."""
    item, room = facts.item, facts.room
    model = next((facts.labels[key] for key in _MODEL_KEYS if facts.labels.get(key)), "default")
    why_closed = _why_closed(item)
    for name in sorted(room):
        if room[name] and cuts_a_gpu(name):
            notes.add(f"resource {name} is a part of a GPU and is not counted, on nodes", facts.name)
    installed = num_gpus(amounts(item.child("status"), "capacity"))
    if installed > num_gpus(room):
        notes.add("nodes that offer fewer GPUs than are installed", f"{facts.name}: {num_gpus(room)} of {installed}")
    data: dict[str, object] = {
        "name": facts.name,
        "path": levels.path(facts.places),
        "pools": (model, facts.gpu_resource) if mixed and facts.gpu_resource else (model,),
        "gpus": num_gpus(room),
        "labels": facts.labels,
        "taints": [_taint(t) for t in item.child("spec").children("taints")],
        "schedulable": not why_closed,
        "why_closed": why_closed,
        **cpu_and_memory(room, up=False),
    }
    if "pods" in room:
        data["max_pods"] = whole(room["pods"])
    memory = facts.labels.get("nvidia.com/gpu.memory", "")
    if memory.isdecimal() and int(memory[:12]) > 0:
        data["gpu_memory_mib"] = int(memory[:12])
    return parse(Node, data, place=item.place)


def _taint(taint: Object) -> dict[str, str]:
    return {"key": taint.required("key"), "value": taint.text("value"), "effect": taint.required("effect")}


def _why_closed(item: Object) -> str:
    """Cordoned, being deleted, or not Ready; a node that reports no Ready condition counts as ready."""
    reasons = []
    if item.child("spec").flag("unschedulable"):
        reasons.append("cordoned")
    if "deletionTimestamp" in item.child("metadata"):
        reasons.append("being deleted")
    for condition in item.child("status").children("conditions"):
        if condition.text("type") == "Ready" and (state := condition.text("status")) != "True":
            why = condition.text("reason")
            reasons.append(f"not ready (Ready is {state or 'not told'}{', ' + why if why else ''})")
    return "; ".join(reasons)
