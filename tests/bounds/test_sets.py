"""The cheapest set of gangs that reaches an amount, against all sets."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.bounds import Facts, cheapest_sets
from kant_opt.bounds.sets import halved
from kant_opt.fabric import build_fabric
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, compile_gangs

GANGS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=7)


def facts_of(gangs: list[tuple[int, int, int]], values: dict[str, int]) -> Facts:
    """Return the facts of gangs of (GPUs, cost, priority) on one node that is large enough; costs go by the name."""
    jobs = [gang(f"g{i}c{cost}", 1, gpus, priority=p) for i, (gpus, cost, p) in enumerate(gangs)]
    request = racks("100", jobs=jobs)
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    found = compile_gangs(cluster)
    return Facts(free=Free(cluster), possible=found, admitted=[], values=values, traffic_weights=[0, 1, 0])


@settings(deadline=None, derandomize=True, max_examples=300)
@given(GANGS, st.data())
def test_the_cheapest_of_all_sets(gangs: list[tuple[int, int, int]], data: st.DataObject) -> None:
    """Per class an amount that some set reaches, or one at random; the least cost over all 2^n sets must come out."""
    amounts = {p: data.draw(st.integers(0, sum(g for g, _, q in gangs if q == p))) for p in {p for *_, p in gangs}}
    best = {}
    for p, amount in amounts.items():
        mine = [(g, c) for g, c, q in gangs if q == p]
        costs = [
            sum(c for _, c in chosen)
            for k in range(len(mine) + 1)
            for chosen in combinations(mine, k)
            if sum(g for g, _ in chosen) == amount
        ]
        best[p] = min(costs, default=None)
    facts = facts_of(gangs, {f"admitted[{p}]": 1000 * amount for p, amount in amounts.items()})
    found = cheapest_sets(facts, lambda gang: int(gang.name.partition("c")[2]))
    if None in best.values():
        assert found is None
        return
    assert found is not None
    assert found.cost == sum(cost for cost in best.values() if cost is not None)
    assert len({gang.name for gang in found.gangs}) == len(found.gangs)
    for p, amount in amounts.items():
        assert sum(gang.gpu_milli for gang in found.gangs if gang.priority == p) == 1000 * amount
    assert sum(int(gang.name.partition("c")[2]) for gang in found.gangs) == found.cost


@given(st.integers(0, 200))
def test_lots_make_up_any_number(count: int) -> None:
    """Subset sums of the lots' sizes are 0 .. count without a hole, and there are about log2(count) lots."""
    sizes = [len(lot) for lot in halved(range(count))]
    reach = {0}
    for size in sizes:
        reach |= {size + n for n in reach}
    assert reach == set(range(count + 1))
    assert 2 ** (len(sizes) - 1) <= max(1, count)


def test_elastic_sizes_are_not_summed() -> None:
    request = racks("8", jobs=[gang("a", 4, 1, min_count=2)])
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    facts = Facts(Free(cluster), compile_gangs(cluster), [], {"admitted[0]": 3000}, [0, 1, 0])
    assert cheapest_sets(facts, lambda _: 0) is None
