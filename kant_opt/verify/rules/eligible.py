"""The node takes such pods at all."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.schema import Node, PodSet
from kant_opt.verify.state import State
from kant_opt.verify.texts import some
from kant_opt.verify.violation import Finding, rule


@rule("eligible")
def eligible(state: State) -> Iterator[Finding]:
    """Each node with new pods of a podset is open and suits it: pools, labels, lists, taints, known GPU memory.

    A job that is to start after others has no pods while these are queued or running.
    """
    for job in state.placed.values():
        if job.after and any(state.new.get(job.name, {}).values()):
            yield job.name, f"it is to start after {some(job.after)}, not ended yet"
    for job, podset in state.placed_podsets():
        for name in state.new_of(job.name, podset.name):
            for why in _hindrances(podset, state.index.nodes[name]):
                yield f"{job.name}/{podset.name}", f"node {name!r} {why}"


def _hindrances(podset: PodSet, node: Node) -> Iterator[str]:
    if not node.schedulable:
        yield "is not schedulable" + (f" ({node.why_closed})" if node.why_closed else "")
    if podset.pools and not set(podset.pools) & set(node.pools):
        yield f"is in pool {some(node.pools)}, wanted {some(podset.pools)}"
    for label, allowed in podset.selector.items():
        if (value := node.labels.get(label)) is None:
            yield f"has no label {label!r}"
        elif value not in allowed:
            yield f"has {label!r} = {value!r}, wanted {some(allowed)}"
    if podset.nodes and node.name not in podset.nodes:
        yield f"is not among the {len(podset.nodes)} nodes listed"
    if node.name in podset.not_nodes:
        yield "is among the nodes ruled out"
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not any(t.covers(taint) for t in podset.tolerations):
            yield f"has the taint {taint.key}={taint.value}:{taint.effect}"
    if podset.gpu_memory_mib is not None and node.gpu_memory_mib is None:
        yield "does not tell the memory of its GPUs"
