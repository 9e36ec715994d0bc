"""Replays: published and independently computed averages, spaces against each other, laws, refusals."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import load_topology
from kant_opt.io.traces import Trace, TraceJob, read_trace
from kant_opt.replay import ReplayResult, replay
from kant_opt.schema import FabricSpec, Node


def drawn(seed: int, jobs: int = 60, *, largest: int = 16, share: float = 0.0) -> Trace:
    """Return a trace that keeps some dozens of GPUs busy; users ask for more than they need."""
    draw = Random(seed)
    found = []
    time = 0
    for i in range(jobs):
        time += draw.choice([0, 5, 20, 60])
        gpus = draw.choice([g for g in (1, 2, 3, 4, 8, 16) if g <= largest])
        run = draw.choice([10, 60, 200, 600])
        milli = 500 if gpus == 1 and draw.random() < share else None
        asked = run * draw.choice([1, 1, 3])
        found.append(TraceJob(f"j{i}", time, run, gpus, asked, gpu_milli=milli, user=f"u{i % 3}"))
    return Trace("drawn", "jsonl", tuple(found))


def small_fabric(nodes: int, gpus: int, per_leaf: int = 2) -> tuple[FabricSpec, tuple[Node, ...]]:
    listed = tuple(Node(name=f"n{i:02}", path=(f"l{i // per_leaf}",), gpus=gpus) for i in range(nodes))
    return FabricSpec(levels=("leaf",)), listed


def means(result: ReplayResult) -> list[float]:
    return [run.waits[0].mean_s for run in result.runs]


# -- right answers -------------------------------------------------------------------------------------


def test_fcfs_on_kth_as_another_simulator_has_it(shared: Path) -> None:
    """AccaSim's FIFO on this log waits 353,776.41 s in the mean; jobs beyond what they asked for are cut there too."""
    (run,) = replay(shared / "traces" / "pwa_swf" / "KTH-SP2-1996-2.swf.gz", policies=["fifo"]).runs
    assert run.waits[0].mean_s == pytest.approx(353_776.4091, abs=1e-4)
    assert run.makespan_s == 29_379_608
    assert run.shares.sor == pytest.approx(0.68524, abs=1e-5)


@pytest.mark.slow
def test_easy_on_kth_as_another_simulator_has_it(shared: Path) -> None:
    """Published flow time 15,696.80 s over asked times, 0.02 % off: there the queue is looked at after every event."""
    found = replay(shared / "traces" / "pwa_swf" / "KTH-SP2-1996-2.swf.gz", policies=["easy", "easy-sjbf"])
    assert means(found) == [pytest.approx(6_834.5873, abs=1e-4), pytest.approx(5_903.6864, abs=1e-4)]
    assert [run.bounded_slowdown for run in found.runs] == [
        pytest.approx(92.6877, abs=1e-4),
        pytest.approx(69.3936, abs=1e-4),
    ]


@pytest.fixture(scope="module")
def philly(shared: Path) -> Trace:
    return read_trace(shared / "traces" / "philly" / "philly_jobs.csv.gz")


CLUSTERS = [
    # virtual cluster of Philly, GPUs, mean waits under FCFS, EASY and conservative of an independent simulator
    ("103959", 24, 327_614.1748, 163_397.3351, 153_939.6484),
    ("2869ce", 48, 766_992.3081, 309_586.2749, 309_277.8483),
    ("ee9e8c", 144, 293_853.1661, 194_892.5142, 205_421.1932),
]


@pytest.mark.parametrize(("queue", "gpus", "fcfs", "easy", "conservative"), CLUSTERS, ids=lambda value: str(value))
def test_philly(philly: Trace, queue: str, gpus: int, fcfs: float, easy: float, conservative: float) -> None:
    """Real run times stand for those asked for; capacity is scaled down to a load of 0.8."""
    found = replay(philly.of_queue(queue), gpus, policies=["fifo", "easy", "conservative"], walltimes="exact")
    assert means(found) == [pytest.approx(wait, abs=1e-4) for wait in (fcfs, easy, conservative)]


def test_muri(shared: Path) -> None:
    found = replay(shared / "traces" / "muri_philly" / "trace3.csv", 64, policies=["fifo", "easy"], walltimes="exact")
    assert means(found) == [pytest.approx(944_302.1613, abs=1e-4), pytest.approx(374_339.2026, abs=1e-4)]


# -- laws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fifo", "best-effort"])
def test_nodes_of_one_gpu_are_numbers(policy: str) -> None:
    """Where every pod takes a node, any place is as good as any other: both spaces start everybody alike.

    Not under policies that promise: a promise on nodes is one on these very nodes.
    """
    trace = drawn(1, jobs=40)
    jobs = tuple(TraceJob(j.name, j.submit_s, j.run_s, j.gpus, j.asked_s, pods=j.gpus) for j in trace)
    trace = Trace("ones", "jsonl", jobs)
    by_number = replay(trace, 20, policies=[policy]).runs[0]
    by_node = replay(trace, small_fabric(20, 1), policies=[policy]).runs[0]
    assert [(j.job, j.start_s, j.backfilled) for j in by_node.jobs] == [
        (j.job, j.start_s, j.backfilled) for j in by_number.jobs
    ]
    assert by_node.shares.gfr_mean == 0  # a node of one GPU is never broken
    assert by_number.shares.gfr_mean is None


@pytest.mark.parametrize("backend", ["e-binpack", "binpack", "best-fit", "first-fit", "spread", "random"])
def test_no_gpu_is_held_twice_and_every_pod_has_one(backend: str) -> None:
    trace = drawn(2, share=0.5)
    found = replay(trace, small_fabric(6, 8), policies=[f"easy/{backend}", f"best-effort/{backend}"], seed=3)
    gpus = {job.name: job.gpu_milli or 1000 * job.gpus for job in trace}
    for run in found.runs:
        assert {job.fate for job in run.jobs} == {"ended"}
        for job in run.jobs:
            assert sum(milli for _, milli in job.where) == gpus[job.job]
            assert job.start_s is not None
            assert job.start_s >= job.submit_s
            assert job.end_s == job.start_s + job.run_s
            assert job.nodes == len(job.where)
            assert job.nodes >= (job.least_nodes or 0) >= 1
        for time in sorted({job.start_s or 0 for job in run.jobs}):
            assert max(run.used_at(time).values()) <= 8000


def test_nobody_overtakes_under_fifo_and_backfilling_helps_the_sum() -> None:
    found = replay(drawn(3), 24, policies=["fifo", "easy", "best-effort"])
    starts = [job.start_s or 0 for job in found.runs[0].jobs]
    assert starts == sorted(starts)
    assert found.runs[0].backfilled == 0
    assert found.runs[1].backfilled > 0
    assert found.runs[1].waits[0].mean_s < found.runs[0].waits[0].mean_s


def test_arrivals_twice_as_fast_are_half_the_time_apart_and_twice_the_load() -> None:
    trace = drawn(4)
    slow, fast = replay(trace, 24, policies=["fifo"]), replay(trace, 24, policies=["fifo"], arrivals=2)
    assert [j.submit_s for j in fast.runs[0].jobs] == [
        5 + round((j.submit_s - 5) / 2)
        for j in slow.runs[0].jobs  # the first comes when it came
    ]
    assert fast.scaling.load == pytest.approx(2 * slow.scaling.load, rel=0.01)
    assert (fast.scaling.arrivals, fast.scaling.gpus) == (2, 24)


def test_a_window_leaves_out_its_ends() -> None:
    trace = drawn(5)
    found = replay(trace, 24, policies=["easy"], warm_up=0.25, cool_down=0.25)
    first, last = trace.jobs[0].submit_s, trace.jobs[-1].submit_s
    start, end = found.window
    assert (start, end) == (first + round((last - first) / 4), last - round((last - first) / 4))
    counted = [job for job in found.runs[0].jobs if start <= job.submit_s < end]
    assert found.runs[0].waits[0].jobs == len(counted) < len(trace.jobs)
    assert found.runs[0].series.start_s[0] == start
    assert [job.counted for job in found.runs[0].jobs].count(True) == len(counted)


def test_what_is_not_replayed_is_counted() -> None:
    jobs = (
        TraceJob("ran", 0, 10, 2, asked_s=5),
        TraceJob("cancelled", 1, None, 2, state="cancelled"),
        TraceJob("waits", 1, None, 2, state="waiting"),
        TraceJob("cpu", 1, 10, 0),
        TraceJob("huge", 2, 10, 99),
        TraceJob("ran", 3, 10, 2),
    )
    found = replay(Trace("all sorts", "jsonl", jobs), 4, policies=["fifo"])
    assert found.counts == {"replayed": 3, "cancelled": 1, "no_time": 1, "no_gpus": 1, "too_large": 1}
    assert [(j.job, j.fate, j.end_s) for j in found.runs[0].jobs] == [
        ("ran", "ended", 5),  # cut to the 5 s that it asked for
        ("huge", "impossible", None),
        ("ran#2", "ended", 13),
    ]
    assert any("1 of 3 jobs ran longer than they asked for" in note for note in found.notes)
    assert any("1 jobs never fit on 4 GPUs" in note for note in found.notes)


def test_pods_that_the_trace_does_not_tell_and_gangs_that_no_node_holds() -> None:
    """12 GPUs on nodes of 8 are two pods of 6; a pod of 6 leaves 2 over: the node is broken."""
    found = replay(Trace("one", "jsonl", (TraceJob("a", 0, 10, 12),)), small_fabric(2, 8), policies=["fifo"])
    (job,) = found.runs[0].jobs
    assert job.where == ((0, 6000), (1, 6000))
    assert job.pods == 2
    assert found.runs[0].shares.gfr_mean == 1
    assert found.runs[0].stretch[0].nodes_ratio == 1


def test_predictions_lie_between_run_time_and_what_was_asked_for() -> None:
    found = replay(drawn(6), 24, policies=["easy"], walltimes="predicted").runs[0]
    asked = {job.name: job.asked_s or 0 for job in drawn(6)}
    assert all(job.run_s <= (job.walltime_s or 0) <= asked[job.job] for job in found.jobs)
    assert any(job.run_s < (job.walltime_s or 0) < asked[job.job] for job in found.jobs)


def test_equal_inputs_give_equal_results_and_tables_are_whole() -> None:
    fabric = load_topology("leaf-spine-small")
    one, two = (replay(drawn(7), fabric, policies=["easy", "easy/random"], seed=5) for _ in range(2))
    strip = [tuple(getattr(run, f) for f in ("shares", "series", "waits", "stretch", "jobs")) for run in one.runs]
    assert strip == [tuple(getattr(r, f) for f in ("shares", "series", "waits", "stretch", "jobs")) for r in two.runs]
    for table in one.tables().values():
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


# -- refusals ------------------------------------------------------------------------------------------


def test_what_cannot_be_meant() -> None:
    trace = drawn(8, jobs=3)
    with pytest.raises(InputError, match="does not say how large"):
        replay(trace)
    with pytest.raises(UnknownName, match="did you mean 'easy'"):
        replay(trace, 8, policies=["esy"])
    with pytest.raises(UnknownName, match="backend that places gang by gang 'cp-sat'"):
        replay(trace, 8, policies=["easy/cp-sat"])
    with pytest.raises(UnknownName, match="order"):
        replay(trace, 8, policies=["easy@longest"])
    wrong: list[dict[str, Any]] = [
        {"policies": []},
        {"policies": ["easy", "easy"]},
        {"policies": ["a/b/c"]},
        {"arrivals": 0},
        {"arrivals": float("nan")},
        {"warm_up": 0.6, "cool_down": 0.4},
        {"warm_up": -0.1},
        {"warm_up": float("nan")},
    ]
    for options in wrong:
        with pytest.raises(InputError):
            replay(trace, 8, **options)
    with pytest.raises(InputError, match="capacity of 0"):
        replay(trace, 0)
    with pytest.raises(InputError, match="no job of it can be replayed"):
        replay(Trace("none", "jsonl", ()), 8)
    with pytest.raises(UnknownName, match="topology"):
        replay(trace, "leaf-spine-smal")
