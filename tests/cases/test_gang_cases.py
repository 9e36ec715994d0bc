"""Cases B, C and I: gangs whole or not at all, room kept whole, gangs spread and kept apart."""

from __future__ import annotations

from collections import Counter

import pytest

from kant_opt.backends import Order
from kant_opt.engine import Session
from kant_opt.schema import (
    Apart,
    FabricSpec,
    Job,
    JobGroup,
    Node,
    Outcome,
    Queue,
    Quota,
    Request,
    Slice,
    Spread,
)
from kant_opt.testing.builders import gang, podset, racks, running

from .answers import pods, refused, solve, solve_best


def placed_jobs(outcome: Outcome) -> set[str]:
    assert outcome.placement is not None
    return {job.job for job in outcome.placement.jobs}


def domains(request: Request, outcome: Outcome, job: str, depth: int = 0) -> dict[str, int]:
    """Return domain -> new pods of a job, on the level at `depth` from outside."""
    path_of = {node.name: node.path for node in request.nodes}
    found: Counter[str] = Counter()
    for node, count in pods(outcome, job).items():
        found[str(path_of[node][depth])] += count
    return dict(found)


# -- B: all or none ------------------------------------------------------------------------------


def test_b1_a_quota_of_four_starts_no_gang_of_seven() -> None:
    """Room is there for 8, quota for 4: four of seven pods would be no gang."""
    head, workers = podset("head", 1), podset("workers", 6)
    queue = Queue(name="q", quotas=(Quota(guaranteed=4, limit=4),))
    request = racks("4,4", jobs=[Job(name="ray", queue="q", podsets=(head, workers))], queues=(queue,))
    reason = refused(solve_best(request))
    assert (reason.kind, reason.short) == ("quota", "quota")


def test_b2_the_nearly_full_domain_is_no_trap() -> None:
    """The first pod would pack into the domain with 1 free; the four fit in the other alone."""
    request = racks("1|1,1,1,1", jobs=[gang("a", 4, required_level="rack")])
    assert domains(request, solve_best(request), "a") == {"r2": 4}


def test_b4_new_members_join_the_living() -> None:
    """Three of four run in r1, so the fourth has one place to go, though r2 is empty."""
    living = running("a", {"r1n1": 3})
    request = racks("4|4", jobs=[gang("a", 4, required_level="rack")], allocations=(living,))
    assert pods(solve_best(request), "a") == {"r1n1": 1}


def test_b4_no_room_beside_the_living() -> None:
    """With the last place of r1 taken by another job the member waits: r2 would part the gang."""
    held = (running("a", {"r1n1": 3}), running("other", {"r1n1": 1}))
    request = racks("4|4", jobs=[gang("a", 4, required_level="rack")], allocations=held)
    assert refused(solve_best(request)).kind == "not_now"


def test_b6_seventeen_of_eighteen() -> None:
    """A domain of 18 whole nodes holds a gang of 17, the other one of 16 does not."""
    nodes = [Node(name=f"{d}n{i}", path=(d,), gpus=4) for d, size in (("a", 16), ("b", 18)) for i in range(size)]
    job = gang("g", 17, 4, required_level="hbd")
    request = Request(fabric=FabricSpec(levels=("hbd",)), nodes=tuple(nodes), jobs=(job,))
    assert domains(request, solve(request), "g") == {"b": 17}


def test_b7_the_minimum_shrinks_with_the_finished() -> None:
    """Four of five completions are done: the last pod starts alone, though the gang's minimum says 4."""
    request = racks("1", jobs=[gang("a", 5, min_count=4, finished=4)])
    assert pods(solve_best(request), "a") == {"r1n1": 1}


@pytest.mark.parametrize("order", ["batch", "online"])
def test_b8_gangs_submitted_together_do_not_block_each_other(order: Order) -> None:
    """Three gangs of 4 on 8 hosts: two run whole, the third holds nothing."""
    request = racks("8,8,8,8|8,8,8,8", jobs=[gang(f"g{i}", 4, 8) for i in range(3)])
    outcome = solve(request, order)
    assert sorted(sum(pods(outcome, f"g{i}").values()) for i in range(3)) == [0, 4, 4]
    assert [r.kind for r in outcome.reasons] == ["outbid"]


@pytest.mark.parametrize("order", ["batch", "online"])
def test_b9_groups_are_whole_whatever_the_order_of_their_gangs(order: Order) -> None:
    """In the order a, c, b, d each group would have half; the first group gets both hosts."""
    groups = (JobGroup(name="ab", jobs=("a", "b")), JobGroup(name="cd", jobs=("c", "d")))
    request = racks("8,8", jobs=[gang(name, 1, 8) for name in "acbd"], groups=groups)
    outcome = solve_best(request, order)
    assert placed_jobs(outcome) == {"a", "b"}
    assert sorted(r.job for r in outcome.reasons) == ["c", "d"]


def test_b11_two_halves_do_not_wait_for_each_other() -> None:
    """Master and worker take the one host each: together they do not fit, so neither starts."""
    job = Job(name="a", podsets=(podset("master", 1, 8), podset("worker", 1, 8)))
    assert refused(solve_best(racks("8", jobs=[job]))).kind == "impossible"


# -- C: room kept whole --------------------------------------------------------------------------


def test_c2_services_pack_the_rack_first() -> None:
    """Twelve GPUs are one rack of three hosts of 4: no host and no rack is then broken, which no other way reaches."""
    request = racks("4,4,4|4,4,4|4,4,4", jobs=[gang(f"s{i:02}", 1, kind="inference") for i in range(12)])
    outcome = solve(request)
    homes = Counter(home for i in range(12) for home in domains(request, outcome, f"s{i:02}"))
    assert list(homes.values()) == [12]
    assert {n: v for level in outcome.levels for n, v in [(level.name, level.value)] if n.startswith("broken")} == {
        "broken_nodes": 0,
        "broken_leaves": 0,
    }


def four_domains(*, cpu_hosts: int = 0) -> Request:
    """Return four domains of four hosts, and hosts without GPUs in a domain of their own."""
    nodes = [Node(name=f"d{d}n{i}", path=(f"d{d}",), gpus=8, cpu_milli=64_000) for d in range(4) for i in range(4)]
    nodes += [Node(name=f"c{i}", path=("cpu",), cpu_milli=64_000) for i in range(cpu_hosts)]
    cpu_job = gang("cpu-job", 4, 0, cpu_milli=64_000)
    gangs = [gang(f"g{i}", 4, 8, required_level="hbd", cpu_milli=1000) for i in range(4)]
    return Request(fabric=FabricSpec(levels=("hbd",)), nodes=tuple(nodes), jobs=(cpu_job, *gangs))


def test_c3_a_job_without_gpus_stays_in_one_domain() -> None:
    """It comes first and takes four hosts whole: in one domain it leaves three for gangs, scattered it leaves none."""
    outcome = solve(four_domains(), "online")
    assert placed_jobs(outcome) == {"cpu-job", "g0", "g1", "g2"}


def test_c3_a_job_without_gpus_goes_to_hosts_without_gpus() -> None:
    """Where such hosts are free, all four domains stay whole."""
    outcome = solve(four_domains(cpu_hosts=4), "online")
    assert placed_jobs(outcome) == {"cpu-job", "g0", "g1", "g2", "g3"}


def test_c10_the_least_free_host_is_not_the_right_one() -> None:
    """r1 has 3 + 4 + 4 = 11 GPUs, all free. Best fit would put the pod on the host of 3, and leave 10 of 11 needed.

    Wherever it goes the pod breaks one node and one rack; the tighter rack is r2, with 8.
    """
    request = racks("3,4,4|4,4", jobs=[gang("pod", 1), gang("gang", 11, required_level="rack")])
    outcome = solve(request, "online")
    assert domains(request, outcome, "pod") == {"r2": 1}
    assert domains(request, outcome, "gang") == {"r1": 11}


def test_c12_single_pods_fill_broken_pairs() -> None:
    """0, 2 and 4 are busy, so 1, 3 and 5 lie in broken pairs; two pods go there and the pair 6, 7 stays whole."""
    nodes = tuple(Node(name=f"n{i}", path=(f"p{i // 2}",), gpus=1) for i in range(8))
    request = Request(
        fabric=FabricSpec(levels=("pair",)),
        nodes=nodes,
        allocations=(running("old", {"n0": 1, "n2": 1, "n4": 1}),),
        jobs=(gang("a", 1), gang("b", 1)),
    )
    outcome = solve_best(request)
    assert {*pods(outcome, "a"), *pods(outcome, "b")} < {"n1", "n3", "n5"}


# -- I: spread and apart -------------------------------------------------------------------------


def test_i1_groups_stay_whole_and_spread() -> None:
    """Four groups of four over two racks of 16: a group is a slice of one rack, half of the groups may share one."""
    rules = {"slices": (Slice(level="rack", size=4),), "spread": (Spread(level="rack", max_per_domain=8),)}
    request = racks("8,8|8,8", jobs=[gang("serve", 16, 1, **rules)])
    assert domains(request, solve(request), "serve") == {"r1": 8, "r2": 8}


def test_i1_without_the_spread_one_rack_takes_all() -> None:
    """What the rule changes: 16 free GPUs hold all four groups, and one rack costs no traffic."""
    request = racks("8,8|8,8", jobs=[gang("serve", 16, 1, slices=(Slice(level="rack", size=4),))])
    assert sorted(domains(request, solve(request), "serve").values()) == [16]


def test_i3_required_rack_and_spread_over_blocks() -> None:
    """Each group needs a rack of its block: r1 and r2 are tightest but both in b1, so the second goes to b2."""
    groups = tuple(podset(name, 2, required_level="rack") for name in ("g1", "g2"))
    job = Job(name="a", podsets=groups, apart=(Apart(level="block", podsets=("g1", "g2")),))
    request = racks("1,1|1,1/2,2|2,2", jobs=[job])
    outcome = solve_best(request)
    assert domains(request, outcome, "a", 0) == {"b1": 2, "b2": 2}
    assert len(domains(request, outcome, "a", 1)) == 2


@pytest.mark.parametrize("order", ["batch", "online"])
def test_i5_others_are_kept_out_of_an_exclusive_rack(order: Order) -> None:
    """The set takes one of two hosts of a rack for itself: the other job finds no place but the second rack."""
    request = racks("8,8|8", jobs=[gang("set", 1, 8, exclusive_level="rack", nodes=("r1n1",)), gang("other", 1, 8)])
    outcome = solve_best(request, order)
    assert (pods(outcome, "set"), pods(outcome, "other")) == ({"r1n1": 1}, {"r2n1": 1})


def test_i5_a_running_set_keeps_its_rack() -> None:
    """The same once the set runs: three hosts are free, and two of them are not for others."""
    held = running("set", {"r1n1": 1}, gpus=8, exclusive_level="rack")
    request = racks("8,8,8|8", jobs=[gang("other", 2, 8)], allocations=(held,))
    assert refused(solve_best(request)).kind == "not_now"
    single = racks("8,8,8|8", jobs=[gang("other", 1, 8)], allocations=(held,))
    assert pods(solve_best(single), "other") == {"r2n1": 1}


def test_i5_in_a_session() -> None:
    """Jobs that come one by one meet the same rule, and leave it behind with the job."""
    session = Session(racks("8,8"))
    assert session.place(gang("set", 1, 8, exclusive_level="rack")) is not None
    assert session.place(gang("other", 1, 8)) is None
    assert session.verify() == ()
    session.release("set")
    assert session.place(gang("other", 1, 8)) is not None
