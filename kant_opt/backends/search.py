"""E-Binpack, improved by ruin and recreate: take the gangs off a few leaves, put them back in another order, keep what
is not worse.

Works on gangs of whole nodes, whose traffic is bin packing with item fragmentation; all other pods stay where the
greedy put them, so that the earlier objective level and the broken nodes stay as they are. Stops where the traffic
meets its bound by rents. Ruin and recreate: Schrimpf et al., Journal of Computational Physics 159 (2000),
doi:10.1006/jcph.1999.6413; here with two departures: leaves are chosen around gangs that are split, and a gang is put
back on the set of leaves with the least left over.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from random import Random

import numpy as np

from kant_opt.backends.base import BACKENDS, Answer, Backend, Deadline, Task
from kant_opt.backends.leaves import Item, Leaves, Shares
from kant_opt.backends.placer import Taken
from kant_opt.bounds.rents import Market
from kant_opt.view import Gang, Ints, Mask

_MOST_GANGS = 60
"""Gangs that one round may take off."""
_MOST_LEAVES = 40
"""Leaves that one round may look at."""
_CLOCK = 64
"""Rounds between two looks at the clock."""
_FIRST_PHASE = 5
"""Rounds per gang of the first phase."""


class RuinAndRecreate(Backend):
    """Backend `search`."""

    name = "search"

    def solve(self, task: Task) -> Answer:
        answer = BACKENDS["e-binpack"].solve(task)
        if task.order == "batch" and task.cluster.tree.leaf_depth and "traffic" in task.cluster.request.objective.order:
            improve(task, answer)
        return answer


def improve(task: Task, answer: Answer) -> None:
    """Move the answer's gangs of whole nodes where that lowers traffic; room is taken and given back accordingly."""
    movable = _movable(task, answer)
    if len(movable) < 2:
        return
    for i in movable:
        _give_back(task, answer.taken[i][1])
    groups: dict[bytes, list[int]] = {}
    for i in movable:
        groups.setdefault(_open_to(task, answer.taken[i][0]).tobytes(), []).append(i)
    chosen = max(sorted(groups), key=lambda key: len(groups[key]))
    for key, others in groups.items():
        if key != chosen:
            for i in others:
                _take_again(task, answer.taken[i][1])
    members = groups[chosen]
    nodes = np.logical_and.reduce([_open_to(task, answer.taken[i][0]) for i in members])  # the others hold theirs again
    found = _search(task, answer, members, nodes)
    for i, taken in zip(members, _to_nodes(task, answer, members, found, nodes), strict=True):
        answer.taken[i] = (answer.taken[i][0], taken)


def _movable(task: Task, answer: Answer) -> list[int]:
    """Return the positions of gangs that are alike but for their size: ringing pods of whole nodes, bound by no rule
    but a required level."""
    request = task.cluster.request
    if task.quotas or request.groups or task.cluster.keeping_away or task.cluster.exclusive:
        return []
    found = []
    for i, (gang, taken) in enumerate(answer.taken):
        part = gang.parts[0]
        plain = len(gang.parts) == 1 and not (part.living or part.slices or part.spread or part.podset.balance)
        if plain and taken and gang.jobs[0].communication == "ring" and part.preferred < task.cluster.tree.node_depth:
            fills = all(2 * part.shape.gpus > task.cluster.gpus[t.node] for t in taken)
            if part.shape.gpus and fills and gang.common_depth <= task.cluster.tree.leaf_depth:
                found.append(i)
    return found


def _open_to(task: Task, gang: Gang) -> Mask:
    """Return the nodes with room for one of the gang's pods, (N,); no node takes two."""
    part = gang.parts[0]
    return task.free.slots(part.shape, part.eligible) > 0


def _give_back(task: Task, taken: list[Taken]) -> None:
    for t in taken:
        task.free.release(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus)


def _take_again(task: Task, taken: list[Taken]) -> None:
    for t in taken:
        task.free.take(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus)


def _weights(task: Task) -> list[int]:
    return list(task.cluster.request.objective.weights_of(task.cluster.tree.levels[:-1]).values())


def _search(task: Task, answer: Answer, members: list[int], nodes: Mask) -> list[Shares]:
    """Return the best shares found, gang by gang."""
    tree, depth = task.cluster.tree, task.cluster.tree.leaf_depth
    room: Ints = tree.sums(nodes.astype("int64"), depth)
    starts = tree.start[depth]
    domains = [tuple(int(tree.of_node[d][n]) for d in range(1, depth + 1)) for n in starts.tolist()]
    leaves = Leaves(room.tolist(), domains, _weights(task))
    items: dict[int, Item] = {}
    for k, i in enumerate(members):
        gang, taken = answer.taken[i]
        shares: Shares = {}
        for t in taken:
            leaf = int(tree.of_node[depth][t.node])
            shares[leaf] = shares.get(leaf, 0) + t.pods
        items[k] = Item(sum(shares.values()), gang.common_depth)
        leaves.put(k, shares)
    if leaves.cost == 0:
        return [leaves.shares[k] for k in items]
    bound = _bound(task, [answer.taken[i][0] for i in members], items, room)
    rounds = task.limits.rounds * len(items)
    best, limit = ruin_and_recreate(leaves, items, bound, rounds, task.limits.seed, task.deadline)
    if limit and not answer.limit_hit:
        answer.limit_hit = limit
    return [best[k] for k in items]


def _bound(task: Task, gangs: list[Gang], items: dict[int, Item], room: Ints) -> int:
    sizes = tuple((gang.jobs[0].name, items[k].size, items[k].scope) for k, gang in enumerate(gangs))
    market = Market(task.cluster.tree, [0, *_weights(task), 0], sizes, room)
    rents = task.rents.of(market, task.deadline.seconds_left)
    return 0 if rents is None else max(0, market.bound(rents))


def ruin_and_recreate(
    leaves: Leaves, items: dict[int, Item], bound: int, rounds: int, seed: int, deadline: Deadline
) -> tuple[dict[int, Shares], str]:
    """Return the shares of the cheapest state met, and the limit that ended the search ("" where it met `bound`).

    Goes in phases that start warm and cool down, each twice as long as the one before.
    """
    draw = Random(seed)  # noqa: S311 - repeatable, not secret
    best, best_cost = dict(leaves.shares), leaves.cost
    step = min(w for _, w in leaves.weights)
    length, left = _FIRST_PHASE * len(items), rounds
    while left > 0 and best_cost > bound:
        length = min(length, left)
        for n in range(length):
            if n % _CLOCK == 0:
                if deadline.passed:
                    return best, "deadline"
                split = [k for k, shares in leaves.shares.items() if 1 < len(shares) <= _MOST_LEAVES // 4]
            _round(leaves, items, split, step * (1 - n / length) + 1e-9, draw)
            if leaves.cost < best_cost:
                best, best_cost = dict(leaves.shares), leaves.cost
                if best_cost <= bound:
                    break
        left -= length
        length *= 2
    return best, "" if best_cost <= bound else "rounds"


def _round(leaves: Leaves, items: dict[int, Item], split: list[int], warmth: float, draw: Random) -> None:
    """Take the gangs off a few leaves and put them back; undo it where it costs more than the warmth allows."""
    chosen = sorted(set(_some_leaves(leaves, split, draw)))
    gangs = sorted({gang for leaf in chosen for gang in leaves.gangs_on[leaf]})
    if not 0 < len(gangs) <= _MOST_GANGS:
        return
    here = sorted({leaf for gang in gangs for leaf in leaves.shares[gang]} | set(chosen))
    if len(here) > _MOST_LEAVES:
        return
    before = leaves.cost
    old = {gang: leaves.take(gang) for gang in gangs}
    order = sorted(gangs, key=lambda gang: -items[gang].size * draw.uniform(0.6, 1.4))
    placed = []
    for gang in order:
        shares = leaves.fit(items[gang], here, draw, blink=0.05)
        if shares is None:
            break
        leaves.put(gang, shares)
        placed.append(gang)
    change = leaves.cost - before
    if len(placed) == len(gangs) and (change <= 0 or draw.random() < exp(-change / warmth)):
        return
    for gang in placed:
        leaves.take(gang)
    for gang, shares in old.items():
        leaves.put(gang, shares)


def _some_leaves(leaves: Leaves, split: list[int], draw: Random) -> Iterator[int]:
    """Yield the leaves of a split gang, and of a few more split gangs or at random, mostly under the same parents."""
    gang = draw.choice(split) if split else draw.randrange(len(leaves.shares))
    start = sorted(leaves.shares[gang])
    yield from start
    parent = leaves.domains[start[0]][:-1]
    wanted = draw.randint(2, 6) + 1 - len(start)
    for _ in range(50):
        if wanted <= 0:
            break
        if split and draw.random() < 0.5:
            more = sorted(leaves.shares[draw.choice(split)])
        else:
            more = [draw.randrange(len(leaves.free))]
            if leaves.domains[more[0]][:-1] != parent and draw.random() < 0.8:
                continue
        yield from more
        wanted -= len(more)


def _to_nodes(
    task: Task, answer: Answer, members: list[int], found: list[Shares], nodes: Mask
) -> Iterator[list[Taken]]:
    """Take nodes for the shares, leaf by leaf in the order of the nodes."""
    tree, depth = task.cluster.tree, task.cluster.tree.leaf_depth
    left: dict[int, list[int]] = {}
    for node in range(len(nodes)):
        if nodes[node]:
            left.setdefault(int(tree.of_node[depth][node]), []).append(node)
    for i, shares in zip(members, found, strict=True):
        part = answer.taken[i][0].parts[0]
        taken = []
        for leaf in sorted(shares):
            for node in left[leaf][: shares[leaf]]:
                gpus = task.free.take(node, part.shape, 1, part.job.name)
                taken.append(Taken(part, node, 1, gpus))
            del left[leaf][: shares[leaf]]
        yield taken


BACKENDS.add("search", RuinAndRecreate())
