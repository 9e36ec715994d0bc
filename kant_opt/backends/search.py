"""E-Binpack, improved by ruin and recreate: take the gangs off a few leaves, put them back in another order, keep what
is not worse.

Works on the loads of nodes that are alike (see movable), whose traffic is bin packing with item fragmentation; what is
on a node stays together, so that the GPUs admitted and the broken nodes stay as the greedy left them. Stops where the
traffic meets its bound by rents. Ruin and recreate: Schrimpf et al., Journal of Computational Physics 159 (2000),
doi:10.1006/jcph.1999.6413; here with two departures: leaves are chosen around gangs that are split, and a gang is put
back on the set of leaves with the least left over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from math import exp
from random import Random

import numpy as np

from kant_opt.backends.admission import traffic, with_cheaper_set
from kant_opt.backends.base import BACKENDS, Answer, Backend, Deadline, Task
from kant_opt.backends.gaps import fill_gaps
from kant_opt.backends.leaves import Item, Leaves, Shares
from kant_opt.backends.movable import Area, Loads, Movable
from kant_opt.backends.worth import unless_worse
from kant_opt.bounds.rents import Market
from kant_opt.view import Ints

_MOST_GANGS = 60
"""Gangs that one round may take off."""
_MOST_LEAVES = 40
"""Leaves that one round may look at."""
_CLOCK = 64
"""Rounds between two looks at the clock, more where there are many gangs."""
_SHORT = 1_200
"""Where fewer gangs than this, each gets more rounds."""
_FIRST_PHASE = 5
"""Rounds per gang of the first phase."""


class RuinAndRecreate(Backend):
    """Backend `search`."""

    name = "search"

    def solve(self, task: Task) -> Answer:
        movable = Movable(task)
        answer = BACKENDS["e-binpack"].solve(task)
        objective = task.cluster.request.objective
        order = objective.order
        if task.order == "batch" and task.cluster.tree.leaf_depth and "traffic" in order:
            before = order[: order.index("traffic")]
            if before == ("admitted",) and not objective.weights:
                answer = with_cheaper_set(task, answer)
            if "broken_nodes" in order:
                unless_worse(task, answer, partial(fill_gaps, task, answer, movable.may_move))
            for area in movable.areas(answer):
                if task.deadline.passed:
                    break
                found = _better(task, answer, area)
                unless_worse(task, answer, partial(movable.move, answer, area, found))
        return answer


def _better(task: Task, answer: Answer, area: Area) -> list[list[int]]:
    """Return where the area's items are best found to lie, item by item; notes in the answer what limit bit."""
    tree, depth = task.cluster.tree, task.cluster.tree.leaf_depth
    room = tree.sums(area.nodes.astype("int64"), depth)
    domains = [tuple(int(tree.of_node[d][n]) for d in range(1, depth + 1)) for n in tree.start[depth].tolist()]
    idle, used = _idle_and_used(task, area)
    leaves = Leaves(room.tolist(), domains, task.cluster.traffic_weights[1:-1], idle.tolist(), used.tolist())
    items: dict[int, Item] = {}
    for k, loads in enumerate(area.items):
        shares: Shares = dict(Counter(tree.of_node[depth][list(loads.nodes)].tolist()))
        items[k] = _item(area, loads)
        if items[k].pods:
            leaves.pods[k] = items[k].pods
        leaves.put(k, shares)
    rounds = task.limits.rounds * len(items) * max(1, min(len(items) // 5, _SHORT // len(items)))
    best = dict(leaves.shares)
    if leaves.cost:
        beside = traffic(task, answer) - leaves.cost if task.on_event else 0
        best, limit = ruin_and_recreate(
            leaves,
            items,
            _bound(task, area, room),
            rounds,
            task.limits.seed,
            task.deadline,
            lambda cost: task.tell("search", "traffic", "incumbent", beside + cost),
        )
        if limit and not answer.limit_hit:
            answer.limit_hit = limit
    if area.unused and "broken_leaves" in task.cluster.request.objective.order:
        for k in items:
            leaves.take(k)
        for k, shares in best.items():
            leaves.put(k, shares)
        tidy = _Search(leaves, items, task.limits.seed, task.deadline, tidy=True)
        best, limit = tidy.run(tidy.weight * leaves.cost + leaves.least_broken(), rounds)
        if limit == "deadline":
            answer.limit_hit = limit
    return _to_nodes(area, [best[k] for k in items], tree.of_node[depth])


def _idle_and_used(task: Task, area: Area) -> Iterator[Ints]:
    """Return per leaf the nodes with GPUs that are unused, and used, without the area's loads."""
    tree, free = task.cluster.tree, task.free
    counted = task.cluster.schedulable & (free.capacity > 0)
    used = free.is_used()
    used[[node for item in area.items for node in item.nodes]] = False
    for mask in (~used, used):
        yield tree.sums((counted & mask).astype("int64"), tree.leaf_depth)


def _item(area: Area, loads: Loads) -> Item:
    if loads.gang is None:
        return Item(1)
    job = loads.gang.jobs[0]
    pods = sum(t.pods for _, t in area.loads[loads.nodes[0]] if t.part.job is job)
    return Item(len(loads.nodes), loads.gang.common_depth, pods if job.communication == "all_to_all" else 0)


def _bound(task: Task, area: Area, room: Ints) -> int:
    """Return what the ringing gangs of the area cost at least, wherever the other loads are."""
    gangs = [(item, item.gang) for item in area.items if item.gang and item.gang.jobs[0].communication == "ring"]
    if not gangs:
        return 0
    sizes = tuple((gang.name, len(item.nodes), gang.common_depth) for item, gang in gangs)
    market = Market(task.cluster.tree, task.cluster.traffic_weights, sizes, room)
    rents = task.rents.of(market, task.deadline.seconds_left)
    return 0 if rents is None else max(0, market.bound(rents))


def _to_nodes(area: Area, found: list[Shares], leaf_of_node: Ints) -> list[list[int]]:
    """Return nodes for the shares: those that an item has already as far as they serve, then the leaf's others."""
    left: dict[int, list[int]] = {}
    for node in np.flatnonzero(area.nodes).tolist():
        left.setdefault(int(leaf_of_node[node]), []).append(node)
    chosen: list[list[int]] = []
    for item, shares in zip(area.items, found, strict=True):
        wanted = dict(shares)
        kept = []
        for node in item.nodes:
            if wanted.get(leaf := int(leaf_of_node[node]), 0):
                wanted[leaf] -= 1
                kept.append(node)
        chosen.append(kept)
    taken = {node for nodes in chosen for node in nodes}
    rest = {leaf: iter([n for n in nodes if n not in taken]) for leaf, nodes in left.items()}
    for nodes, shares in zip(chosen, found, strict=True):
        have = Counter(int(leaf_of_node[n]) for n in nodes)
        for leaf in sorted(shares):
            nodes.extend(islice(rest[leaf], shares[leaf] - have[leaf]))
    return chosen


def ruin_and_recreate(
    leaves: Leaves,
    items: dict[int, Item],
    bound: int,
    rounds: int,
    seed: int,
    deadline: Deadline,
    tell: Callable[[int], None] = lambda _: None,
) -> tuple[dict[int, Shares], str]:
    """Return the shares of the cheapest state met, and the limit that ended the search ("" where it met `bound`).

    Goes in phases that start warm and cool down, each twice as long as the one before. `tell` hears of lower costs.
    """
    return _Search(leaves, items, seed, deadline, tidy=False).run(bound, rounds, tell)


class _Search:
    """Rounds on one state; `tidy`: leaves broken are counted too, traffic outweighs all of them."""

    def __init__(self, leaves: Leaves, items: dict[int, Item], seed: int, deadline: Deadline, *, tidy: bool) -> None:
        self.leaves, self.items, self.deadline = leaves, items, deadline
        self.draw = Random(seed)  # noqa: S311 - repeatable, not secret
        self.weight = len(leaves.free) + 1 if tidy else 0
        self.step = 1 if tidy else min(w for _, w in leaves.weights)
        self.at_best: dict[int, Shares] = {}
        """The shares in the cheapest state of gangs that were moved since."""

    @property
    def cost(self) -> int:
        leaves = self.leaves
        return leaves.cost * self.weight + leaves.broken if self.weight else leaves.cost

    def run(
        self, bound: int, rounds: int, tell: Callable[[int], None] = lambda _: None
    ) -> tuple[dict[int, Shares], str]:
        best_cost, told, limit = self.cost, self.cost, ""
        length, left = _FIRST_PHASE * len(self.items), rounds
        pause = max(_CLOCK, len(self.items) // 8)
        while left > 0 and best_cost > bound and not limit:
            length = min(length, left)
            for n in range(length):
                if n % pause == 0:
                    if best_cost < told:
                        told = best_cost
                        tell(told)
                    if self.deadline.passed:
                        limit = "deadline"
                        break
                    start = self._where_to_start()
                self._round(start, self.step * (1 - n / length) + 1e-9)
                if self.cost < best_cost:
                    best_cost = self.cost
                    self.at_best.clear()
                    if best_cost <= bound:
                        break
            left -= length
            length *= 2
        return self.leaves.shares | self.at_best, limit or ("" if best_cost <= bound else "rounds")

    def _where_to_start(self) -> list[list[int]]:
        """Return sets of leaves that cost something: of gangs that are split, or each broken leaf."""
        leaves = self.leaves
        if self.weight:
            broken = [i for i, idle in enumerate(leaves.idle) if idle > 0 and leaves.used[i] > 0 and leaves.gangs_on[i]]
            return [[leaf] for leaf in broken]
        return [sorted(shares) for shares in leaves.shares.values() if 1 < len(shares) <= _MOST_LEAVES // 4]

    def _round(self, start: list[list[int]], warmth: float) -> None:
        """Take the gangs off a few leaves and put them back; undo it where it costs more than the warmth allows."""
        leaves, items, draw = self.leaves, self.items, self.draw
        chosen = sorted(set(self._some_leaves(start)))
        gangs = sorted({gang for leaf in chosen for gang in leaves.gangs_on[leaf]})
        if not 0 < len(gangs) <= _MOST_GANGS:
            return
        here = sorted({leaf for gang in gangs for leaf in leaves.shares[gang]} | set(chosen))
        if len(here) > _MOST_LEAVES:
            return
        before = self.cost
        old = {gang: leaves.take(gang) for gang in gangs}
        order = sorted(gangs, key=lambda gang: -items[gang].size * draw.uniform(0.6, 1.4))
        placed = []
        for gang in order:
            shares = leaves.fit(items[gang], here, draw, blink=0.05)
            if shares is None:
                break
            leaves.put(gang, shares)
            placed.append(gang)
        change = self.cost - before
        if len(placed) == len(gangs) and (change <= 0 or draw.random() < exp(-change / warmth)):
            for gang, shares in old.items():
                self.at_best.setdefault(gang, shares)
            return
        for gang in placed:
            leaves.take(gang)
        for gang, shares in old.items():
            leaves.put(gang, shares)

    def _some_leaves(self, start: list[list[int]]) -> Iterator[int]:
        """Yield leaves that cost something, and a few more such or at random, mostly under the same parents."""
        leaves, draw = self.leaves, self.draw
        first = draw.choice(start) if start else sorted(leaves.shares[draw.randrange(len(leaves.shares))])
        yield from first
        parent = leaves.domains[first[0]][:-1]
        wanted = draw.randint(2, 6) + 1 - len(first)
        for _ in range(50):
            if wanted <= 0:
                break
            if start and draw.random() < 0.5:
                more = draw.choice(start)
            else:
                more = [draw.randrange(len(leaves.free))]
                if leaves.domains[more[0]][:-1] != parent and draw.random() < 0.8:
                    continue
            yield from more
            wanted -= len(more)


BACKENDS.add("search", RuinAndRecreate())
