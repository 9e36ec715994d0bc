"""GPUs in use over the time of a plan: the allocation ratio as a function of time."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kant_opt.metrics.admitted import pod_gpu_milli
from kant_opt.schema import Hold, Node, Plan, Request


@dataclass(frozen=True)
class Occupancy:
    """A step function from `now_s` on; GPUs in thousandths, of the schedulable nodes with healthy GPUs alone."""

    times_s: tuple[int, ...]
    """Where it changes; the first is `now_s`."""
    used_milli: tuple[int, ...]
    """In use from each of these times until the next, after the last for ever."""
    healthy_milli: int

    def at(self, time_s: int) -> int:
        """Return what is in use at a time, not before the first."""
        return self.used_milli[bisect_right(self.times_s, time_s) - 1]

    def mean(self, start_s: float, end_s: float) -> float | None:
        """Return the mean allocation ratio (SOR) over [start_s, end_s); None without GPUs or without time.

        Reservations do not lower what counts as there.
        """
        if not self.healthy_milli or end_s <= start_s:
            return None
        first = max(0, bisect_right(self.times_s, start_s) - 1)
        area = 0.0
        for i in range(first, len(self.times_s)):
            begin = max(start_s, self.times_s[i])
            end = min(end_s, self.times_s[i + 1]) if i + 1 < len(self.times_s) else end_s
            if end <= begin:
                break
            area += self.used_milli[i] * (end - begin)
        return area / (self.healthy_milli * (end_s - start_s))


def occupancy(request: Request, plan: Plan) -> Occupancy:
    """Return what runs now and what the plan starts, over time. Jobs without known end hold their GPUs for ever.

    A node counts at most its healthy GPUs as used, however many are held. Linear in holds, runs and their nodes.
    """
    nodes = {node.name: node for node in request.nodes if node.schedulable and node.healthy_gpus}
    changes: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    changes[plan.now_s] = defaultdict(int)
    for start, end, node, milli in _uses(request, plan, nodes):
        changes[start][node] += milli
        if end is not None:
            changes[end][node] -= milli
    held = dict.fromkeys(nodes, 0)
    times, used = [], []
    total = 0
    for time in sorted(changes):
        for node, milli in changes[time].items():
            most = 1000 * nodes[node].healthy_gpus
            total -= min(held[node], most)
            held[node] += milli
            total += min(held[node], most)
        times.append(time)
        used.append(total)
    healthy = sum(1000 * node.healthy_gpus for node in nodes.values())
    return Occupancy(tuple(times), tuple(used), healthy)


def ends_of_running(request: Request, plan: Plan) -> dict[str, int | None]:
    """Return when each running job ends, as plans count on it: an overdue one in a second; None where unknown."""
    evicted = {eviction.job: eviction.at_s for eviction in plan.evictions}
    ends: dict[str, int | None] = {}
    for alloc in request.allocations:
        end = None if alloc.until_s is None else max(alloc.until_s, plan.now_s + 1)
        leaves = evicted.get(alloc.job)
        ends[alloc.job] = end if leaves is None else leaves if end is None else min(end, leaves)
    return ends


def _uses(request: Request, plan: Plan, nodes: dict[str, Node]) -> Iterator[tuple[int, int | None, str, int]]:
    """Yield (start, end, node, thousandths of a GPU) for all that runs, on the nodes given."""
    ends = ends_of_running(request, plan)
    for alloc in request.allocations:
        for hold in alloc.holds:
            if hold.node in nodes:
                yield plan.now_s, ends[alloc.job], hold.node, _held(hold, nodes[hold.node])
    podsets = {(job.name, podset.name): podset for job in request.jobs for podset in job.podsets}
    for run in plan.jobs:
        for entry in run.pods:
            if entry.node in nodes:
                each = pod_gpu_milli(podsets[run.job, entry.podset], nodes[entry.node])
                yield run.start_s, run.end_s, entry.node, entry.count * each


def _held(hold: Hold, node: Node) -> int:
    """Return thousandths of healthy GPUs; what runs on a GPU that is gone or ill takes nothing of them."""
    ill = {gpu.index for gpu in node.gpu_details if not gpu.healthy}
    healthy = [index for index in hold.gpu_indices if index < node.gpus and index not in ill]
    if hold.gpu_milli is not None:
        return hold.gpu_milli * len(healthy)
    if hold.gpu_memory_mib is not None:
        whole = node.gpu_memory_mib
        return (-(-1000 * hold.gpu_memory_mib // whole) if whole else 1000) * len(healthy)
    return 1000 * (len(healthy) if hold.gpu_indices else hold.gpus)
