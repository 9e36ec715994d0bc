"""Measures over time against the same, second by second."""

from __future__ import annotations

from random import Random

import pytest

from kant_opt.metrics.over_time import Held, OverTime, Queued
from kant_opt.metrics.steps import Steps
from kant_opt.metrics.waits import Waited, bounded_slowdown, wait_classes


@pytest.mark.parametrize("seed", range(20))
def test_steps_are_sums_of_seconds(seed: int) -> None:
    draw = Random(seed)
    changes = [(draw.randint(0, 30), draw.randint(-3, 5)) for _ in range(draw.randint(0, 12))]
    value = [sum(by for time, by in changes if time <= second) for second in range(60)]
    steps = Steps(changes)
    start = draw.randint(-5, 40)
    end = start + draw.randint(1, 19)
    inside = [value[s] if s >= 0 else 0 for s in range(start, end)]
    assert steps.total(start, end) == sum(inside)
    assert steps.at(start) == inside[0]
    assert steps.median(start, end) == sorted(inside)[(len(inside) - 1) // 2]
    assert steps.largest(start, end) == max(0, *inside)


@pytest.mark.parametrize("seed", range(10))
def test_shares_and_series_against_every_second(seed: int) -> None:
    """Four nodes of 1, 2, 4 and 8 GPUs; runs take what is free, so that nothing is over-committed."""
    draw = Random(seed)
    node_gpus = [8, 4, 2, 1]
    held: list[Held] = []
    free = [[g] * 100 for g in node_gpus]
    for _ in range(30):
        start, node = draw.randint(0, 80), draw.randrange(4)
        end = start + draw.randint(1, 19)
        most = min(free[node][start:end])
        if most:
            gpus = draw.randint(1, most)
            for second in range(start, end):
                free[node][second] -= gpus
            held.append(Held(start, end, gpus, ((node, 1000 * gpus),)))
    queued = [Queued(s := draw.randint(0, 50), s + draw.randint(0, 40), draw.randint(1, 9)) for _ in range(10)]
    used = [sum(h.gpus for h in held if h.start_s <= s < h.end_s) for s in range(100)]
    broken = [sum(0 < free[n][s] < g for n, g in enumerate(node_gpus)) for s in range(100)]
    waiting = [sum(q.gpus for q in queued if q.start_s <= s < q.end_s) for s in range(100)]
    over_time = OverTime(held, queued, 15, node_gpus)
    shares = over_time.shares(10, 90)
    assert shares.gar_mean == pytest.approx(sum(used[10:90]) / 80 / 15)
    assert shares.sor == pytest.approx(shares.gar_mean)
    assert shares.gfr_mean == pytest.approx(sum(broken[10:90]) / 80 / 4)
    assert shares.gfr_median == sorted(broken[10:90])[39] / 4
    assert shares.peak_gpus == max(used[10:90])
    series = over_time.series(10, 90, num_bins=8)
    assert series.gfr is not None
    for i, start in enumerate(series.start_s):
        assert start == 10 + 10 * i
        assert series.gar[i] == pytest.approx(sum(used[start : start + 10]) / 150)
        assert series.gfr[i] == pytest.approx(sum(broken[start : start + 10]) / 40)
        assert series.waiting_gpus[i] == pytest.approx(sum(waiting[start : start + 10]) / 10)
        assert series.sor[i] == pytest.approx(sum(used[10 : start + 10]) / 15 / (start + 10 - 10))


def test_a_share_of_a_gpu_breaks_its_node() -> None:
    over_time = OverTime([Held(0, 10, 1, ((0, 250),))], [], 8, [8])
    assert over_time.shares(0, 20).gfr_mean == 0.5


def test_waits_by_size_class_count_those_still_waiting() -> None:
    jobs = [Waited(1, wait, 100) for wait in range(100)] + [Waited(9, 50, 5), Waited(64, 70, 10, started=False)]
    everyone, ones, middle = wait_classes(jobs)
    assert (everyone.sizes, everyone.jobs, everyone.waiting) == ("all", 102, 1)
    assert (ones.p50_s, ones.p90_s, ones.p99_s, ones.max_s) == (49, 89, 98, 99)
    assert (middle.sizes, middle.jobs, middle.waiting, middle.mean_s) == ("9-64", 2, 1, 60.0)
    assert bounded_slowdown([Waited(1, 50, 5)]) == 5.5  # 5 s count as 10
    assert bounded_slowdown([Waited(1, 0, 5)]) == 1.0
    assert bounded_slowdown([Waited(1, 5, 5, started=False)]) is None


def test_gpus_that_are_out_count_as_not_there() -> None:
    """8 GPUs, 4 of them out in [10, 30): 4 used of 8, then of 4, then of 8. GAR 1/2, 1, 1/2; SOR 160 / 240."""
    over_time = OverTime([Held(0, 40, 4)], [], 8, out=[(10, 30, 4)])
    shares = over_time.shares(0, 40)
    assert (shares.gar_mean, shares.gar_median) == (0.75, 0.5)
    assert shares.sor == pytest.approx(160 / 240)
    series = over_time.series(0, 40, num_bins=4)
    assert series.gar == (0.5, 1.0, 1.0, 0.5)
    assert series.sor == pytest.approx((0.5, 80 / 120, 120 / 160, 160 / 240))
