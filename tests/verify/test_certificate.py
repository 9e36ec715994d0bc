"""Certificates: what rents prove is counted here by hand and by brute force, and what is tampered with is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kant_opt import place
from kant_opt.errors import InputError
from kant_opt.fabric import Path, build_fabric
from kant_opt.schema import (
    Apart,
    Certificate,
    FabricSpec,
    Job,
    JobGroup,
    Node,
    Outcome,
    Placement,
    RentMarket,
    RentTable,
    Request,
    Reservation,
    RunRecord,
    Slice,
    Together,
)
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, placement, podset, racks, running
from kant_opt.verify import CertificateCheck, check_certificate
from kant_opt.verify.prices import cheapest_prices

CALM = settings(deadline=None, derandomize=True, max_examples=80)
NOWHERE = Placement()

Rents = dict[Path, tuple[int, ...]]
"""Parent domain of leaves -> rents of a leaf by its free nodes; () is the whole fabric."""


def claim(
    request: Request,
    rents: Rents,
    *,
    bound: int = 0,
    scale: int = 1,
    jobs: tuple[str, ...] | None = None,
    answer: Placement = NOWHERE,
) -> CertificateCheck:
    """Check a certificate of one market, of all jobs unless some are named."""
    tables = tuple(RentTable(domain=domain, rents=table) for domain, table in rents.items())
    names = tuple(job.name for job in request.jobs) if jobs is None else jobs
    certificate = Certificate(scale=scale, markets=(RentMarket(jobs=names, tables=tables),), bound=bound)
    outcome = Outcome(status="FEASIBLE", placement=answer, certificate=certificate, run=RunRecord(backend="hand"))
    return check_certificate(request, outcome)


def proven(request: Request, rents: Rents, scale: int = 1) -> int:
    """Return what the rents prove; the only fault may be that nothing is placed."""
    check = claim(request, rents, scale=scale)
    assert all("does not place" in fault for fault in check.faults)
    return check.proven


# -- by hand


def test_prices_in_leaves_of_three_with_a_rent_of_one_for_the_second_node() -> None:
    """phi = 0, 0, 1, 1. One node: free where the rent is flat. Two: (2 -> 0) and (3 -> 1) both fall by 1. Three: 1.
    Four in leaves of three, a cut costing 5: 1 + 3 = 0 + 1 + 5, 2 + 2 = 1 + 1 + 5 = 7; three cuts cost more: 6."""
    leaves: dict[Path, int] = {("a",): 3, ("b",): 3}
    root, leaf = cheapest_prices(leaves, {(): (0, 0, 1, 1)}, [5], 4)
    assert leaf == (0, 0, 1, 1)
    assert root == (0, 0, 1, 1, 6)


def test_prices_where_a_cut_is_cheaper_than_a_large_piece() -> None:
    """Rents 0, 0, 9: two nodes of one leaf cost 9, one node each of two leaves 0 + 0 and a cut of 1."""
    leaves: dict[Path, int] = {("a",): 2, ("b",): 2}
    root, leaf = cheapest_prices(leaves, {(): (0, 0, 9)}, [1], 4)
    assert leaf == (0, 0, 9)
    assert root == (0, 0, 1, 2, 3)


def test_a_cut_between_blocks_costs_both_levels() -> None:
    """Without rents the prices are the cuts alone: 1 a rack, 4 + 1 a block, and a block has two racks of two."""
    leaves: dict[Path, int] = {("x", "a"): 2, ("x", "b"): 2, ("y", "c"): 2, ("y", "d"): 2}
    root, block, leaf = cheapest_prices(leaves, {}, [5, 1], 8)
    assert leaf == (0, 0, 0)
    assert block == (0, 0, 0, 1, 1)
    assert root == (0, 0, 0, 1, 1, 6, 6, 7, 7)


def test_three_gangs_of_two_on_leaves_of_three() -> None:
    """A gang of 2 in a leaf of 3 leaves one node. Three gangs on two such leaves fill them: one gang must be cut, as
    3 is no sum of twos. Rents 0, 0, 1, 1 say so: each gang pays 1, the leaves give back 1 each, and 3 - 2 = 1."""
    request = racks("1,1,1|1,1,1", jobs=[gang(name, 2) for name in "abc"])
    assert proven(request, {(): (0, 0, 1, 1)}) == 1
    best = brute_force(request)
    assert dict(best.values)["traffic"] == 1
    assert claim(request, {(): (0, 0, 1, 1)}, bound=1, answer=best.placement).faults == ()


def test_part_of_a_unit_is_rounded_up() -> None:
    """In thirds of a unit: rents of 1/3 per leaf, three gangs pay 1/3 each: 1 - 2/3 = 1/3, and traffic is whole."""
    request = racks("1,1,1|1,1,1", jobs=[gang(name, 2) for name in "abc"])
    assert proven(request, {(): (0, 0, 1, 1)}, scale=3) == 1


def test_rents_too_high_prove_nothing_less_than_zero() -> None:
    request = racks("1,1,1|1,1,1", jobs=[gang("a", 2)])
    assert proven(request, {(): (0, 50, 50, 50)}) == 0


def test_no_rents_count_the_cuts_of_each_gang_alone() -> None:
    """Five nodes in leaves of two: three pieces, two cuts."""
    assert proven(racks("1,1|1,1|1,1", jobs=[gang("a", 5)]), {}) == 2


def test_cuts_between_blocks_and_racks() -> None:
    """Four nodes in four racks, two a block: three racks more at 1 each and one block more at 4."""
    assert proven(racks("1|1/1|1", jobs=[gang("a", 4)]), {}) == 3 * 1 + 1 * 4


def test_markets_add_up() -> None:
    """Each pool is the case of three gangs of two, and neither gang can use the other's nodes."""
    nodes = tuple(
        Node(name=f"{pool}{rack}{n}", path=(f"{pool}{rack}",), pools=(pool,), gpus=1)
        for pool in "xy"
        for rack in range(2)
        for n in range(3)
    )
    jobs = tuple(gang(f"{pool}{i}", 2, pools=(pool,)) for pool in "xy" for i in range(3))
    request = Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, jobs=jobs)
    tables = (RentTable(rents=(0, 0, 1, 1)),)
    markets = tuple(RentMarket(jobs=tuple(f"{pool}{i}" for i in range(3)), tables=tables) for pool in "xy")
    outcome = place(request).model_copy(update={"certificate": Certificate(scale=1, markets=markets, bound=2)})
    check = check_certificate(request, outcome)
    assert (check.proven, check.faults) == (2, ())
    assert str(check) == (
        "certificate holds: traffic is at least 2 for any placement of these 6 gangs (checked in whole numbers)"
    )


# -- which nodes can be let: with a rent of 1 a node each node of a gang costs 1, so nine nodes prove 9 - nodes to let

LINEAR: Rents = {(): (0, 1, 2, 3)}
OLD = running("old", {"r2n3": 1})
TO_LET: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "all six": (6, {}, {}),
    "one is ruled out": (5, {"not_nodes": ("r2n3",)}, {}),
    "one is in use": (5, {}, {"allocations": (OLD,)}),
    "one is reserved": (5, {}, {"reservations": (Reservation(name="m", nodes=("r2n3",), start_s=7),)}),
    "reserved for one of the gangs": (
        6,
        {},
        {"reservations": (Reservation(name="m", nodes=("r2n3",), start_s=7, jobs=("b",)),)},
    ),
    "reserved once they are done": (
        6,
        {"walltime_s": 7},
        {"reservations": (Reservation(name="m", nodes=("r2n3",), start_s=7),)},
    ),
    "a rack is exclusively in use": (
        3,
        {},
        {"allocations": (OLD.model_copy(update={"exclusive_level": "rack"}),)},
    ),
    "they want racks for themselves": (3, {"exclusive_level": "rack"}, {"allocations": (OLD,)}),
    "they keep away from what runs": (3, {"apart": (Apart(level="rack", jobs=("old",)),)}, {"allocations": (OLD,)}),
}


@pytest.mark.parametrize("name", TO_LET)
def test_nodes_that_no_gang_can_use_are_not_let(name: str) -> None:
    nodes, asks, fields = TO_LET[name]
    request = racks("1,1,1|1,1,1", jobs=[gang(job, 3, **asks) for job in "abc"], **fields)
    assert proven(request, LINEAR) == 9 - nodes


def test_a_node_is_let_where_one_gang_may_use_it() -> None:
    """Node r2n3 is closed to `a` alone."""
    jobs = [gang("a", 3, not_nodes=("r2n3",)), gang("b", 3), gang("c", 3)]
    assert proven(racks("1,1,1|1,1,1", jobs=jobs), LINEAR) == 9 - 6


def test_what_runs_keeps_others_away_by_its_own_rule() -> None:
    """`old` is also a job of the queue, wants one pod more, and keeps away from a, b, c in its rack."""
    old = gang("old", 2, apart=(Apart(level="rack", jobs=("a", "b", "c")),))
    request = racks("1,1,1|1,1,1", jobs=[*(gang(job, 3) for job in "abc"), old], allocations=(OLD,))
    check = claim(request, LINEAR, jobs=("a", "b", "c"))
    assert check.proven == 9 - 3


def test_a_group_whose_member_runs_is_drawn_to_it() -> None:
    """All of the group lie in rack r1, where `m` holds one node of four: 6 nodes wanted, 3 to let."""
    jobs = [gang("a", 3), gang("b", 3), gang("m", 1)]
    group = JobGroup(name="g", jobs=("a", "b", "m"), together_level="rack")
    request = racks("1,1,1,1|1,1,1", jobs=jobs, groups=(group,), allocations=(running("m", {"r1n1": 1}),))
    assert claim(request, {(): (0, 1, 2, 3)}, jobs=("a", "b")).proven == 6 - 3


# -- how many nodes, and in which domain

LEAST: dict[str, tuple[int, dict[str, Any]]] = {
    "all": (4, {}),
    "elastic": (2, {"min_count": 2}),
    "elastic in whole slices": (4, {"min_count": 3, "slices": (Slice(level="rack", size=2),)}),
    "some are done": (3, {"finished": 1}),
}


@pytest.mark.parametrize("name", LEAST)
def test_a_gang_pays_for_the_nodes_it_cannot_do_without(name: str) -> None:
    """Three gangs with a rent of 1 a node, and only four nodes to let: what they need need not be there."""
    size, asks = LEAST[name]
    request = racks("1,1,1,1", jobs=[gang(job, 4, **asks) for job in "abc"])
    assert proven(request, {(): (0, 1, 2, 3, 4)}) == 3 * size - 4


PAIR = (podset("x", 1), podset("y", 1))
RACK: dict[str, Any] = {"required_level": "rack"}
ONE_RACK: dict[str, tuple[bool, list[Job], dict[str, Any]]] = {
    "free": (False, [gang(job, 2) for job in "abc"], {}),
    "required": (True, [gang(job, 2, **RACK) for job in "abc"], {}),
    "two podsets, each by itself": (
        False,
        [Job(name=job, podsets=tuple(p.model_copy(update=RACK) for p in PAIR)) for job in "abc"],
        {},
    ),
    "two podsets together": (
        True,
        [Job(name=job, podsets=PAIR, together=(Together(level="rack"),)) for job in "abc"],
        {},
    ),
    "two of three podsets together": (
        False,
        [
            Job(name=job, podsets=(*PAIR, podset("z", 1)), together=(Together(level="rack", podsets=("x", "y")),))
            for job in "abc"
        ],
        {},
    ),
    "grouped": (
        True,
        [gang(job, 2) for job in "abc"],
        {"groups": tuple(JobGroup(name=job, jobs=(job,), together_level="rack") for job in "abc")},
    ),
    "roots without a link": (
        True,
        [gang(job, 2) for job in "abc"],
        {"fabric": FabricSpec(levels=("rack",), separate_roots=True)},
    ),
    "roots without a link, which they may span": (
        False,
        [gang(job, 2, may_span_fabrics=True) for job in "abc"],
        {"fabric": FabricSpec(levels=("rack",), separate_roots=True)},
    ),
}


@pytest.mark.parametrize("name", ONE_RACK)
def test_a_gang_that_must_stay_in_one_rack_cannot_cut(name: str) -> None:
    """Rents 0, 0, 9: a pair in one rack pays 9, cut in two 1. Two racks give back 18: 27 - 18, or less than nothing."""
    whole, jobs, fields = ONE_RACK[name]
    request = racks("1,1|1,1", jobs=jobs).model_copy(update=fields)
    assert proven(request, {(): (0, 0, 9)}) == (9 if whole else 0)


# -- what is tampered with

GOOD = racks("1,1,1|1,1,1", jobs=[gang(name, 2) for name in "abc"])
RENTS: Rents = {(): (0, 0, 1, 1)}
ANSWER = placement(a={"r1n1": 1, "r1n2": 1}, b={"r2n1": 1, "r2n2": 1}, c={"r1n3": 1, "r2n3": 1})


def changed(**fields: Any) -> Request:
    """Return the good request with a changed job `a`."""
    return GOOD.model_copy(update={"jobs": (gang("a", 2, **fields), *GOOD.jobs[1:])})


TAMPERED: dict[str, tuple[Callable[[], CertificateCheck], str]] = {
    "bound raised": (lambda: claim(GOOD, RENTS, bound=2, answer=ANSWER), "prove a traffic of 1, not of 2"),
    "rents fall": (lambda: claim(GOOD, {(): (0, 0, 1, 0)}, answer=ANSWER), "fall from 1 to 0 at 3 nodes"),
    "rents do not start at 0": (lambda: claim(GOOD, {(): (-3, 0, 1, 1)}, answer=ANSWER), "start at -3"),
    "table too short": (lambda: claim(GOOD, {(): (0, 0, 1)}, answer=ANSWER), "end at 2 nodes, a leaf there has 3"),
    "table of no domain": (lambda: claim(GOOD, {("r1",): (0,) * 4}, answer=ANSWER), "r1, which is no domain of leaves"),
    "unknown job": (lambda: claim(GOOD, RENTS, jobs=("a", "ghost"), answer=ANSWER), "no job 'ghost'"),
    "job twice": (lambda: claim(GOOD, RENTS, jobs=("a", "b", "a"), answer=ANSWER), "a: listed twice"),
    "job not placed": (
        lambda: claim(GOOD, RENTS, answer=Placement(jobs=ANSWER.jobs[:2])),
        "placements with c, which this outcome does not place",
    ),
    "communication none": (lambda: claim(changed(communication="none"), RENTS, answer=ANSWER), "a: rents are about ri"),
    "pods of shares": (lambda: claim(changed(gpus=0, gpu_milli=500), RENTS, answer=ANSWER), "a/main: its pods ask for"),
    "living pods": (
        lambda: claim(GOOD.model_copy(update={"allocations": (running("a", {"r2n3": 1}),)}), RENTS, answer=ANSWER),
        "a: it has pods that run",
    ),
    "room for two": (
        lambda: claim(racks("1,1,2|1,1,1", jobs=GOOD.jobs), RENTS, jobs=("a",), answer=ANSWER),
        "a/main: node 'r1n3' could take two pods at once",
    ),
    "too large": (lambda: claim(racks("1|1", jobs=[gang("a", 3)]), {}, answer=ANSWER), "a: no domain has the nodes"),
    "no level": (
        lambda: claim(
            Request(nodes=(Node(name="r1n1", gpus=1),), jobs=(gang("a", 1),)), {}, answer=placement(a={"r1n1": 1})
        ),
        "no level above 'node'",
    ),
}


def test_untouched_it_holds() -> None:
    check = claim(GOOD, RENTS, bound=1, answer=ANSWER)
    assert (check.holds, check.proven, check.jobs) == (True, 1, ("a", "b", "c"))


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found(name: str) -> None:
    check, told = TAMPERED[name][0](), TAMPERED[name][1]
    assert not check.holds
    assert len(check.faults) <= 2, "what is wrong once is told once, and that the bound is not met for it"
    assert told in check.faults[0]


def test_a_market_with_a_fault_adds_nothing() -> None:
    """The same market twice would prove 2, where 1 is the optimum."""
    market = RentMarket(jobs=("a", "b", "c"), tables=(RentTable(rents=RENTS[()]),))
    certificate = Certificate(scale=1, markets=(market, market), bound=2)
    outcome = Outcome(status="FEASIBLE", placement=ANSWER, certificate=certificate, run=RunRecord(backend="hand"))
    check = check_certificate(GOOD, outcome)
    assert check.proven == 1
    assert check.faults == (
        "a, b, c: listed twice, counts once",
        "these rents prove a traffic of 1, not of 2",
    )
    assert str(check) == "certificate does not hold: 2 faults"


def test_two_tables_for_one_domain_are_a_fault() -> None:
    market = RentMarket(jobs=("a",), tables=(RentTable(rents=RENTS[()]), RentTable(rents=(0, 9, 9, 9))))
    outcome = Outcome(
        status="FEASIBLE",
        placement=ANSWER,
        certificate=Certificate(scale=1, markets=(market,), bound=0),
        run=RunRecord(backend="hand"),
    )
    assert check_certificate(GOOD, outcome).faults == ("2 tables of rents for the whole fabric",)


def test_no_certificate_is_the_callers_mistake() -> None:
    outcome = Outcome(status="FEASIBLE", placement=ANSWER, run=RunRecord(backend="hand"))
    with pytest.raises(InputError, match="has no certificate"):
        check_certificate(GOOD, outcome)


# -- what `place` makes

MADE = {
    "racks": racks("8,8,8|8,8,8|8,8,8", jobs=[gang(f"j{i}", 2, 8) for i in range(4)]),
    "two levels": racks(
        "8,8,8|8,8,8/8,8,8|8,8,8", jobs=[*(gang(f"j{i}", 2, 8) for i in range(4)), gang("large", 4, 8)]
    ),
    "some in use": racks(
        "8,8,8,8|8,8,8,8|8,8,8,8",
        jobs=[gang(f"j{i}", 2, 8) for i in range(5)],
        allocations=(running("old", {"r1n1": 8, "r2n1": 3}),),
    ),
    "a whole node needs no eight GPUs": racks("8,8,8|8,8,8|8,8,8", jobs=[gang(f"j{i}", 2, 5) for i in range(4)]),
}


@pytest.mark.parametrize("name", MADE)
def test_certificates_of_place_hold(name: str) -> None:
    """In each, gangs of two in leaves of three (or of 4 with one in use) leave a node over that only a cut uses."""
    request = MADE[name]
    outcome = place(request)
    assert outcome.certificate is not None, "the case is to be one where rents prove more than counting"
    assert outcome.certificate.bound > 0
    check = check_certificate(request, outcome, build_fabric(request.fabric, request.nodes))
    assert check.faults == ()
    assert check.proven >= outcome.certificate.bound
    traffic = next(level for level in outcome.levels if level.name == "traffic")
    assert check.proven <= traffic.value


def test_certificates_of_place_hold_for_pools_side_by_side() -> None:
    """Eight nodes of two pools in each rack: the gangs of one pool are one market, and those of the other another."""
    nodes = tuple(
        Node(name=f"{pool}{rack}{n}", path=(f"r{rack}",), pools=(pool,), gpus=8)
        for pool in "xy"
        for rack in range(3)
        for n in range(3)
    )
    jobs = tuple(gang(f"{pool}{i}", 2, 8, pools=(pool,)) for pool in "xy" for i in range(4))
    request = Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, jobs=jobs)
    outcome = place(request)
    assert outcome.certificate is not None
    assert len(outcome.certificate.markets) == 2
    check = check_certificate(request, outcome)
    assert (check.holds, check.proven) == (True, 2)


def test_a_place_made_certificate_with_a_higher_bound_does_not_hold() -> None:
    outcome = place(MADE["racks"])
    assert outcome.certificate is not None
    raised = outcome.certificate.model_copy(update={"bound": outcome.certificate.bound + 1})
    assert not check_certificate(MADE["racks"], outcome.model_copy(update={"certificate": raised})).holds


# -- no rents prove more than is true


@st.composite
def whole_node_requests(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Request:
    """Draw up to seven nodes of one GPU in racks of one or two blocks, some out of reach, and up to three gangs."""
    blocks = draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=2))
    assume(sum(map(sum, blocks)) <= 7)
    jobs = []
    for i in range(draw(st.integers(1, 3))):
        fields = draw(
            st.sampled_from(
                ({}, {}, {"required_level": "rack"}, {"not_nodes": ("r1n1",)}, {"together": (Together(level="rack"),)})
            )
        )
        jobs.append(gang(f"j{i}", draw(st.integers(1, 4)), **fields))
        if "together" not in fields and draw(st.booleans()):
            tail = podset("tail", 1, required_level=draw(st.sampled_from((None, "rack"))))
            jobs[-1] = jobs[-1].model_copy(update={"podsets": (*jobs[-1].podsets, tail)})
    used = {"r2n1": 1} if len([n for block in blocks for n in block]) > 1 and draw(st.booleans()) else {}
    return racks(
        "/".join("|".join(",".join("1" * nodes) for nodes in block) for block in blocks),
        jobs=jobs,
        allocations=(running("old", used),),
    )


@CALM
@given(whole_node_requests(), st.data())
def test_no_rents_prove_more_than_the_optimum(request_: Request, data: st.DataObject) -> None:
    fabric = build_fabric(request_.fabric, request_.nodes)
    steps = st.lists(st.sampled_from((0, 0, 1, 2, 10)), min_size=3, max_size=3)
    rents: Rents = {}
    for parent in sorted({leaf[:-1] for leaf in fabric.domains("rack")}):
        a, b, c = data.draw(steps)
        rents[parent] = (0, a, a + b, a + b + c)
    best = brute_force(request_)
    assume(len(best.placement.jobs) == len(request_.jobs))
    check = claim(request_, rents, scale=2, answer=best.placement)
    assert check.faults == ()
    assert check.proven <= dict(best.values)["traffic"]
