"""Every recorded placement of Kueue's own tests: the same verdict, and no more domains at the level asked for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from kant_opt.engine import place
from kant_opt.errors import InputError
from kant_opt.schema import Request, parse
from kant_opt.verify import verify

from .cases import Case, document, domains_used, level_name, load_cases, pods_of, pods_of_kueue, staying_pods

CASES = load_cases()
BY_NAME = {case["name"]: case for case in CASES}

CANNOT_BE_MEANT = {
    "find: cannot request not existing slice topology": "unknown level 'not_existing_topology_level'",
    "find: slice required topology level cannot be above the main required topology level": (
        "slice level 'block' lies outside the required level 'node'"
    ),
    "find: slice size is required when slice topology is requested": "size is 0",
}
"""Refused as questions, with the sentence they get."""


def params(cases: list[Case]) -> list[object]:
    """Return pytest's parameters of the cases; one that skips without recordings."""
    if not CASES:
        return [pytest.param({}, marks=pytest.mark.skip(reason="the recordings of Kueue are not beside the checkout"))]
    return [pytest.param(case, id=case["name"]) for case in cases]


def shrinks(case: Case) -> bool:
    return "shrink" in case["tags"]


PLACEABLE = [case for case in CASES if case["name"] not in CANNOT_BE_MEANT]
FITTING = [case for case in PLACEABLE if case["expect"]["fits"] and not shrinks(case)]


@dataclass(frozen=True)
class Wish:
    """Podsets that Kueue places together, the level they ask for (None: no wish) and how."""

    podsets: set[str]
    level: str | None
    strategy: str


def wishes(case: Case) -> list[Wish]:
    """Return the podsets of a case in the order and company in which Kueue places them."""
    groups: dict[str, list[Case]] = {}
    for podset in case["podsets"]:
        groups.setdefault(podset["group"] or podset["name"], []).append(podset)
    return [
        Wish({p["name"] for p in group}, group[0]["required_level"] or group[0]["preferred_level"], p["strategy"])
        for group in groups.values()
        for p in group[:1]
    ]


@pytest.mark.parametrize("case", params(PLACEABLE))
def test_fits_exactly_where_kueue_says(case: Case) -> None:
    """All of Kueue's refusals here were proven right by CP-SAT, so no other verdict can be right."""
    request = parse(Request, document(case))
    outcome = place(request)
    assert outcome.placement is not None
    assert (pods_of(case, outcome) is not None) == case["expect"]["fits"]
    assert verify(request, outcome.placement) == ()


@pytest.mark.parametrize("case", params(FITTING))
def test_uses_no_more_domains_than_kueue_at_the_level_asked_for(case: Case) -> None:
    ours = pods_of(case, place(parse(Request, document(case))))
    assert ours is not None
    if case["kind"] == "select":  # only the number of domains is recorded, for all podsets together
        used = domains_used(case, ours, {p["name"] for p in case["podsets"]})
        assert used["domain"] <= case["expect"]["domains_used_per_level"]["domain"]
        return
    kueues = pods_of_kueue(case)
    for wish in wishes(case):
        if wish.level:
            mine, theirs = domains_used(case, ours, wish.podsets), domains_used(case, kueues, wish.podsets)
            assert mine[wish.level] <= theirs[wish.level]


@pytest.mark.parametrize(
    "case", params([c for c in FITTING if c["kind"] != "select" and len(c.get("exact", {}).get("groups", ())) == 1])
)
def test_spans_the_fewest_domains_outer_levels_first(case: Case) -> None:
    """CP-SAT's least numbers, down to the level asked for or, where it lies further out, the innermost switch.

    Below it nodes are not counted: there broken nodes are filled first.
    """
    (group,) = case["exact"]["groups"]
    (wish,) = [w for w in wishes(case) if w.podsets >= set(group["podsets"])]
    ours = pods_of(case, place(parse(Request, document(case))))
    assert ours is not None
    levels = case["levels"] if wish.level == case["levels"][-1] else case["levels"][:-1]
    used = domains_used(case, ours, set(group["podsets"]))
    assert [used[level] for level in levels] == [group["fewest_outer_first"][level] for level in levels]


SINGLE_CHOICES = [c for c in FITTING if c["kind"] == "select" and len(c["podsets"]) == 1]


@pytest.mark.parametrize("case", params(SINGLE_CHOICES))
def test_takes_the_tightest_of_the_domains_that_hold_all(case: Case) -> None:
    """Five pods and domains of 9, 6, 4 and 2 free: 6 is the least that holds them."""
    ours = pods_of(case, place(parse(Request, document(case))))
    assert ours is not None
    assert [node for _, node in ours] == case["expect"]["chosen"]


@pytest.mark.parametrize("case", params([c for c in CASES if c["name"] in CANNOT_BE_MEANT]))
def test_questions_that_cannot_be_meant_are_refused_with_a_sentence(case: Case) -> None:
    with pytest.raises(InputError) as refusal:
        parse(Request, document(case))
    assert CANNOT_BE_MEANT[case["name"]] in str(refusal.value)


@pytest.mark.parametrize("case", params([c for c in CASES if shrinks(c)]))
def test_a_smaller_gang_keeps_its_pods_and_gets_no_new_ones(case: Case) -> None:
    """Which pods leave is for the workload to say, so we place nothing, where Kueue cuts the end of its list."""
    ours = pods_of(case, place(parse(Request, document(case))))
    assert ours == staying_pods(case)
    assert ours is not None
    assert ours.total() > pods_of_kueue(case).total()


@pytest.mark.parametrize("case", params([c for c in CASES if c["kind"] == "spread"]))
def test_an_even_spread_gives_every_domain_its_least_share(case: Case) -> None:
    """Kueue's own condition of this step; our wish `balance` asks for more, the most even shares."""
    ours = pods_of(case, place(parse(Request, document(case))))
    assert ours is not None
    assert min(ours.values()) >= case["podsets"][0]["least_per_domain"]


@pytest.mark.parametrize(
    "case",
    params(
        [
            case
            for case in PLACEABLE
            if case["kind"] == "place" and "most_that_fits" in case["expect"]
            if len(case["podsets"]) == 1 and case["podsets"][0]["required_level"]
        ]
    ),
)
def test_a_refusal_tells_how_many_fit_in_the_best_domain(case: Case) -> None:
    (reason,) = place(parse(Request, document(case))).reasons
    level = level_name(case, case["podsets"][0]["required_level"])
    (best,) = [fit for fit in reason.fits if fit.level == level]
    told = case["expect"]["most_that_fits"]
    assert (best.fits, best.needed, best.unit) == (told["fit"], told["of"], f"{told['unit']}s")


@pytest.mark.skipif(not CASES, reason="the recordings of Kueue are not beside the checkout")
def test_every_line_is_used() -> None:
    """Counted in the file by other means: lines, and verdicts per kind."""
    assert len(BY_NAME) == len(CASES) == 285
    assert set(BY_NAME) >= {*CANNOT_BE_MEANT}
    assert Counter((c["kind"], c["expect"]["fits"]) for c in PLACEABLE) == {
        ("place", True): 178,
        ("place", False): 66 - len(CANNOT_BE_MEANT),
        ("replace", True): 17,
        ("replace", False): 7,
        ("resize", True): 8,
        ("select", True): 4,
        ("select", False): 1,
        ("spread", True): 4,
    }
