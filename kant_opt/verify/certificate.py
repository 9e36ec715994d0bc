"""Does a certificate prove its traffic bound? All that it needs is computed again from the request: see `prices`.

The bounds of several markets add up because no gang is in two of them; nodes may be, since every market has its bound
whatever the others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from kant_opt.errors import InputError
from kant_opt.fabric import Fabric, Path
from kant_opt.schema import Allocation, Job, Outcome, PlacedJob, PlacedPods, Placement, PodSet, RentMarket, Request
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.prices import cheapest_prices, largest_leaves
from kant_opt.verify.rules.capacity import capacity
from kant_opt.verify.rules.eligible import eligible
from kant_opt.verify.state import State
from kant_opt.verify.texts import domain_name, some

_ASKS = {"gpus", "cpu_milli", "memory_bytes", "pools", "selector", "nodes", "not_nodes", "tolerations"}
"""What decides on which nodes a pod of whole GPUs may go."""


@dataclass(frozen=True, slots=True)
class CertificateCheck:
    """What a certificate is found to prove, and what is wrong with it."""

    proven: int
    """No placement that places all of `jobs` has less traffic; markets with a fault add nothing."""
    jobs: tuple[str, ...]
    """The gangs of all markets. Of placements that leave one of them out the certificate says nothing."""
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong: the bound claimed is proven, and the outcome places all the gangs it is for."""
        return not self.faults

    def __str__(self) -> str:
        if not self.holds:
            return f"certificate does not hold: {len(self.faults)} fault{'s' * (len(self.faults) > 1)}"
        gangs = f"gang {self.jobs[0]!r}" if len(self.jobs) == 1 else f"these {len(self.jobs)} gangs"
        bound = f"traffic is at least {self.proven} for any placement of {gangs}"
        return f"certificate holds: {bound} (checked in whole numbers)"


def check_certificate(request: Request, outcome: Outcome, fabric: Fabric | None = None) -> CertificateCheck:
    """Return what the outcome's certificate proves about the traffic of any placement of all its gangs.

    Nothing in it is trusted: which nodes the gangs could use, prices and sums are computed here. Whether the outcome's
    own placement keeps the rules is not asked, see `verify`. Raises InputError where there is no certificate. Costs
    one pass over the nodes per distinct kind of pod, and (gang size x nodes of a leaf or domain) per distinct domain.
    """
    if outcome.certificate is None:
        raise InputError("the outcome has no certificate", way_out="its traffic bound, if any, is by counting")
    certificate, index = outcome.certificate, RequestIndex(request, fabric)
    judge = _Judge(index, certificate.scale)
    proven, faults, seen = 0, [], set[str]()
    for market in certificate.markets:
        again = [name for name, times in Counter(market.jobs).items() if times > 1 or name in seen]
        seen.update(market.jobs)
        bound, wrong = judge.prove(market) if not again else (0, [f"{some(again)}: listed twice, counts once"])
        proven += bound
        faults += wrong
    jobs = tuple(dict.fromkeys(name for market in certificate.markets for name in market.jobs))
    faults += _not_placed(index, outcome, jobs)
    if proven < certificate.bound:
        faults.append(f"these rents prove a traffic of {proven}, not of {certificate.bound}")
    return CertificateCheck(proven, jobs, tuple(faults))


def _not_placed(index: RequestIndex, outcome: Outcome, jobs: Collection[str]) -> Iterator[str]:
    state = State(index, outcome.placement or Placement())
    if missing := [name for name in jobs if name in index.jobs and not state.is_admitted(index.jobs[name])]:
        yield f"the bound is for placements with {some(missing)}, which this outcome does not place"


@dataclass(frozen=True, slots=True)
class _Gang:
    """A job as the theorem sees it: the pods that it cannot do without, each on a node of its own."""

    job: Job
    podsets: tuple[PodSet, ...]
    size: int
    depth: int
    """Length of the path of a domain that holds all its pods; 0: the whole fabric."""


class _Judge:
    """One request, asked about one market after another."""

    def __init__(self, index: RequestIndex, scale: int) -> None:
        self.index, self.scale = index, scale
        levels = index.fabric.levels[:-1]
        self.leaf_depth = len(levels)
        weights = [*index.request.objective.weights_of(levels).values()]
        # One domain more at depth d + 1 is one more on every level further in, too.
        self.cut_costs = [scale * sum(weights[depth:]) for depth in range(len(levels))]
        self.free_gpus = {name: len(index.ledger(name).free) for name in index.nodes}
        self._fitting: dict[str, frozenset[str]] = {}

    def prove(self, market: RentMarket) -> tuple[int, list[str]]:
        """Return the traffic that the market's rents prove, 0 where there are faults, and the faults."""
        if not self.leaf_depth:
            return 0, ["the fabric has no level above 'node', so there is no traffic"]
        faults = [fault for name in market.jobs for fault in self._not_of_a_market(name)]
        if faults:
            return 0, faults
        gangs = [self._gang(self.index.jobs[name]) for name in market.jobs]
        nodes: set[str] = set()
        for gang in gangs:
            for podset in gang.podsets:
                takers = self._takers(gang.job, podset)
                nodes |= takers
                # Enough for pods of two kinds as well: two of the smaller kind would fit if one of each did.
                if shared := [node for node in takers if self.free_gpus[node] >= 2 * podset.gpus]:
                    faults.append(f"{gang.job.name}/{podset.name}: node {min(shared)!r} could take two pods at once")
        leaves = Counter(self.index.domain(node, self.leaf_depth - 1) for node in nodes)
        faults += self._bad_tables(market, leaves)
        if faults:
            return 0, faults
        return self._bound(gangs, leaves, {table.domain: table.rents for table in market.tables})

    def _bound(
        self, gangs: Sequence[_Gang], leaves: Mapping[Path, int], rents: Mapping[Path, Sequence[int]]
    ) -> tuple[int, list[str]]:
        cheapest = cheapest_prices(leaves, rents, self.cut_costs, max((gang.size for gang in gangs), default=0))
        if lost := [g.job.name for g in gangs if g.size >= len(cheapest[g.depth])]:
            return 0, [f"{some(lost)}: no domain has the nodes, so no placement is spoken of"]
        prices = sum(cheapest[gang.depth][gang.size] for gang in gangs)
        paid = sum(rents[leaf[:-1]][size] for leaf, size in leaves.items() if leaf[:-1] in rents)
        return max(0, -((paid - prices) // self.scale)), []

    # -- the gangs

    def _not_of_a_market(self, name: str) -> Iterator[str]:
        job = self.index.jobs.get(name)
        if job is None:
            yield f"there is no job {name!r}"
            return
        if job.communication != "ring":
            yield f"{name}: rents are about rings, its communication is {job.communication!r}"
        for podset in job.podsets:
            if not podset.gpus:  # its pods could share a node with others
                yield f"{name}/{podset.name}: its pods ask for no whole GPU"
        if any(self.index.living.get(name, {}).values()):
            yield f"{name}: it has pods that run, which could make its new ones cheaper"

    def _gang(self, job: Job) -> _Gang:
        needed = tuple(podset for podset in job.podsets if self._least(job, podset))
        return _Gang(job, needed, sum(self._least(job, podset) for podset in needed), self._depth(job, needed))

    def _least(self, job: Job, podset: PodSet) -> int:
        pods, _ = self.index.to_place(job.name, podset)
        outer = podset.slices[0].size if podset.slices else 1
        return -(-pods // outer) * outer

    def _depth(self, job: Job, podsets: Sequence[PodSet]) -> int:
        """Return the depth of the smallest domain that must hold all the pods; a lesser one would be safe, too."""
        names = {podset.name for podset in podsets}
        levels = [tie.level for tie in job.together if not tie.podsets or names <= set(tie.podsets)]
        levels += [level for level in (podset.required_level for podset in podsets) if level and len(podsets) == 1]
        levels += [g.together_level for g in self.index.request.groups if g.together_level and job.name in g.jobs]
        if self.index.fabric.separate_roots and not job.may_span_fabrics:
            levels.append(self.index.fabric.levels[0])
        return min(self.leaf_depth, max((self.index.depth(level) + 1 for level in levels), default=0))

    # -- the nodes

    def _takers(self, job: Job, podset: PodSet) -> frozenset[str]:
        """Return the nodes on which one pod could go now; one too many makes the bound less, never wrong."""
        nodes = self._fits(job, podset) - self._reserved(job) - self._closed(job)
        for group in self.index.request.groups:
            if group.together_level is not None and job.name in group.jobs:
                for domain in self._domains(group.jobs, group.together_level):
                    nodes = nodes.intersection(self.index.fabric.nodes_of(domain))
        return nodes

    def _fits(self, job: Job, podset: PodSet) -> frozenset[str]:
        key = podset.model_dump_json(include=_ASKS)
        if key not in self._fitting:
            self._fitting[key] = frozenset(name for name in self.index.nodes if self._fits_on(name, job, podset))
        return self._fitting[key]

    def _fits_on(self, node: str, job: Job, podset: PodSet) -> bool:
        if self.free_gpus[node] < podset.gpus:
            return False
        one = PlacedJob(job=job.name, pods=(PlacedPods(podset=podset.name, node=node),))
        state = State(self.index, Placement(jobs=(one,)))
        return not any(True for rule in (eligible, capacity) for _ in rule(state))

    def _reserved(self, job: Job) -> set[str]:
        """Return the nodes that somebody else's reservation keeps while the job would run, as in rule `window`."""
        now = self.index.request.now_s
        end = now + job.walltime_s if job.walltime_s is not None else now + 1 if job.preemptible else inf
        return {
            node
            for held in self.index.request.reservations
            if job.name not in held.jobs and held.start_s < end and (held.end_s is None or now < held.end_s)
            for node in held.nodes
        }

    def _closed(self, job: Job) -> set[str]:
        """Return the nodes in domains that the job may not share with what runs there, as in rule `apart`."""
        bans = {(name, ban.level) for ban in job.apart for name in ban.jobs} | self._bans.get(job.name, set())
        closed = set(self._exclusive).union(*(self._around((name,), level) for name, level in sorted(bans)))
        return closed | self._around(self.index.living, job.exclusive_level) if job.exclusive_level else closed

    @cached_property
    def _bans(self) -> dict[str, set[tuple[str, str]]]:
        """Job -> (other job, level) for all whose own rule keeps the job away."""
        found: dict[str, set[tuple[str, str]]] = {}
        for other in self.index.request.jobs:
            for ban in other.apart:
                for name in ban.jobs:
                    found.setdefault(name, set()).add((other.name, ban.level))
        return found

    @cached_property
    def _exclusive(self) -> frozenset[str]:
        """Nodes in domains that a running job has for itself: gangs of a market have no running pods of their own."""
        marks: list[Job | Allocation] = [*self.index.allocations.values(), *self.index.request.jobs]
        levels = ((m.job if isinstance(m, Allocation) else m.name, m.exclusive_level) for m in marks)
        return frozenset().union(*(self._around((name,), level) for name, level in levels if level is not None))

    def _around(self, jobs: Iterable[str], level: str) -> set[str]:
        """Return all nodes of the domains of `level` that hold running pods of the jobs."""
        return {node for domain in self._domains(jobs, level) for node in self.index.fabric.nodes_of(domain)}

    def _domains(self, jobs: Iterable[str], level: str) -> set[Path]:
        depth, living = self.index.depth(level), (self.index.living.get(name, {}) for name in jobs)
        return {self.index.domain(node, depth) for podsets in living for pods in podsets.values() for node in pods}

    # -- the rents

    def _bad_tables(self, market: RentMarket, leaves: Mapping[Path, int]) -> Iterator[str]:
        parents = {leaf[:-1] for leaf in self.index.fabric.domains(self.index.fabric.levels[self.leaf_depth - 1])}
        largest = largest_leaves(leaves)
        for domain, times in Counter(table.domain for table in market.tables).items():
            if times > 1:
                yield f"{times} tables of rents for {_name(domain)}"
        for table in market.tables:
            where, rents, most = _name(table.domain), table.rents, largest.get(table.domain, 0)
            if table.domain not in parents:
                yield f"rents for {where}, which is no domain of leaves"
            elif len(rents) <= most:
                yield f"the rents of {where} end at {len(rents) - 1} nodes, a leaf there has {most} free"
            elif rents[0] != 0:
                yield f"the rents of {where} start at {rents[0]}, not at 0"
            elif falls := [x for x in range(1, len(rents)) if rents[x] < rents[x - 1]]:
                x = falls[0]
                yield f"the rents of {where} fall from {rents[x - 1]} to {rents[x]} at {x} nodes"


def _name(domain: Path) -> str:
    return domain_name(domain) if domain else "the whole fabric"
