"""Cases of CASES.md about time: starvation, backfilling, reservations, and what the waiting are told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kant_opt.planning import ORDERS, plan, replan
from kant_opt.planning.board import Board
from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.policies.conservative import Conservative
from kant_opt.planning.ticket import Ticket
from kant_opt.planning.timeline import run_timeline
from kant_opt.schema import Job, Node, Plan, PodSet, Request, Reservation, Wait
from kant_opt.testing.builders import gang, running
from kant_opt.verify import verify_plan

BACKFILLING = ("easy", "conservative", "depth-2", "slack")


def planned(request: Request, policy: str = "conservative", **options: object) -> Plan:
    """Return the plan in the order of submission, which the verifier accepts."""
    found = plan(request, policy=policy, order="fifo", **options)  # type: ignore[arg-type]
    assert verify_plan(request, found) == ()
    return found


def starts(found: Plan) -> dict[str, int]:
    return {run.job: run.start_s for run in found.jobs}


def why(found: Plan, job: str) -> Wait:
    """Return why a job waits; it must be told."""
    run = found.of(job)
    wait = run.wait if run else next(entry.wait for entry in found.unplanned if entry.job == job)
    assert wait is not None
    assert repr(job) in wait.sentence
    return wait


def whole(name: str, nodes: int, walltime: int | None, **rules: object) -> Job:
    """Return a gang of whole nodes of one GPU."""
    return gang(name, nodes, 1, walltime_s=walltime, **rules)


def hosts(count: int, jobs: Sequence[Job], **fields: object) -> Request:
    """Return nodes h0, h1, ... of one GPU each."""
    return Request(nodes=tuple(Node(name=f"h{i}", gpus=1) for i in range(count)), jobs=tuple(jobs), **fields)


@pytest.mark.parametrize("policy", BACKFILLING[:3])
def test_e1_a_large_gang_does_not_starve(policy: str) -> None:
    """Three of four hosts are in use until 10: the gang of 4 starts then, as nothing may take them before."""
    request = hosts(
        4,
        [whole("gang", 4, 100), whole("short", 1, 5), whole("long", 1, 20)],
        allocations=(running("old", {"h0": 1, "h1": 1, "h2": 1}, until_s=10),),
    )
    found = planned(request, policy)
    assert starts(found) == {"short": 0, "gang": 10, "long": 110}
    assert starts(planned(request, "best-effort"))["gang"] == 25, "the 20 s job starts at 5, and the gang starves"


def test_e4_what_fits_nowhere_blocks_nobody() -> None:
    request = Request(
        nodes=tuple(Node(name=f"n{i}", cpu_milli=50_000) for i in range(2)),
        jobs=(
            Job(name="wide", walltime_s=60, podsets=(PodSet(count=1, cpu_milli=70_000),)),
            Job(name="slim", walltime_s=60, podsets=(PodSet(count=1, cpu_milli=50_000),)),
        ),
    )
    for policy in ("fifo", *BACKFILLING):
        found = planned(request, policy)
        assert starts(found) == {"slim": 0}, policy
        assert why(found, "wide").kind == "impossible"


@pytest.mark.parametrize("policy", BACKFILLING)
def test_e5_a_new_job_that_fits_is_tried_behind_a_hundred_that_do_not(policy: str) -> None:
    blocked = [whole(f"b{i}", 2, 10) for i in range(100)]
    request = hosts(2, [*blocked, whole("new", 1, 10)], allocations=(running("old", {"h0": 1}, until_s=50),))
    assert starts(planned(request, policy))["new"] == 0


def test_e7_waves_of_equal_length_in_the_order_of_the_queue() -> None:
    """Sizes 1,1,2,1x8,4,3,2,2,2,3 on four nodes. In order: {1,1,2} {1x4} {1x4} {4} {3} {2,2} {2} {3}: 8 waves. The
    first four waves are full, and no 1 is left to go beside a 3: backfilling changes nothing. The best plan puts the
    1s beside the 3s and has 7 waves; `optimal` finds it, see its tests."""
    sizes = [1, 1, 2, *[1] * 8, 4, 3, 2, 2, 2, 3]
    request = hosts(4, [whole(f"j{i:02}", size, 10) for i, size in enumerate(sizes)])
    for policy in ("fifo", "easy", "conservative"):
        found = planned(request, policy)
        assert max(run.start_s for run in found.jobs) + 10 == 80, policy
        assert len({run.start_s for run in found.jobs}) == 8


@pytest.mark.parametrize("policy", ["fifo", *BACKFILLING])
def test_e8_a_node_that_is_down_is_not_counted_on(policy: str) -> None:
    nodes = tuple(Node(name=f"n{i}", gpus=1, schedulable=i != 3, why_closed="" if i != 3 else "down") for i in range(4))
    found = planned(Request(nodes=nodes, jobs=(whole("all", 4, 10), whole("some", 3, 10))), policy)
    assert starts(found) == {"some": 0}, "it is not held up either"
    wait = why(found, "all")
    assert (wait.kind, wait.nodes) == ("impossible", ("n3",))
    assert "impossible until 'n3' returns" in wait.sentence


def test_e9_the_room_of_a_cancelled_job_is_free_at_once() -> None:
    busy = (running("old", {"h0": 1}, until_s=10),)
    first = planned(hosts(2, [whole("gone", 2, 100), whole("next", 1, 50)], allocations=busy))
    assert starts(first) == {"gone": 10, "next": 110}
    again = replan(first, hosts(2, [whole("next", 1, 50)], allocations=busy), order="fifo")
    assert starts(again) == {"next": 0}


def test_e11_hosts_drain_for_the_boulder_and_sand_packs_densely() -> None:
    """The boulder needs all eight hosts and one is in use until 100. 16 grains of 50 s fill two hosts meanwhile, as two
    are the fewest; grains of 200 s would hold it up and come after it."""
    nodes = tuple(Node(name=f"h{i}", gpus=8) for i in range(8))
    grains = [gang(f"g{i:02}", 1, 1, walltime_s=50) for i in range(16)]
    coarse = [gang(f"c{i}", 1, 1, walltime_s=200) for i in range(4)]
    request = Request(
        nodes=nodes,
        jobs=(gang("boulder", 8, 8, walltime_s=1000), *coarse, *grains),
        allocations=(running("old", {"h0": 1}, gpus=8, until_s=100),),
    )
    for policy in BACKFILLING[:3]:
        found = planned(request, policy)
        assert starts(found)["boulder"] == 100
        assert {starts(found)[g.name] for g in grains} == {0}
        assert len({run.nodes for run in found.jobs if run.job.startswith("g")}) == 2
        assert {starts(found)[c.name] for c in coarse} == {1100}


def test_e14_times_are_exact_to_the_second() -> None:
    """Three jobs of 30 s on one host: 0, 30, 60, whatever step a clock might have."""
    found = planned(hosts(1, [whole(f"j{i}", 1, 30) for i in range(3)]))
    assert [(run.start_s, run.end_s) for run in found.jobs] == [(0, 30), (30, 60), (60, 90)]


@pytest.mark.parametrize("policy", BACKFILLING)
def test_e15_partitions_that_share_no_node_do_not_hold_each_other_up(policy: str) -> None:
    nodes = tuple(Node(name=f"{pool}{i}", pools=(pool,), gpus=1) for pool in "ab" for i in range(2))
    jobs = (
        gang("a-head", 2, 1, walltime_s=50, pools=("a",)),
        gang("b-long", 2, 1, walltime_s=10_000, pools=("b",)),
    )
    request = Request(nodes=nodes, jobs=jobs, allocations=(running("old", {"a0": 1}, until_s=500),))
    assert starts(planned(request, policy)) == {"b-long": 0, "a-head": 500}


@pytest.mark.parametrize("policy", BACKFILLING)
def test_e16_a_promise_holds_the_gpus_it_needs_and_not_the_host(policy: str) -> None:
    """Of 8 GPUs 6 are in use until 10. The head is promised 4 from then on; 2 of the other 4 are free all along."""
    request = Request(
        nodes=(Node(name="h", gpus=8),),
        jobs=(gang("head", 1, 4, walltime_s=100), gang("half", 1, 2, walltime_s=1000)),
        allocations=(running("old", {"h": 6}, until_s=10),),
    )
    assert starts(planned(request, policy)) == {"half": 0, "head": 10}


def test_e17_a_pool_that_would_need_an_eviction_is_passed_over() -> None:
    nodes = (Node(name="a", pools=("first",), gpus=1), Node(name="b", pools=("second",), gpus=1))
    request = Request(
        nodes=nodes,
        jobs=(gang("j", 1, 1, pools=("first", "second"), walltime_s=10),),
        allocations=(running("old", {"a": 1}),),
    )
    found = planned(request, head_timeout_s=0)
    assert [(run.start_s, run.nodes) for run in found.jobs] == [(0, ("b",))]


def test_f8_every_job_is_told_when_it_starts() -> None:
    request = hosts(2, [whole("a", 2, 60), whole("b", 1, 30), whole("c", 2, 10)])
    assert starts(planned(request)) == {"a": 0, "b": 60, "c": 90}


def test_f10_an_expected_start_is_trusted_as_far_as_the_walltimes() -> None:
    """Jobs that end early let others start early; under conservative backfilling none starts later than it was first
    told. The error of the estimate is then what the walltimes were too long by."""

    class Recording(Conservative):
        first: dict[str, int]

        def decide(self, board: Board) -> None:
            super().decide(board)
            for ticket, claim in board.promises.items():
                self.first.setdefault(ticket.name, claim.start)

    policy = Recording()
    policy.first = {}
    tickets = [Ticket(f"t{i}", i, submit=i, length=100, gpus=1 + i % 3, run=20 + 7 * i) for i in range(10)]
    board = Board(CountingSpace(4), ORDERS["fifo"]())
    run_timeline(board, policy, tickets, start=0)
    errors = {run.ticket.name: policy.first.get(run.ticket.name, run.start) - run.start for run in board.runs}
    assert len(errors) == 10
    assert min(errors.values()) >= 0
    assert max(errors.values()) > 0


@pytest.mark.parametrize("policy", ["conservative", "easy"])
def test_f11_free_nodes_that_are_held_are_said_to_be_held(policy: str) -> None:
    request = hosts(
        2, [whole("big", 2, 100), whole("long", 1, 500)], allocations=(running("old", {"h0": 1}, until_s=10),)
    )
    wait = why(planned(request, policy), "long")
    assert (wait.kind, wait.jobs, wait.nodes) == ("held", ("big",), ("h1",))
    assert "held for job 'big' from 10" in wait.sentence
    assert why(planned(request, "fifo"), "long").kind == "order"


def test_maintenance_closes_a_node_to_what_lasts_into_it() -> None:
    """Maintenance from 50 on closes the node to what lasts longer, and the reason names it."""
    kept = Reservation(name="upkeep", nodes=("h0",), start_s=50, end_s=80)
    found = planned(hosts(1, [whole("long", 1, 60), whole("short", 1, 50)], reservations=(kept,)))
    assert starts(found) == {"short": 0, "long": 80}
