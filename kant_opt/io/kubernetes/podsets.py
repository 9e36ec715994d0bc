"""What a pod, running or a template, says of the podset it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kant_opt.io.kubernetes.levels import Levels
from kant_opt.io.kubernetes.pods import Pod
from kant_opt.io.kubernetes.resources import cuts_a_gpu, not_counted
from kant_opt.io.kubernetes.selection import Selection, note_unread
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import Node

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"

Rules = dict[str, object]


class LeaveOut(Exception):
    """A waiting job cannot be told in a request; the text says why."""


class PodSetReader:
    """Turns pods into the fields of podsets, on a cluster whose nodes and levels are known."""

    def __init__(self, nodes: Sequence[Node], levels: Levels, *, mixed: bool, notes: Notes) -> None:
        self._levels, self._mixed, self._notes = levels, mixed, notes
        self._selection = Selection(nodes)

    def rules(self, pod: Pod) -> Rules:
        """Return where the pod may go: podset fields, and its topology annotations under their own keys."""
        rules: Rules = self._selection.rules(pod.spec)
        rules["tolerations"] = [t for t in map(self.toleration, pod.spec.children("tolerations")) if t]
        rules["pools"] = pod.gpu_models or ((pod.gpu_resource,) if self._mixed and pod.gpu_resource else ())
        for key in (REQUIRED, PREFERRED, SLICE_LEVEL, SLICE_SIZE):
            rules[key] = pod.annotations.get(key, "")
        return rules

    def fields(self, pods: Iterable[Pod], count: int, rules: Rules) -> dict[str, object]:
        """Return the fields that `rules` stand for, of a podset of `count` pods like `pods`. Raises LeaveOut."""
        rest = dict(rules)
        required, preferred, slice_key, slice_size = (
            str(rest.pop(key, "")) for key in (REQUIRED, PREFERRED, SLICE_LEVEL, SLICE_SIZE)
        )
        data = {"required_level": self.level(required), "preferred_level": self.level(preferred), **rest}
        for pod in pods:
            if "resourceClaims" in pod.spec:
                raise LeaveOut("they claim devices (resourceClaims)")
            for name in not_counted(pod.held):
                if cuts_a_gpu(name):
                    raise LeaveOut(f"they ask for {name}")
        if slice_key:
            data["slices"] = [self.slice(slice_key, slice_size, count)]
        return data

    def slice(self, key: str, size: str, count: int) -> dict[str, object]:
        """Return the slice of `size` pods, a number as text, on the level of a label. Raises LeaveOut."""
        number = int(size) if size.isdecimal() and len(size) < 8 else 0
        if not number or count % number:
            raise LeaveOut(f"their slices of {size!r} pods do not divide the {count} pods there are")
        return {"level": self.level(key), "size": number}

    def level(self, key: str) -> str | None:
        """Return the level of a topology label, None for no label. Raises LeaveOut where no level stands for it."""
        if not key:
            return None
        level = self._levels.level_of(key)
        if level is None:
            raise LeaveOut(f"no level stands for their topology label {key!r}")
        return level

    def toleration(self, item: Object) -> dict[str, str] | None:
        """Return a toleration's fields, None for one that is not read."""
        operator = item.text("operator", "Equal") or "Equal"
        if operator not in ("Equal", "Exists"):
            self._notes.add(f"tolerations with operator {operator!r} are not read", item.text("key"))
            return None
        fields = ("key", "value", "effect")
        return {"operator": operator, **{f: item.text(f) for f in fields if item.text(f)}}

    def note_unread(self, pod: Pod) -> None:
        """Note the rules and resources of a waiting pod that are not understood."""
        note_unread(pod.spec, self._notes, pod.name)
        self.note_resources(pod)

    def note_resources(self, pod: Pod) -> None:
        """Note the resources that a pod holds or asks for and that are not counted."""
        for name in not_counted(pod.held):
            self._notes.add(f"resource {name} is not counted, of pods", pod.name)
