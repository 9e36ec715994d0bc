"""Nothing on a node is given away twice: GPUs, CPU, memory, pods."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.schema import Node, PodSet
from kant_opt.verify.gpus import GpuLedger
from kant_opt.verify.state import NewPods, State
from kant_opt.verify.violation import Finding, rule


@rule("capacity")
def capacity(state: State) -> Iterator[Finding]:
    """On each node with new pods these fit beside what runs; where too much runs already, nothing is free."""
    for name, pods in state.on_node.items():
        node = state.index.nodes[name]
        yield from ((name, text) for text in _counted(state, node, pods))
        if node.gpus or any(p.podset.gpus or p.podset.has_share or p.entry.gpus for p in pods):
            yield from ((name, text) for text in _gpus(state.index.ledger(name).copy(), pods))


def _counted(state: State, node: Node, pods: list[NewPods]) -> Iterator[str]:
    holds = state.index.holds.get(node.name, ())
    if node.cpu_milli is not None:
        held, new = sum(h.cpu_milli for h in holds), sum(p.entry.count * p.podset.cpu_milli for p in pods)
        yield from _within("milli-CPU", held, new, node.cpu_milli)
    if node.memory_bytes is not None:
        held, new = sum(h.memory_bytes for h in holds), sum(p.entry.count * p.podset.memory_bytes for p in pods)
        yield from _within("bytes of memory", held, new, node.memory_bytes)
    if node.max_pods is not None:
        yield from _within("pods", sum(h.pods for h in holds), sum(p.entry.count for p in pods), node.max_pods)


def _within(unit: str, held: int, new: int, limit: int) -> Iterator[str]:
    if new > max(0, limit - held):
        yield f"{held} {unit} held and {new} new exceed {limit}"


def _gpus(ledger: GpuLedger, pods: list[NewPods]) -> Iterator[str]:
    """Take the GPUs that pods name one by one, then count those left for pods that name none."""
    unnamed = 0
    for job, podset, entry in pods:
        who = f"{job.name}/{podset.name}"
        for indices in entry.gpus or ((),) * entry.count:
            if not indices and not podset.has_share:
                unnamed += podset.gpus
            elif len(indices) != (wanted := 1 if podset.has_share else podset.gpus):
                yield f"a pod of {who} names {len(indices)} GPUs, it needs {wanted}"
            else:
                yield from _take(ledger, who, podset, indices)
    if unnamed > (free := len(ledger.free)):
        yield f"{unnamed} whole GPUs needed, {free} of {len(ledger.used)} healthy ones free"


def _take(ledger: GpuLedger, who: str, podset: PodSet, indices: tuple[int, ...]) -> Iterator[str]:
    units = ledger.units_of(podset)
    for index in indices:
        if index not in ledger.used:
            yield f"{who} names GPU {index}, which is " + ("not healthy" if index < ledger.node.gpus else "not there")
        elif ledger.used[index] + units > ledger.full:
            yield (
                f"{who} needs {_thousandths(units, ledger)} thousandths of GPU {index}, "
                f"{_thousandths(ledger.used[index], ledger)} are taken"
            )
        else:
            ledger.used[index] += units


def _thousandths(units: int, ledger: GpuLedger) -> str:
    return f"{units / ledger.memory:.15g}"
