"""The objective of a valid placement, written from its definition: slow, exact, and not the library's own measure."""

from __future__ import annotations

from collections import Counter

from kant_opt.fabric import Path
from kant_opt.schema import Job, Placement
from kant_opt.verify import RequestIndex

Values = tuple[tuple[str, int], ...]
"""(name, value) per objective level, most important first; names as in `LevelValue.name`."""


def evaluate(index: RequestIndex, placement: Placement) -> Values:
    """Return the value of every objective level; a weighted objective is the one level "weighted", a cost.

    In the weighted sum the admitted thousandths of all priority classes add up and count as a gain.
    """
    objective = index.request.objective
    if objective.weights:
        cost = 0
        for term, weight in objective.weights.items():
            total = sum(value for _, value in _term(term, index, placement))
            cost += -weight * total if term == "admitted" else weight * total
        return (("weighted", cost),)
    return tuple(pair for term in objective.order for pair in _term(term, index, placement))


def better(values: Values, than: Values) -> bool:
    """Return whether `values` is better in the first level where the two differ."""
    for (name, value), (_, other) in zip(values, than, strict=True):
        if value != other:
            return value > other if name.startswith("admitted[") else value < other
    return False


def _term(term: str, index: RequestIndex, placement: Placement) -> Values:
    if term == "admitted":
        return _admitted(index, placement)
    if term == "traffic":
        return (("traffic", _traffic(index, placement)),)
    if term == "broken_nodes":
        return (("broken_nodes", _broken_nodes(index, placement)),)
    if term == "broken_leaves":
        return (("broken_leaves", _broken_leaves(index, placement)),)
    return ((term, 0),)  # nothing moves yet


def _admitted(index: RequestIndex, placement: Placement) -> Values:
    total = {job.priority: 0 for job in index.request.jobs}
    for placed in placement.jobs:
        for pods in placed.pods:
            podset = index.podsets[placed.job, pods.podset]
            if podset.gpu_memory_mib is not None:
                memory = index.nodes[pods.node].gpu_memory_mib or 1
                each = -(-1000 * podset.gpu_memory_mib // memory)
            else:
                each = 1000 * podset.gpus if podset.gpu_milli is None else podset.gpu_milli
            total[index.jobs[placed.job].priority] += (each or 1) * pods.count
    return tuple((f"admitted[{priority}]", total[priority]) for priority in sorted(total, reverse=True))


def _traffic(index: RequestIndex, placement: Placement) -> int:
    inner_first = index.fabric.levels[-2::-1]
    weights = {level: 4**i for i, level in enumerate(inner_first)} | index.request.objective.traffic_weights
    total = 0
    for placed in placement.jobs:
        job = index.jobs[placed.job]
        for level in inner_first:
            per_domain = Counter(index.fabric.domain_of(node, level) for node in _pods(index, job, placement))
            total += weights.get(level, 0) * _crossings(job, per_domain)
    return total


def _crossings(job: Job, per_domain: Counter[Path]) -> int:
    if job.communication == "none" or not per_domain:
        return 0
    if job.communication == "ring":
        return len(per_domain) - 1
    pods = per_domain.total()
    return (pods * (pods - 1) - sum(n * (n - 1) for n in per_domain.values())) // 2


def _pods(index: RequestIndex, job: Job, placement: Placement) -> list[str]:
    """Return the node of every pod of the job, new and living."""
    names = {podset.name for podset in job.podsets}
    nodes = [n for p in placement.jobs if p.job == job.name for pods in p.pods for n in [pods.node] * pods.count]
    for podset, living in index.living.get(job.name, {}).items():
        nodes += [n for node, count in living.items() if podset in names for n in [node] * count]
    return nodes


def _used(index: RequestIndex, placement: Placement) -> dict[str, tuple[int, int]]:
    """Return (used, total) of the healthy GPUs per schedulable node that has some, in the ledger's units."""
    found = {}
    for node in index.request.nodes:
        ledger = index.ledger(node.name)
        used = ledger.total_used
        for placed in placement.jobs:
            for pods in placed.pods:
                if pods.node == node.name:
                    podset = index.podsets[placed.job, pods.podset]
                    each = ledger.units_of(podset) if podset.has_share else ledger.full * podset.gpus
                    used += each * pods.count
        if node.schedulable and ledger.total:
            found[node.name] = (used, ledger.total)
    return found


def _broken_nodes(index: RequestIndex, placement: Placement) -> int:
    return sum(0 < used < total for used, total in _used(index, placement).values())


def _broken_leaves(index: RequestIndex, placement: Placement) -> int:
    if len(index.fabric.levels) < 2:
        return 0
    leaf = index.fabric.levels[-2]
    nodes: Counter[Path] = Counter()
    used_nodes: Counter[Path] = Counter()
    for node, (used, _) in _used(index, placement).items():
        domain = index.fabric.domain_of(node, leaf)
        nodes[domain] += 1
        used_nodes[domain] += used > 0
    return sum(0 < used_nodes[domain] < count for domain, count in nodes.items())
