"""openb with all pods known beforehand: the most GPUs that any choice of them could use, and what a batch uses.

The bound is by prices. Let a node of class c charge a per milli-CPU, b per MiB of memory and g per GPU, and let a pod
of kind t bring its GPU thousandths less p(t). If on every class no pod brings more than it is charged, where a GPU
that is shared takes in at most g from the shares on it, then whatever is placed, GPUs in use are at most

    sum over kinds of pods x p(t)  +  sum over nodes of a CPU + b memory + g GPUs.

For the shares g has to cover the best set that one GPU holds, a knapsack over thousandths, solved exactly in integers.
So any prices prove a bound; a linear program finds good ones, with the knapsacks as cutting planes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import NamedTuple

from kant_opt.backends import BACKENDS, Deadline, Task
from kant_opt.backends.lp import Row, maximise
from kant_opt.engine.place import to_placement
from kant_opt.fabric import build_fabric
from kant_opt.schema import Limits, Node, PodSet, Request
from kant_opt.units import MIB, MILLI
from kant_opt.verify import verify
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

from .openb import gpu_milli

SCALE = 1_000_000
"""Parts of a GPU thousandth that prices are whole numbers of."""
_HIGHEST = 1_000_000
_ROUNDS = 60
_SLACK = SCALE // 10_000


class Kind(NamedTuple):
    """Pods alike: whole GPUs or a share in thousandths, milli-CPU, MiB."""

    gpus: int
    milli: int
    cpu: int
    memory: int
    pools: tuple[str, ...]

    @property
    def worth(self) -> int:
        """GPU thousandths."""
        return MILLI * self.gpus + self.milli


class Host(NamedTuple):
    """Nodes alike: GPUs, milli-CPU, MiB."""

    gpus: int
    cpu: int
    memory: int
    pools: tuple[str, ...]

    def holds(self, kind: Kind) -> bool:
        """Return whether one such pod fits on an empty node."""
        return (
            -(-kind.worth // MILLI) <= self.gpus
            and kind.cpu <= self.cpu
            and kind.memory <= self.memory
            and (not kind.pools or bool(set(kind.pools) & set(self.pools)))
        )


class Charges(NamedTuple):
    """What a node asks for, in 1 / SCALE of a GPU thousandth: per milli-CPU and per MiB."""

    cpu: int
    memory: int


@dataclass(frozen=True)
class Market:
    """How many pods of each kind there are, and nodes of each class. Pods without GPUs may stay out."""

    pods: Mapping[Kind, int]
    hosts: Mapping[Host, int]

    @cached_property
    def kinds(self) -> list[Kind]:
        return sorted(self.pods)

    @cached_property
    def classes(self) -> list[Host]:
        return sorted(self.hosts)

    def bound(self, prices: Mapping[Kind, int], charges: Mapping[Host, Charges]) -> int:
        """Return GPU thousandths that no placement uses more of, for any prices of at least 0, in 1 / SCALE."""
        total = sum(number * prices[kind] for kind, number in self.pods.items())
        for host, number in self.hosts.items():
            gpu = self.gpu_charge(host, prices, charges[host])
            total += number * (charges[host].cpu * host.cpu + charges[host].memory * host.memory + gpu * host.gpus)
        step = gcd(*(kind.worth for kind in self.pods))
        return total // SCALE // step * step

    def gpu_charge(self, host: Host, prices: Mapping[Kind, int], charges: Charges) -> int:
        """Return the least that a GPU of the host has to ask for, so that no pod or set of shares brings more."""
        most = 0
        shares: dict[int, int] = {}
        for kind in self.kinds:
            if host.holds(kind):
                brings = SCALE * kind.worth - prices[kind] - charges.cpu * kind.cpu - charges.memory * kind.memory
                if kind.gpus:
                    most = max(most, -(-brings // kind.gpus))
                else:
                    shares[kind.milli] = max(shares.get(kind.milli, 0), brings)
        return max(most, sum(number * shares[size] for size, number in best_on_one_gpu(shares).items()))


def best_on_one_gpu(worth: Mapping[int, int]) -> dict[int, int]:
    """Return the shares, size -> number, that are worth most among those one GPU holds."""
    step = gcd(MILLI, *worth)
    best: list[tuple[int, int]] = [(0, 0)]  # worth, and the size put in last, for 0, step, 2 step, ... thousandths
    for room in range(1, MILLI // step + 1):
        options = [(best[room - size // step][0] + w, size) for size, w in worth.items() if size <= room * step]
        best.append(max([(best[room - 1][0], 0), *options]))
    found: Counter[int] = Counter()
    room = MILLI // step
    while room:
        size = best[room][1]
        found[size] += size > 0
        room -= size // step or 1
    return {size: number for size, number in found.items() if number}


def best_bound(market: Market) -> int:
    """Return the bound by the best prices of a linear program, to which knapsacks of shares are added as they break."""
    program = _Program(market)
    for _ in range(_ROUNDS):
        values = maximise(program.objective, program.rows, _HIGHEST)
        assert values is not None
        found = [max(0, round(SCALE * value)) for value in values.tolist()]
        if not program.add_broken(found):
            break
    prices = {kind: found[i] for kind, i in program.pod.items()}
    charges = {host: Charges(found[program.cpu[host]], found[program.memory[host]]) for host in market.classes}
    return market.bound(prices, charges)


class _Program:
    """Prices and charges as variables, the bound to be least as objective, what pods may bring as rows.

    `share[host][size]`: what a share of that size brings to the host's GPU at most.
    """

    def __init__(self, market: Market) -> None:
        self.objective: list[int] = []
        self.rows: list[Row] = []
        self.pod = {kind: self._var(market.pods[kind]) for kind in market.kinds}
        number = market.hosts
        self.cpu = {host: self._var(number[host] * host.cpu) for host in market.classes}
        self.memory = {host: self._var(number[host] * host.memory) for host in market.classes}
        self.gpu = {host: self._var(number[host] * host.gpus) for host in market.classes}
        sizes = sorted({kind.milli for kind in market.kinds if kind.milli})
        self.share = {host: {size: self._var(0) for size in sizes} for host in market.classes}
        for host in market.classes:
            for kind in filter(host.holds, market.kinds):
                asked = (self.gpu[host], -kind.gpus) if kind.gpus else (self.share[host][kind.milli], -1)
                charged = ((self.cpu[host], -kind.cpu), (self.memory[host], -kind.memory), asked)
                self.rows.append((((self.pod[kind], -1), *charged), -kind.worth))

    def _var(self, cost: int) -> int:
        self.objective.append(-cost)
        return len(self.objective) - 1

    def add_broken(self, found: Sequence[int]) -> int:
        """Add the sets of shares that bring more than a GPU is charged by `found`, in 1 / SCALE; return how many."""
        before = len(self.rows)
        for host, shares in self.share.items():
            best = best_on_one_gpu({size: found[i] for size, i in shares.items()})
            if sum(n * found[shares[size]] for size, n in best.items()) > found[self.gpu[host]] + _SLACK:
                self.rows.append(((*((shares[size], n) for size, n in best.items()), (self.gpu[host], -1)), 0))
        return len(self.rows) - before


def market_of(request: Request) -> Market:
    """Return the pods with GPUs, all jobs being single pods, and the open nodes, nothing running."""
    pods = Counter(_kind(job.podsets[0]) for job in request.jobs if gpu_milli(job))
    return Market(pods, Counter(_host(node) for node in request.nodes if node.schedulable and node.gpus))


def _kind(podset: PodSet) -> Kind:
    memory = -(-podset.memory_bytes // MIB)
    assert memory * MIB == podset.memory_bytes
    return Kind(podset.gpus, podset.gpu_milli or 0, podset.cpu_milli, memory, podset.pools)


def _host(node: Node) -> Host:
    assert node.cpu_milli is not None
    assert node.memory_bytes is not None
    return Host(node.healthy_gpus, node.cpu_milli, node.memory_bytes // MIB, node.pools)


def batch(request: Request, backend: str = "e-binpack") -> int:
    """Return the GPU thousandths in use when `backend` sees all pods at once; the placement is verified."""
    fabric = build_fabric(request.fabric, request.nodes)
    cluster = Cluster(request, fabric)
    gangs = compile_gangs(cluster)
    task = Task(cluster, Free(cluster), Quotas(cluster), gangs, "batch", Limits(), Deadline(None))
    placement = to_placement(cluster, BACKENDS[backend].solve(task))
    assert not verify(request, placement, fabric)
    demand = {job.name: gpu_milli(job) for job in request.jobs}
    return sum(demand[job.job] for job in placement.jobs)
