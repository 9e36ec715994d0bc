"""Drawn workloads: the load they are drawn for, their sizes, and the same jobs for the same seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from kant_opt.errors import InputError
from kant_opt.io.traces import TraceJob
from kant_opt.replay.generator import DAY, INFERENCE_SIZES, TRAINING_SIZES, Recipe, generated

SMALL = Recipe(gpus=256, days=20, spread=0.5, training_sizes={1: 1, 8: 1, 64: 0.2})


def test_the_load_is_met_in_the_mean() -> None:
    """20 days at 0.9 are some thousand jobs of moderate spread: a mean over 8 seeds lies within a few per cent."""
    loads = []
    for seed in range(8):
        jobs = generated(SMALL, seed).jobs
        loads.append(sum((job.run_s or 0) * job.gpus for job in jobs) / (SMALL.gpus * SMALL.days * DAY))
    assert fmean(loads) == pytest.approx(0.9, rel=0.05)


def test_sizes_come_by_their_weights_and_larger_than_the_cluster_not_at_all() -> None:
    counts = Counter(job.gpus for job in generated(SMALL, 1))
    assert counts[1] / counts[8] == pytest.approx(1, rel=0.15)
    assert counts[64] / counts[8] == pytest.approx(0.2, rel=0.3)
    trace = generated(Recipe(gpus=100, days=3, inference=0.5), 1)
    assert max(job.gpus for job in trace) <= 100
    assert {job.gpus for job in trace if job.inference} <= set(INFERENCE_SIZES)
    assert sum(job.inference for job in trace) / len(trace.jobs) == pytest.approx(0.5, abs=0.05)
    assert max(TRAINING_SIZES) == 2048


def test_users_ask_for_more_than_they_run_and_days_have_waves() -> None:
    jobs = generated(replace(SMALL, wave=0.8), 2).jobs
    assert all((job.asked_s or 0) >= (job.run_s or 0) >= 60 for job in jobs)
    assert [job.submit_s for job in jobs] == sorted(job.submit_s for job in jobs)

    def hours_from_noon(job: TraceJob) -> float:
        return abs(job.submit_s % DAY - DAY / 2) / 3600

    noon, night = (sum(low <= hours_from_noon(job) < low + 4 for job in jobs) for low in (0, 8))
    assert noon > 2 * night


def test_a_seed_is_a_workload() -> None:
    assert generated(SMALL, 3).jobs == generated(SMALL, 3).jobs != generated(SMALL, 4).jobs


def test_recipes_that_cannot_be_meant() -> None:
    for wrong in ({"gpus": 0}, {"load": -1.0}, {"load": float("nan")}, {"inference": 2.0}, {"asked": (0.5,)}):
        with pytest.raises(InputError, match="recipe"):
            generated(replace(SMALL, **wrong))
    with pytest.raises(InputError, match="no training size"):
        generated(replace(SMALL, training_sizes={512: 1.0}))
