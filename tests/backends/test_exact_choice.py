"""The folded program against the per-node one: the same optimum on every level, and the outcome says which it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kant_opt import place
from kant_opt.backends import Deadline, Task
from kant_opt.backends.cpsat import CpSat
from kant_opt.backends.exact import Exact
from kant_opt.backends.milp import Highs
from kant_opt.backends.solver import Solver
from kant_opt.engine.place import to_placement
from kant_opt.fabric import build_fabric
from kant_opt.formulation.classes import FILLINGS, Fold, fold, unfolded
from kant_opt.schema import Objective, Request
from kant_opt.testing.alike import alike_requests
from kant_opt.testing.builders import gang, racks
from kant_opt.testing.calm import calm
from kant_opt.testing.objective import evaluate
from kant_opt.testing.strategies import FAMILIES
from kant_opt.verify import RequestIndex, verify
from kant_opt.view import Cluster, Free, Gang, Quotas, compile_gangs

Choose = Callable[[Cluster, Free, Sequence[Gang]], Fold]
FOLDS: list[Choose] = [fold, *(partial(fold, fillings=FILLINGS[i:], always=True) for i in range(len(FILLINGS)))]
"""The smallest fold, and those that use slots, patterns or arcs where they can, whatever they cost."""


def per_node(cluster: Cluster, free: Free, gangs: Sequence[Gang]) -> Fold:
    return unfolded(gangs)


def solve(request: Request, choose: Choose, solver: Callable[[], Solver] = CpSat) -> tuple[dict[str, int], bool]:
    """Return the values of an answer that the verifier has nothing against, and whether all are proven."""
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    free, quotas = Free(cluster), Quotas(cluster)
    task = Task(cluster, free, quotas, compile_gangs(cluster), "batch", request.limits, Deadline(None))
    answer = Exact("exact", solver, apart=solver is not CpSat, counting=False, choose=choose).solve(task)
    placement = to_placement(cluster, answer)
    assert verify(request, placement) == ()
    values = dict(evaluate(RequestIndex(request), placement))
    return values, {name: bound.value for name, bound in answer.bounds.items()} == values


def have_the_same_optimum(request: Request, choose: Choose, solver: Callable[[], Solver] = CpSat) -> None:
    if not folds(request, choose):
        return
    values, proven = solve(request, choose, solver)
    assert proven
    reference, proven = solve(request, per_node, solver)
    if proven:  # else its work ended before all copies of alike nodes were looked at
        assert values == reference


def folds(request: Request, choose: Choose) -> bool:
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    chosen = choose(cluster, Free(cluster), compile_gangs(cluster))
    return bool(chosen.classes) or any(len(parts) > 1 for parts in chosen.demands)


REQUESTS = alike_requests(without={"shares", "mib"})
"""Nodes with shares of GPUs stay by themselves: the slow test has them, too."""
RULES_OF_PODSETS = {
    "levels",
    "running",
    "podsets",
    "required",
    "slices",
    "spread",
    "communication",
    "counted",
    "elastic",
}
FEW_RULES = alike_requests(max_jobs=2, without=set(FAMILIES) - RULES_OF_PODSETS)
"""Where levels, also that of nodes, speak of podsets alone: most can be folded then."""


@calm(120)
@given(REQUESTS, st.sampled_from(FOLDS))
def test_folded_and_per_node_have_the_same_optimum(request: Request, choose: Choose) -> None:
    have_the_same_optimum(request, choose)


@calm(80)
@given(FEW_RULES, st.sampled_from(FOLDS))
def test_so_they_have_under_few_rules(request: Request, choose: Choose) -> None:
    have_the_same_optimum(request, choose)


@pytest.mark.slow
@pytest.mark.parametrize("solver", [CpSat, Highs])
@pytest.mark.parametrize("choose", FOLDS, ids=["smallest", "slots", "patterns", "arcs"])
def test_two_thousand_requests(choose: Choose, solver: Callable[[], Solver]) -> None:
    calm(150)(given(alike_requests(max_nodes=4))(lambda r: have_the_same_optimum(r, choose, solver)))()
    calm(150)(given(FEW_RULES)(lambda r: have_the_same_optimum(r, choose, solver)))()


@dataclass(frozen=True)
class Case:
    name: str
    request: Request
    optimum: dict[str, int]
    formulation: str
    why: str


def with_cpu(request: Request, milli: int) -> Request:
    nodes = tuple(node.model_copy(update={"cpu_milli": milli}) for node in request.nodes)
    return request.model_copy(update={"nodes": nodes})


CASES = [
    Case(
        "twos-and-threes",
        racks("8,8,8", jobs=[gang("two", 6, 2, communication="none"), gang("three", 4, 3, communication="none")]),
        {"admitted[0]": 24_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "arc-flow, ",
        "three nodes are filled by 2 + 3 + 3, 2 + 3 + 3 and four twos",
    ),
    Case(
        "cpu-decides",
        with_cpu(
            racks(",".join("8" * 9), jobs=[gang("a", 18, 2, cpu_milli=9000), gang("b", 18, 1, cpu_milli=1000)]), 20_000
        ),
        {"admitted[0]": 54_000, "traffic": 0, "broken_nodes": 9, "broken_leaves": 0},
        "patterns, ",
        "a node has CPU for two of the large pods and then for two small ones: 6 of 8 GPUs are used on each",
    ),
    Case(
        "small-pods-share-what-is-broken",
        racks("8,8,8,8", jobs=[gang("big", 2, 8), *(gang(f"s{i}", 1, s) for i, s in enumerate((4, 2, 1, 1, 2, 4)))]),
        {"admitted[0]": 30_000, "traffic": 0, "broken_nodes": 1, "broken_leaves": 0},
        "slots, ",
        "14 GPUs of small pods need two nodes of 8, and one of them is not full",
    ),
    Case(
        "all-to-all-over-leaves",
        racks("|".join(["4,4,4,4"] * 4), jobs=[gang("a", 40, 1, communication="all_to_all")]),
        {"admitted[0]": 40_000, "traffic": 16 * 16 + 2 * 16 * 8, "broken_nodes": 0, "broken_leaves": 1},
        "slots, ",
        "16 + 16 + 8 leaves most pairs inside; the eight fill two nodes of their leaf",
    ),
    Case(
        "all-to-all-of-hundreds",
        racks("|".join([",".join(["8"] * 8)] * 6), jobs=[gang("a", 192, 1, communication="all_to_all")]),
        {"admitted[0]": 192_000, "traffic": 3 * 64 * 64, "broken_nodes": 0, "broken_leaves": 0},
        "slots, ",
        "three leaves of 64 hold it, and no two of its three thirds are together",
    ),
    Case(
        "four-on-a-node",
        racks(
            "8,8,8|8,8,8",
            jobs=[
                gang("a", 16, 1, slices=({"level": "node", "size": 4},)),
                *(gang(f"b{i}", 4, 1, required_level="node") for i in range(4)),
                gang("c", 2, 8),
            ],
        ),
        {"admitted[0]": 48_000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0},
        "slots, ",
        "four slices fill two nodes of a rack and two of the fours its third, the eights and the other fours the rest",
    ),
    Case(
        "occupied-nodes-of-many-sizes",
        with_cpu(
            racks(
                ",".join(["31"] * 9),
                jobs=[gang(f"g{s}", 1, s, cpu_milli=s) for s in (16, 14, 13, 17, 11, 19, 9, 21, 7, 23, 20)],
                objective=Objective(order=("admitted", "broken_nodes")),
            ),
            30,
        ),
        {"admitted[0]": 170_000, "broken_nodes": 6},
        "arc-flow, ",
        "170 units, and 30 on a node: 16 + 14, 13 + 17, 11 + 19, 9 + 21, 7 + 23 and the 20; the 31st GPU stays free",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_argued_cases(case: Case) -> None:
    assert solve(case.request, fold) == (case.optimum, True), case.why


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_outcomes_say_which_program_it_was(case: Case) -> None:
    outcome = place(case.request, backend="cp-sat")
    assert {level.name: level.value for level in outcome.levels} == case.optimum, case.why
    assert outcome.run.formulation.startswith(case.formulation)


def test_what_solves_no_program_says_nothing() -> None:
    assert place(CASES[0].request, backend="e-binpack").run.formulation == ""
