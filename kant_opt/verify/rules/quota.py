"""What queues and their cohorts may use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kant_opt.schema import Hold, Node, PodSet, Queue, Quota
from kant_opt.verify.gpus import MILLI
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.state import State
from kant_opt.verify.texts import some
from kant_opt.verify.violation import Finding, rule


class Key(NamedTuple):
    """What a cap is on: `pool` is empty for all pools together."""

    resource: str
    pool: str


@dataclass(slots=True)
class Use:
    """GPUs in thousandths, the other resources in their unit."""

    running: int = 0
    new: int = 0


Usage = dict[str, dict[Key, Use]]
"""Queue -> what -> use."""


@rule("quota")
def quota(state: State) -> Iterator[Finding]:
    """Running and placed jobs of a queue, and of a cohort, stay within their caps; only where a new pod adds."""
    if not state.request.queues:
        return
    usage = _usage(state)
    cohorts: dict[str, list[Queue]] = {}
    for queue in state.request.queues:
        if queue.cohort:
            cohorts.setdefault(queue.cohort, []).append(queue)
        for share in queue.quotas:
            cap = share.limit if queue.cohort else share.guaranteed
            if cap is not None:
                yield from _over(f"queue {queue.name}", _key(share), usage[queue.name][_key(share)], cap)
    for name, members in cohorts.items():
        yield from _cohort(name, members, usage)


def _cohort(name: str, members: list[Queue], usage: Usage) -> Iterator[Finding]:
    caps: dict[Key, int] = {}
    for queue in members:
        for share in queue.quotas:
            caps[_key(share)] = caps.get(_key(share), 0) + share.guaranteed
    for key, cap in caps.items():
        uses = [usage[queue.name][key] for queue in members]
        total = Use(sum(use.running for use in uses), sum(use.new for use in uses))
        yield from _over(f"cohort {name} ({some(queue.name for queue in members)})", key, total, cap)


def _over(subject: str, key: Key, use: Use, cap: int) -> Iterator[Finding]:
    unit = MILLI if key.resource == "gpu" else 1
    if use.new and use.running + use.new > cap * unit:
        where = f" in pool {key.pool!r}" if key.pool else ""
        running, new = (f"{amount / unit:.15g}" for amount in (use.running, use.new))
        yield subject, f"{key.resource}{where}: {running} running and {new} new exceed {cap}"


def _usage(state: State) -> Usage:
    usage: Usage = defaultdict(lambda: defaultdict(Use))
    index = state.index
    for alloc in state.request.allocations:
        job = index.jobs.get(alloc.job)
        queue = alloc.queue or (job.queue if job else "")
        for hold in alloc.holds if queue else ():
            node = index.nodes[hold.node]
            for key, amount in _asks(index, hold, node, node.pools[0]):
                usage[queue][key].running += amount
    for job, podset in state.placed_podsets():
        for name, pods in state.new_of(job.name, podset.name).items() if job.queue else ():
            node = index.nodes[name]
            pool = next((p for p in podset.pools if p in node.pools), node.pools[0])
            for key, amount in _asks(index, podset, node, pool):
                usage[job.queue][key].new += amount * pods
    return usage


def _asks(index: RequestIndex, asks: Hold | PodSet, node: Node, pool: str) -> Iterator[tuple[Key, int]]:
    gpu_milli = index.ledger(node.name).milli_of(asks)
    for resource, amount in (("gpu", gpu_milli), ("cpu_milli", asks.cpu_milli), ("memory_bytes", asks.memory_bytes)):
        yield Key(resource, pool), amount
        yield Key(resource, ""), amount


def _key(share: Quota) -> Key:
    return Key(share.resource, share.pool)
