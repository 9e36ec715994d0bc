"""Ruin and recreate: never worse than E-Binpack, repeatable, on time, and optimal where the optimum is known."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.backends import Answer, Deadline, Event, Taken, Task, search
from kant_opt.backends.leaves import Item, Leaves, Shares
from kant_opt.backends.movable import Movable
from kant_opt.backends.search import ruin_and_recreate
from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.schema import Limits, Outcome, Request
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, podset, racks
from kant_opt.testing.strategies import requests
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

CALM = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def full(leaves: int, size: int, seed: int) -> Request:
    """Return a cluster of whole leaves and gangs that fill it without a cut: each leaf's nodes are dealt out."""
    draw = Random(seed)
    sizes = []
    for _ in range(leaves):
        left = size
        while left:
            sizes.append(draw.choice([n for n in range(3, 10) if n == left or left - n >= 3]))
            left -= sizes[-1]
    draw.shuffle(sizes)
    spec = "|".join([",".join("8" * size)] * leaves)
    return racks(spec, jobs=[gang(f"j{i}", n, 8) for i, n in enumerate(sizes)])


def values(outcome: Outcome) -> dict[str, int]:
    return {level.name: level.value for level in outcome.levels}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gangs_that_fill_their_leaves_need_no_cut(seed: int) -> None:
    """The optimum is 0 by construction; the greedy cuts some."""
    request = full(40, 16, seed)
    greedy, found = place(request, backend="e-binpack"), place(request, backend="search")
    assert values(greedy)["traffic"] > 0
    assert values(found)["traffic"] == 0
    assert found.status == "OPTIMAL"


@CALM
@given(requests(max_nodes=4, max_jobs=3), st.integers(0, 3))
def test_never_worse_than_e_binpack_and_never_better_than_the_best(request: Request, seed: int) -> None:
    greedy = place(request, backend="e-binpack")
    found = place(request, backend="search", limits=Limits(seed=seed))
    for one, two in zip(greedy.levels, found.levels, strict=True):
        if one.value != two.value:
            assert (two.value > one.value) == (one.sense == "max")
            break
    try:
        best = dict(brute_force(request, limit=5_000).values)
    except InputError:
        return
    for level in found.levels:
        assert level.bound is not None
        if level.value != best[level.name]:
            break
        assert (level.bound >= level.value) if level.sense == "max" else (level.bound <= level.value)


def test_equal_seeds_give_equal_answers() -> None:
    request = full(16, 9, 5)
    one, two = (place(request, limits=Limits(rounds=3, seed=7)) for _ in range(2))
    assert one.placement == two.placement


def test_the_limit_that_bit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four gangs of two nodes in three racks of three: one has to be cut, which without a bound nobody knows."""
    request = racks("8,8,8|8,8,8|8,8,8", jobs=[gang(name, 2, 8) for name in "abcd"])
    assert place(request, backend="search").run.limit_hit == ""
    monkeypatch.setattr("kant_opt.backends.rents.best_rents", lambda *_: None)
    assert place(request, backend="search", prove=False).run.limit_hit == "rounds"


def test_the_deadline_ends_the_search() -> None:
    """With all the rounds asked for it would move gangs for a quarter of an hour of CPU."""
    started = process_time()
    place(full(60, 15, 3), backend="search", limits=Limits(rounds=100_000, deadline_ms=700))
    assert process_time() - started < 10


def test_small_pods_on_broken_nodes_stay_where_the_greedy_put_them() -> None:
    """They share nodes with nobody and move with their node at most; here the greedy put them well away."""
    request = full(12, 8, 4)
    small = [gang(f"s{i}", 1, 3) for i in range(5)]
    extra = racks("8,8,8,8,8,8,8,8", jobs=small).nodes
    nodes = (*request.nodes, *(n.model_copy(update={"name": f"x{n.name}", "path": ("rx",)}) for n in extra))
    both = request.model_copy(update={"nodes": nodes, "jobs": (*request.jobs, *small)})
    greedy, found = place(both, backend="e-binpack"), place(both, backend="search")
    assert greedy.placement is not None
    assert found.placement is not None
    for job in small:
        assert greedy.placement.of(job.name) == found.placement.of(job.name)
    assert values(found)["traffic"] <= values(greedy)["traffic"]


def test_a_required_level_is_kept() -> None:
    request = full(12, 8, 6)
    jobs = tuple(
        job.model_copy(update={"podsets": (podset("main", job.podsets[0].count, 8, required_level="rack"),)})
        for job in request.jobs
    )
    outcome = place(request.model_copy(update={"jobs": jobs}), backend="search")
    assert values(outcome)["traffic"] == 0


def test_costs_keep_up_with_gangs_that_come_and_go() -> None:
    """Two blocks of two leaves; weights 4 and 1 counted by hand."""
    leaves = Leaves([3, 3, 3, 3], [(0, 0), (0, 1), (1, 2), (1, 3)], [4, 1])
    leaves.put(0, {0: 3, 1: 1})
    leaves.put(1, {1: 2, 2: 3})
    assert leaves.cost == 1 + (4 + 1)
    assert leaves.free == [0, 0, 0, 3]
    leaves.take(1)
    assert leaves.cost == 1
    assert leaves.free == [0, 2, 3, 3]
    assert leaves.fit(Item(2), range(4), Random(0), 0.0) == {1: 2}
    assert leaves.fit(Item(6), range(4), Random(0), 0.0) == {2: 3, 3: 3}
    assert leaves.fit(Item(4, scope=2), range(4), Random(0), 0.0) is None


def test_unused_nodes_that_are_no_whole_leaves_break_one() -> None:
    """Leaves of 3, 3 and 2 nodes and gangs of 3 and 2: 3 stay unused, which can be a whole leaf. With a gang of 1 more,
    2 can be the small leaf. If somebody else uses that one, and the unused are 2, they cannot."""
    domains = [(0, 0), (0, 1), (0, 2)]
    leaves = Leaves([3, 3, 2], domains, [1, 1])
    leaves.put(0, {0: 3})
    leaves.put(1, {1: 2})
    assert leaves.broken == 1
    assert leaves.least_broken() == 0
    leaves.put(2, {1: 1})
    assert leaves.least_broken() == 0
    other = Leaves([3, 3, 2], domains, [1, 1], idle=[3, 3, 2], used=[0, 0, 1])
    other.put(0, {0: 3})
    other.put(1, {1: 2})
    other.put(2, {1: 1})
    assert other.least_broken() == 1


def test_lower_costs_are_told() -> None:
    """Every value told is lower than the one before, and the last is the outcome's or above it."""
    heard: list[int] = []

    def listen(event: Event) -> None:
        if event.source == "search" and event.level == "traffic":
            heard.append(event.value)

    outcome = place(full(60, 15, 3), backend="search", on_event=listen)
    assert heard == sorted(set(heard), reverse=True)
    assert heard
    assert heard[-1] >= values(outcome)["traffic"]


def test_gangs_that_stay_keep_their_nodes() -> None:
    """The gang of pool x takes the first four nodes; the two others, which may use any, are dealt out the rest."""
    request = racks("8,8,8,8,8,8,8,8", jobs=[gang("x", 4, 8, pools=("x",)), gang("a", 2, 8), gang("b", 2, 8)])
    nodes = tuple(n.model_copy(update={"pools": ("x",) if int(n.name[3:]) <= 4 else ("y",)}) for n in request.nodes)
    outcome = place(request.model_copy(update={"nodes": nodes}), backend="search")
    assert outcome.placement is not None
    used = [node for job in outcome.placement.jobs for node in job.nodes]
    assert len(set(used)) == len(used) == 8


def test_small_pods_move_out_of_the_way() -> None:
    """Two gangs of two nodes need both racks of two, wherever these are; the small pods take the others."""
    jobs = [gang("a", 2, 8), gang("b", 2, 8), gang("s", 1, 5), gang("t", 1, 5)]
    for spec in ("8,8|8,8|8|8", "8|8,8|8|8,8", "8|8|8,8|8,8"):
        outcome = place(racks(spec, jobs=jobs), backend="search")
        assert values(outcome)["traffic"] == 0
        assert outcome.reasons == ()


def test_loose_loads_are_moved_for_a_gang() -> None:
    """The small pods lie on both nodes of rack 1 and the gang is cut between racks 2 and 3: one swap mends it."""
    request = racks("8,8|8|8,8", jobs=[gang("a", 2, 8), gang("s", 1, 5), gang("t", 1, 6), gang("u", 1, 7)])
    task = task_of(request)
    movable = Movable(task)
    answer = answer_of(task, {"a": {"r2n1": 1, "r3n1": 1}, "s": {"r1n1": 1}, "t": {"r1n2": 1}, "u": {"r3n2": 1}})
    (area,) = movable.areas(answer)
    assert sorted(len(item.nodes) for item in area.items) == [1, 1, 1, 2]
    movable.move(answer, area, [[0, 1] if item.gang else [2 + i] for i, item in enumerate(area.items, start=-1)])
    assert {gang.name: sorted(t.node for t in taken) for gang, taken in answer.taken} == {
        "a": [0, 1],
        "s": [2],
        "t": [3],
        "u": [4],
    }
    assert task.free.whole.tolist() == [0, 0, 3, 2, 1]


def test_gangs_of_several_podsets_and_of_pairs_move_too() -> None:
    """Gangs that fill the leaves without a cut, some of a leader and workers, some of all-to-all traffic."""
    request = full(20, 12, 3)
    jobs = []
    for i, job in enumerate(request.jobs):
        both = (podset("leader", 1, 8), podset("worker", job.podsets[0].count - 1, 8))
        podsets = both if i % 3 == 0 else job.podsets
        jobs.append(
            job.model_copy(update={"podsets": podsets, "communication": "all_to_all" if i % 3 == 1 else "ring"})
        )
    mixed = request.model_copy(update={"jobs": tuple(jobs)})
    assert values(place(mixed, backend="e-binpack"))["traffic"] > 0
    found = place(mixed, backend="search")
    assert values(found)["traffic"] == 0
    assert found.status == "OPTIMAL"


def test_pairs_of_pods_in_different_domains_are_counted_by_hand() -> None:
    """Nodes 3 + 1 in one block and 1 in the other, two pods on each: 3 + 3 + 1 pairs of nodes lie in different leaves,
    4 in different blocks, and each pair of nodes is 2 x 2 pairs of pods."""
    leaves = Leaves([3, 3, 3], [(0, 0), (0, 1), (1, 2)], [4, 1])
    assert leaves.cost_of({0: 3, 1: 1, 2: 1}, pods=2) == 4 * (1 * (3 + 3 + 1) + 4 * 4)


def test_what_stays_free_lies_in_few_leaves() -> None:
    """Gangs of 2, 2, 2 and 2 nodes in four leaves of 4: two leaves can be full and two empty, so none is broken."""
    jobs = [gang(name, 2, 8) for name in "abcd"]
    request = racks("|".join(["8,8,8,8"] * 4), jobs=jobs)
    task = task_of(request)
    spread = {name: {f"r{i}n1": 1, f"r{i}n2": 1} for i, name in enumerate("abcd", start=1)}
    movable = Movable(task)
    answer = answer_of(task, spread)
    (area,) = movable.areas(answer)
    movable.move(answer, area, search._better(task, answer, area))
    full_leaves = [sum(task.free.whole[4 * i : 4 * i + 4] == 0) for i in range(4)]
    assert sorted(full_leaves) == [0, 0, 4, 4]


def task_of(request: Request) -> Task:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    return Task(
        cluster, Free(cluster), Quotas(cluster), compile_gangs(cluster), "batch", request.limits, Deadline(None)
    )


def answer_of(task: Task, where: dict[str, dict[str, int]]) -> Answer:
    """Return an answer that puts pods of each job on the nodes named, their room taken."""
    answer = Answer()
    for gang_ in task.gangs:
        part = gang_.parts[0]
        taken = []
        for name, pods in where[gang_.name].items():
            node = task.cluster.tree.index[name]
            taken.append(Taken(part, node, pods, task.free.take(node, part.shape, pods, part.job.name)))
        answer.taken.append((gang_, taken))
    return answer


class Watched(Leaves):
    """Notes how many leaves each gang is offered."""

    widest = 0

    def fit(self, item: Item, leaves: Iterable[int], draw: Random, blink: float) -> Shares | None:
        offered = list(leaves)
        self.widest = max(self.widest, len(offered))
        return super().fit(item, offered, draw, blink)


def test_gangs_over_dozens_of_leaves_do_not_make_rounds_dear() -> None:
    """Two gangs on sixty leaves each, small ones between them and beside: no round looks at more than some dozens."""
    leaves = Watched([4] * 140, [(0, i) for i in range(140)], [4, 1])
    items = {0: Item(180), 1: Item(180), **{k: Item(3) for k in range(2, 40)}}
    leaves.put(0, dict.fromkeys(range(60), 3))
    leaves.put(1, dict.fromkeys(range(60, 120), 3))
    for k in range(2, 40):
        spare = [i for i in range(140) if leaves.free[i]]
        pair = 120 + 2 * (k - 30)
        leaves.put(k, dict.fromkeys(spare[:3], 1) if k < 30 else {pair: 2, pair + 1: 1})
    before = leaves.cost
    best, limit = ruin_and_recreate(leaves, items, 0, 400, 1, Deadline(None))
    assert 0 < leaves.widest <= 40
    assert limit == "rounds"
    assert leaves.cost <= before + 8
    assert sum(leaves.cost_of(shares) for shares in best.values()) < before
