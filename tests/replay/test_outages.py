"""Nodes that fail: who ran there runs again, nobody is there meanwhile, and a kill changes nothing."""

from __future__ import annotations

import json

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.io.traces import Trace, TraceJob
from kant_opt.planning import make_policy
from kant_opt.replay import replay
from kant_opt.replay.checkpoint import Kept
from kant_opt.replay.course import run_course
from kant_opt.replay.outages import Outage, drawn_outages
from kant_opt.replay.stage import fabric_stage
from kant_opt.replay.workload import workload
from tests.replay.test_replay import drawn, small_fabric


def test_a_failure_costs_the_run_and_moves_it() -> None:
    """a runs 100 s from 0 on n00; at 40 it fails: a runs again on n01 from 40 on, b, queued behind it, after that."""
    jobs = (TraceJob("a", 0, 100, 8), TraceJob("b", 50, 10, 8))
    found = replay(
        Trace("two", "jsonl", jobs), small_fabric(2, 8), policies=["fifo"], outages=[Outage("n00", 40, 500)]
    ).runs[0]
    a, b = found.jobs
    assert (a.start_s, a.end_s, a.where, a.evictions) == (40, 140, ((1, 8000),), 1)
    assert (b.start_s, b.where) == (140, ((1, 8000),))
    assert found.evictions == 1
    # 8 of 16 GPUs for 40 s, then 8 of 8 for 110 s
    assert found.shares.sor == pytest.approx(150 * 8 / (40 * 16 + 110 * 8))


def test_a_node_that_comes_back_is_used_again() -> None:
    jobs = (TraceJob("a", 10, 5, 8),)
    found = replay(
        Trace("one", "jsonl", jobs), small_fabric(1, 8), policies=["easy"], outages=[Outage("n00", 0, 60)]
    ).runs[0]
    assert [(job.start_s, job.wait_s) for job in found.jobs] == [(60, 50)]


NODES = [f"n{i:02}" for i in range(5)]


@pytest.mark.parametrize("policy", ["fifo", "best-effort", "easy", "depth-3", "conservative", "slack"])
def test_nobody_is_on_a_node_that_is_out(policy: str) -> None:
    trace = drawn(1)
    outages = drawn_outages(NODES, (0, 3000), mtbf_s=800, repair_s=300, seed=2)
    assert len(outages) > 5
    run = replay(trace, small_fabric(5, 8), policies=[policy], outages=outages).runs[0]
    assert {job.fate for job in run.jobs} == {"ended"}
    assert run.evictions > 0
    for job in run.jobs:
        assert job.start_s is not None
        assert job.end_s == job.start_s + job.run_s
        for outage in outages:
            if job.start_s < outage.end_s and outage.start_s < job.end_s:
                assert NODES.index(outage.node) not in dict(job.where), (job, outage)


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_going_on_amid_failures(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kant_opt.replay.course._LOOK_EVERY", 9)
    stage = fabric_stage(workload(drawn(1)), *small_fabric(5, 8))
    outages = drawn_outages(NODES, (0, 3000), mtbf_s=800, repair_s=300, seed=2)
    saved: list[str] = []
    whole = run_course(
        stage,
        make_policy(policy),
        "fifo",
        backend="e-binpack",
        seed=0,
        outages=outages,
        due=lambda: True,
        save=lambda kept: saved.append(json.dumps(kept.as_json())),
    )
    for state in saved:
        kept = Kept(**json.loads(state))
        course = run_course(stage, make_policy(policy), "fifo", backend="e-binpack", seed=0, outages=outages, kept=kept)
        assert course.spans == whole.spans


def test_outages_that_cannot_be_meant() -> None:
    trace = drawn(1, jobs=3)
    with pytest.raises(InputError, match="outages without nodes"):
        replay(trace, 16, outages=[Outage("n00", 0, 1)])
    for outages, told in (
        ([Outage("n99", 0, 1)], "unknown node 'n99'"),
        ([Outage("n00", 5, 5)], "end comes after the start"),
        ([Outage("n00", 0, 9), Outage("n00", 8, 12)], "while it is out until 9"),
    ):
        with pytest.raises((InputError, UnknownName), match=told):
            replay(trace, small_fabric(2, 8), outages=outages)
    with pytest.raises(InputError, match="positive times"):
        drawn_outages(NODES, (0, 10), mtbf_s=0, repair_s=5)
