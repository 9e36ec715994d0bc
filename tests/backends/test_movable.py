"""What may change places: only what keeps every rule, and counts as it is counted."""

from __future__ import annotations

from unittest import mock

import pytest

from kant_opt.backends import Answer, Deadline, Taken, Task
from kant_opt.backends.movable import Movable
from kant_opt.backends.worth import unless_worse
from kant_opt.engine import place
from kant_opt.fabric import build_fabric
from kant_opt.schema import Allocation, FabricSpec, Hold, Node, Objective, Outcome, Request
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, Quotas, compile_gangs


def values(outcome: Outcome) -> dict[str, int]:
    return {level.name: level.value for level in outcome.levels}


def test_single_pods_do_not_fill_the_node_of_one_that_is_to_be_alone() -> None:
    """3 + 1 would fill a node of 4, but the pod of 1 shares its node with nobody: two nodes stay broken."""
    request = racks("4,4", jobs=[gang("a", 1, 3), gang("b", 1, 1, exclusive_level="node")])
    found = place(request, backend="search")
    assert found.reasons == ()
    assert values(found)["broken_nodes"] == 2


def test_pods_of_a_job_stay_on_their_root() -> None:
    """Pods that do not talk may go anywhere one by one, but not where they would lie on separate roots."""
    request = racks("8,8|8,8", jobs=[gang("ring", 2, 8), gang("quiet", 2, 8, communication="none")])
    where = {"ring": {"r1n1": 1, "r2n1": 1}, "quiet": {"r1n2": 1, "r2n2": 1}}
    assert _loose(request, where) == [("r1n2",), ("r2n2",)]
    fabric = request.fabric.model_copy(update={"separate_roots": True})
    assert _loose(request.model_copy(update={"fabric": fabric}), where) == []


def test_a_gang_without_traffic_does_not_push_out_one_with_traffic() -> None:
    """Racks of 3, 1, 1 and 1 nodes. The ring of two comes first and has the large one for itself and one pod more; the
    three pods that do not talk would need fewer racks there, which is worth nothing, and split the ring."""
    quiet = gang("quiet", 3, 8, communication="none", required_level="block")
    request = racks("8,8,8|8|8|8/8", jobs=[gang("ring", 2, 8, priority=1), quiet])
    found = place(request, backend="search")
    assert found.reasons == ()
    assert values(found)["traffic"] == 0


def test_gangs_without_gpus_move_as_if_nodes_stayed_unused() -> None:
    """Nodes without GPUs, and four with: no node is in use before or after, so no leaf is broken."""
    for gpus in (0, 8):
        request = racks("|".join([f"{gpus},{gpus}"] * 2), jobs=[gang("a", 2, 0, cpu_milli=1000)])
        nodes = tuple(_with_cpu(node) for node in request.nodes)
        found = place(request.model_copy(update={"nodes": nodes}), backend="search")
        assert found.reasons == ()
        assert (values(found)["traffic"], values(found)["broken_leaves"]) == (0, 0)


def test_nodes_that_others_use_in_part_are_not_unused_where_a_load_leaves() -> None:
    for free, unused in ((4, False), (8, True)):
        request = racks(f"{free},{free}|{free},{free}", gpus_total=8, jobs=[gang("a", 2, free)])
        (area,) = Movable(task := _task(request)).areas(_answer(task, {"a": {"r1n1": 1, "r2n1": 1}}))
        assert area.unused is unused


@pytest.mark.parametrize(
    ("objective", "kept"),
    [
        (Objective(), True),
        (Objective(order=("admitted", "broken_leaves", "traffic")), False),
        (Objective(weights={"admitted": 1, "broken_leaves": 1, "traffic": 1}), False),
        (Objective(weights={"admitted": 1, "broken_leaves": 1, "traffic": 3}), True),
    ],
    ids=["usual", "leaves first", "leaves weigh more", "traffic weighs more"],
)
def test_less_traffic_for_broken_racks_is_taken_where_the_objective_says_so(objective: Objective, kept: bool) -> None:
    """Two racks with one node left and one with two: split, a gang of two fills two racks up for a traffic of 1;
    together it has none, and leaves two racks broken."""
    task = _task(racks("8,0|8,0|8,8", gpus_total=8, jobs=[gang("a", 2, 8)], objective=objective))
    answer = _answer(task, {"a": {"r1n1": 1, "r2n1": 1}})
    movable = Movable(task)
    (area,) = movable.areas(answer)
    before = list(answer.taken), task.free.units.copy()
    together = [task.cluster.tree.index[name] for name in ("r3n1", "r3n2")]
    unless_worse(task, answer, lambda: movable.move(answer, area, [together]))
    if kept:
        assert sorted(t.node for t in answer.taken[0][1]) == together
        return
    assert answer.taken == before[0]
    assert (task.free.units == before[1]).all()


def test_gpus_of_other_memory_are_not_alike_though_as_many_parts_of_them_are_free() -> None:
    """A quarter of a GPU of 4 MiB is left on each of two GPUs, and half a GPU of 2 MiB on two of four: as much memory,
    but two quarters go on one of these and only one on one of those."""
    jobs = [gang("a", 4, 0, gpu_milli=250)]
    small, large = ((4, 2, 500), (2, 4, 750))
    nodes, holds = [], []
    for i, (gpus, mib, used) in enumerate((small, small, large, large)):
        nodes.append(Node(name=f"n{i}", path=(f"r{i}",), gpus=gpus, gpu_memory_mib=mib))
        holds += [Hold(node=f"n{i}", gpu_milli=used, gpu_indices=(g,)) for g in (0, 1)]
        holds += [Hold(node=f"n{i}", gpus=1, gpu_indices=(g,)) for g in range(2, gpus)]
    held = Allocation(job="old", holds=tuple(holds))
    fabric = FabricSpec(levels=("rack",))
    task = _task(Request(fabric=fabric, nodes=tuple(nodes), jobs=tuple(jobs), allocations=(held,)))
    (area,) = Movable(task).areas(_answer(task, {"a": {"n0": 2, "n1": 2}}))
    assert area.nodes.tolist() == [True, True, False, False]


def test_where_nothing_moves_the_answer_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty gangs, each with nodes of its own: twenty areas, and a look costs a pass over all gangs."""
    jobs = [gang(f"j{i:02}", 2, 8, nodes=(f"r{i + 1}n1", f"r{i + 1}n2")) for i in range(20)]
    task = _task(racks("|".join(["8,8"] * 20), jobs=jobs))
    answer = _answer(task, {f"j{i:02}": {f"r{i + 1}n1": 1, f"r{i + 1}n2": 1} for i in range(20)})
    looks = mock.Mock(side_effect=Movable._look)
    monkeypatch.setattr(Movable, "_look", lambda self, answer: looks(self, answer))
    assert len(list(Movable(task).areas(answer))) == 20
    assert looks.call_count == 1


def _loose(request: Request, where: dict[str, dict[str, int]]) -> list[tuple[str, ...]]:
    """Return the nodes of every load that moves by itself."""
    task = _task(request)
    areas = Movable(task).areas(_answer(task, where))
    return [tuple(task.cluster.tree.names[n] for n in item.nodes) for a in areas for item in a.items if not item.gang]


def _task(request: Request) -> Task:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    gangs = compile_gangs(cluster)
    return Task(cluster, Free(cluster), Quotas(cluster), gangs, "batch", request.limits, Deadline(None))


def _answer(task: Task, where: dict[str, dict[str, int]]) -> Answer:
    answer = Answer()
    for one in task.gangs:
        taken = []
        for name, pods in where[one.name].items():
            part, node = one.parts[0], task.cluster.tree.index[name]
            taken.append(Taken(part, node, pods, task.free.take(node, part.shape, pods, part.job.name)))
        answer.taken.append((one, taken))
    return answer


def _with_cpu(node: Node) -> Node:
    return node.model_copy(update={"cpu_milli": 1000})
