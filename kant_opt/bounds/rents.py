"""The traffic bound of whole-node gangs: every leaf charges rent, every gang has a price, and no placement is cheaper
than prices less rents.

Take gangs whose pods fill a node each, and n(l) nodes free for them in leaf l. Let a leaf with x free nodes be worth
the rent phi(x): phi(0) = 0, never falling in x, one table for all leaves of one parent domain. Then

- a piece of v nodes in one leaf is worth at least p(v) = min over x >= v of phi(x) - phi(x - v);
- a piece inside an outer domain is worth the least of its children's prices, or of cutting it there, which opens one
  more domain on that level and on every level inside: p(v) = min over a of p(a) + p(v - a) + W, with W the sum of the
  weights from that level inwards;
- so whatever the placement, traffic >= sum over gangs of p(size) - sum over leaves of phi(n(l)).

For the proof walk through the pieces of one leaf: the rents of what is left fall step by step from phi(n(l)) to no
less than 0, each piece paying at least its price; and merging a gang's pieces back costs what its traffic counts.
Nodes that other pods take make it only truer, since rents never fall in x. So *any* rents give a bound: those that an
LP finds best are rounded to whole parts of 1 / SCALE and the bound is computed from them in integers. No solver has
to be trusted.

Minimising this traffic is bin packing with item fragmentation: Casazza and Ceselli, Computers & Operations Research
46 (2014), doi:10.1016/j.cor.2013.12.004. The rents are the dual of an arc-flow program with cuts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kant_opt.schema import Job
from kant_opt.view import Free, Gang, Ints, Mask, Tree, open_nodes

SCALE = 1_000_000
"""Parts of one unit of traffic that rents are whole numbers of."""
NEVER = 1 << 50
"""Price of a piece that a domain cannot hold."""


@dataclass(frozen=True, eq=False)
class Market:
    """Gangs of whole nodes that compete for the same leaves.

    `sizes`: (job, nodes, depth of the domain that has to hold it, 0 = none). `free` nodes per leaf. `weights` of one
    more domain, per depth.
    """

    tree: Tree
    weights: Sequence[int]
    sizes: tuple[tuple[str, int, int], ...]
    free: Ints

    @cached_property
    def longest(self) -> int:
        """The largest gang."""
        return max(size for _, size, _ in self.sizes)

    @cached_property
    def kinds(self) -> list[Ints]:
        """Per depth above the leaves: the kind of each domain; domains of one kind hold alike children."""
        below = self.free
        found: list[Ints] = []
        for depth in range(self.tree.leaf_depth - 1, -1, -1):
            keys: dict[tuple[int, ...], int] = {}
            kinds = []
            for domain in range(self.tree.num_domains(depth)):
                children = below[self.tree.children(depth, domain)]
                key = tuple(sorted(children[children > 0].tolist() if not found else children.tolist()))
                kinds.append(keys.setdefault(key, len(keys)))
            below = np.array(kinds)
            found.append(below)
        return found[::-1]

    def one_of_each(self, depth: int) -> Iterator[tuple[int, int]]:
        """Yield (kind, a domain of it) at a depth above the leaves."""
        kinds, first = np.unique(self.kinds[depth], return_index=True)
        yield from zip(kinds.tolist(), first.tolist(), strict=True)

    def room(self, depth: int, domain: int) -> int:
        """Return the free nodes inside a domain at a depth above the leaves."""
        leaves = self.tree.of_node[self.tree.leaf_depth]
        run = self.tree.nodes_of(depth, domain)
        return int(self.free[int(leaves[run.start]) : int(leaves[run.stop - 1]) + 1].sum())

    def cut_cost(self, depth: int) -> int:
        """Return what a cut between two children of a domain at `depth` adds: its level's weight and all inner ones."""
        return sum(self.weights[depth + 1 : self.tree.leaf_depth + 1])

    def bound(self, rents: Sequence[Ints]) -> int:
        """Return the traffic that no placement of all gangs is below, for rents per kind of the leaves' parents.

        `rents[kind][x]` for x = 0 .. the most free nodes of a leaf there, in 1 / SCALE. Any rents do; they are made
        to start at 0 and never to fall first.
        """
        paid = sum(self.paid(rents).values())
        return -(-(paid - self.rent(rents)) // SCALE)

    def paid(self, rents: Sequence[Ints]) -> dict[str, int]:
        """Return what every job pays at least, in 1 / SCALE."""
        prices = self.prices([_proper(r) for r in rents])
        return {job: int(prices[depth][size]) for job, size, depth in self.sizes}

    def rent(self, rents: Sequence[Ints]) -> int:
        """Return the rent of all leaves as they are, in 1 / SCALE."""
        rents = [_proper(r) for r in rents]
        parents = self.tree.parent[self.tree.leaf_depth]
        kinds = self.kinds[self.tree.leaf_depth - 1][parents]
        return sum(int(rents[kind][nodes]) for kind, nodes in zip(kinds.tolist(), self.free.tolist(), strict=True))

    def prices(self, rents: Sequence[Ints]) -> list[Ints]:
        """Return per depth the least price of a piece of v nodes in any one domain there, v = 0 .. longest."""
        top = self.longest
        inner = {kind: _leaf_prices(rents[kind], top) for kind, _ in self.one_of_each(self.tree.leaf_depth - 1)}
        found = [np.min(list(inner.values()), axis=0)]
        kinds: dict[int, Ints] = {}
        for depth in range(self.tree.leaf_depth - 1, -1, -1):
            for kind, domain in self.one_of_each(depth):
                if depth == self.tree.leaf_depth - 1:
                    offers, widest = inner[kind], len(rents[kind]) - 1
                else:
                    below = self.kinds[depth + 1][self.tree.children(depth, domain)]
                    offers, widest = np.min([kinds[k] for k in np.unique(below).tolist()], axis=0), top
                kinds[kind] = _with_cuts(offers, widest, SCALE * self.cut_cost(depth), self.room(depth, domain))
            current = {kind: kinds[kind] for kind, _ in self.one_of_each(depth)}
            found.append(np.min(list(current.values()), axis=0))
            kinds = current
        return found[::-1]


def _proper(rents: Ints) -> Ints:
    """Return rents that start at 0 and never fall."""
    proper: Ints = np.maximum.accumulate(np.asarray(rents, dtype=np.int64))
    proper -= proper[0]
    return proper


def _leaf_prices(rents: Ints, top: int) -> Ints:
    """Return the price of v nodes in one leaf: the least that its rent falls by."""
    prices = np.full(top + 1, NEVER, dtype=np.int64)
    prices[0] = 0
    for v in range(1, min(top, len(rents) - 1) + 1):
        prices[v] = (rents[v:] - rents[:-v]).min()
    return prices


def _with_cuts(offers: Ints, widest: int, cut: int, room: int) -> Ints:
    """Return the price of v nodes in a domain whose children offer `offers`, whole or cut; NEVER beyond its room.

    No child takes more than `widest` nodes, so that one piece at a time can be cut off.
    """
    prices = offers.copy()
    for v in range(2, min(len(prices) - 1, room) + 1):
        most = min(widest, v - 1)
        cheapest = int((offers[1 : most + 1] + prices[v - 1 : v - most - 1 : -1]).min())
        prices[v] = min(int(prices[v]), cheapest + cut)
    prices[room + 1 :] = NEVER
    return np.minimum(prices, NEVER)


def markets(free: Free, gangs: Sequence[Gang], weights: Sequence[int]) -> list[Market]:
    """Return the markets of all jobs that are gangs of whole nodes, at most one a job.

    Such a job rings, none of its pods runs yet, and each of its pods takes more than half of the free GPUs of any node
    it may use, so that no two pods of a market share a node. Jobs whose nodes overlap share a
    market. Other jobs are in none: their own traffic is bounded by counting.
    """
    tree = free.cluster.tree
    if tree.leaf_depth == 0 or not any(weights):
        return []
    jobs: dict[bytes, tuple[Mask, list[tuple[str, int, int]]]] = {}
    for gang in gangs:
        for job in gang.jobs:
            found = _whole_nodes(free, gang, job)
            if found is not None:
                mask, entry = found
                jobs.setdefault(mask.tobytes(), (mask, []))[1].append(entry)
    merged: list[tuple[Mask, list[tuple[str, int, int]]]] = []
    for mask, entries in jobs.values():
        mine = mask.copy()
        apart = []
        for other, others in merged:
            if (other & mine).any():
                mine |= other
                entries = others + entries
            else:
                apart.append((other, others))
        merged = [*apart, (mine, entries)]
    return [
        Market(tree, weights, tuple(entries), tree.sums(mask.astype(np.int64), tree.leaf_depth))
        for mask, entries in merged
    ]


def _whole_nodes(free: Free, gang: Gang, job: Job) -> tuple[Mask, tuple[str, int, int]] | None:
    """Return (nodes that could take a pod, (job, pods, depth to lie in)) where the job is a gang of whole nodes."""
    parts = [part for part in gang.parts if part.job is job]
    if job.communication != "ring" or any(part.living for part in parts):
        return None
    size = sum(part.least for part in parts)
    mask = np.zeros(len(free.cluster.nodes), dtype=bool)
    for part in parts:
        room = free.slots(part.shape, part.eligible) > 0
        if not part.shape.gpus or (2 * part.shape.gpus <= free.whole[room]).any():
            return None
        mask |= room
    closed = open_nodes(free, gang)
    if closed is not None:
        mask &= closed
    members = frozenset(i for i, part in enumerate(gang.parts) if part.job is job)
    depth = max((d for d, scope in gang.scopes if scope >= members), default=0)
    depth = min(depth, free.cluster.tree.leaf_depth)
    return (mask, (job.name, size, depth)) if size else None
