"""The strategies draw what they promise: valid requests of every family, and placements of both kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from kant_opt.errors import UnknownName
from kant_opt.schema import Objective, Placement, PodSet, Request, parse, to_json
from kant_opt.testing.strategies import FAMILIES, placements, requests
from kant_opt.verify import RULES, verify

QUIET = settings(
    deadline=None,
    derandomize=True,
    max_examples=3000,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[p for p in settings().phases if p.name == "generate"],
)
"""To find one draw with some mark, unshrunk."""


def any_podset(has: Callable[[PodSet], object]) -> Callable[[Request], bool]:
    return lambda request: any(has(p) for j in request.jobs for p in j.podsets)


def gone_or_over(request: Request) -> bool:
    nodes = {n.name: n for n in request.nodes}
    holds = [h for a in request.allocations for h in a.holds]
    return any(
        h.gpus > nodes[h.node].healthy_gpus or any(i >= nodes[h.node].gpus for i in h.gpu_indices) for h in holds
    )


MARKS: dict[str, Callable[[Request], bool]] = {
    "levels": lambda r: len(r.fabric.levels) != 1,
    "unknown_paths": lambda r: any(None in n.path for n in r.nodes),
    "separate_roots": lambda r: r.fabric.separate_roots,
    "closed_nodes": lambda r: any(not n.schedulable for n in r.nodes),
    "sick_gpus": lambda r: any(n.healthy_gpus < n.gpus for n in r.nodes),
    "taints": lambda r: any(n.taints for n in r.nodes),
    "labels": lambda r: any(n.labels for n in r.nodes),
    "node_lists": any_podset(lambda p: p.nodes or p.not_nodes),
    "pools": lambda r: any(n.pools != ("default",) for n in r.nodes),
    "counted": lambda r: any(n.cpu_milli for n in r.nodes),
    "running": lambda r: any(a.job.startswith("old") for a in r.allocations),
    "over_committed": gone_or_over,
    "living": lambda r: any(a.job.startswith("j") and a.holds for a in r.allocations),
    "finished": any_podset(lambda p: p.finished),
    "shares": any_podset(lambda p: p.gpu_milli),
    "mib": any_podset(lambda p: p.gpu_memory_mib),
    "podsets": lambda r: any(len(j.podsets) > 1 for j in r.jobs),
    "elastic": any_podset(lambda p: p.min_count),
    "required": any_podset(lambda p: p.required_level),
    "preferred": any_podset(lambda p: p.preferred_level),
    "slices": any_podset(lambda p: p.slices),
    "spread": any_podset(lambda p: p.spread),
    "together": lambda r: any(j.together for j in r.jobs),
    "apart": lambda r: any(j.apart for j in r.jobs),
    "exclusive": lambda r: any(j.exclusive_level for j in r.jobs),
    "groups": lambda r: bool(r.groups),
    "quotas": lambda r: bool(r.queues),
    "reservations": lambda r: bool(r.reservations),
    "priorities": lambda r: len({j.priority for j in r.jobs}) > 1,
    "communication": lambda r: any(j.communication != "ring" for j in r.jobs),
    "objectives": lambda r: r.objective != Objective(),
}


def test_every_family_has_a_mark() -> None:
    assert set(MARKS) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_drawn_and_can_be_left_out(family: str) -> None:
    assert find(requests(), MARKS[family], settings=QUIET)

    @settings(deadline=None, derandomize=True, max_examples=20)
    @given(requests(without={family}))
    def none(request: Request) -> None:
        assert not MARKS[family](request)

    none()


def test_an_unknown_family_is_named() -> None:
    @given(requests(without={"share"}))
    @settings(derandomize=True, max_examples=1)
    def draw(request: Request) -> None:
        raise AssertionError("nothing to draw")

    with pytest.raises(UnknownName, match="did you mean 'shares'"):
        draw()


@settings(deadline=None, derandomize=True, max_examples=150)
@given(requests(max_nodes=3, max_jobs=2, max_pods=4))
def test_requests_are_valid_and_survive_a_round_trip(request: Request) -> None:
    assert len(request.nodes) <= 3
    assert len(request.jobs) <= 2
    assert all(sum(p.count for p in job.podsets) <= 4 for job in request.jobs)
    assert parse(Request, Request.model_validate_json(to_json(request)).model_dump(by_alias=True)) == request


@st.composite
def asked(draw: st.DrawFn) -> tuple[Request, Placement]:
    request = draw(requests())
    return request, draw(placements(request))


def test_placements_of_all_kinds_are_drawn() -> None:
    """In some hundred draws every rule breaks, most of them also alone, and gangs stand validly side by side."""
    broken: Counter[frozenset[str]] = Counter()
    side_by_side = 0

    @settings(deadline=None, derandomize=True, max_examples=500, suppress_health_check=list(HealthCheck))
    @given(asked())
    def draw(pair: tuple[Request, Placement]) -> None:
        nonlocal side_by_side
        rules = frozenset(v.rule for v in verify(*pair))
        broken[rules] += 1
        side_by_side += not rules and len(pair[1].jobs) > 1

    draw()
    assert {rule for rules in broken for rule in rules} == set(RULES)
    assert sum(len(rules) == 1 for rules in broken) > len(RULES) / 2
    assert broken[frozenset()] > 50
    assert side_by_side > 10
