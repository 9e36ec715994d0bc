"""Workloads drawn at random in the spirit of the Kant paper: training gangs of 1 to 2,048 GPUs, and services.

The paper (arXiv 2510.01256) names the kinds of cluster and the range of sizes; every number below is ours, and each is
an argument. Sizes are drawn with a weight per size: most jobs are small, most GPU-hours are in the large ones, as the
logs of Philly and Acme have it. Arrivals are a Poisson process, its rate set so that the offered load is met in the
mean, with a daily wave. Run times are log-normal, the same for all sizes; users ask for a multiple of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import cos, exp, log, pi
from random import Random

from kant_opt.errors import InputError
from kant_opt.io.traces import Trace, TraceJob

HOUR, DAY = 3600, 86_400

TRAINING_SIZES: Mapping[int, float] = {
    1: 30, 2: 12, 4: 12, 8: 18, 16: 9, 32: 7, 64: 5, 128: 3, 256: 2, 512: 1.2, 1024: 0.6, 2048: 0.2
}  # fmt: skip
"""GPUs -> weight of a training job of this size."""
INFERENCE_SIZES: Mapping[int, float] = {1: 50, 2: 25, 4: 15, 8: 10}
"""GPUs -> weight of a service of this size."""


@dataclass(frozen=True)
class Recipe:
    """What is drawn. Shares and weights need not add up to 1."""

    gpus: int
    """Of the cluster, for the load."""
    load: float = 0.9
    """GPU-seconds that arrive per GPU and second, in the mean."""
    days: float = 7.0
    """Span of submissions."""
    inference: float = 0.0
    """Share of the jobs that are services."""
    training_sizes: Mapping[int, float] = field(default_factory=lambda: dict(TRAINING_SIZES))
    inference_sizes: Mapping[int, float] = field(default_factory=lambda: dict(INFERENCE_SIZES))
    """Sizes above `gpus` are not drawn."""
    median_run_s: int = 2 * HOUR
    spread: float = 1.2
    """Standard deviation of the logarithm of run times; 0 makes all alike."""
    longest_s: int = 5 * DAY
    """Longer draws are cut to this."""
    asked: tuple[float, ...] = (1.1, 1.5, 2.0, 4.0)
    """Times asked for, as multiples of the run time, drawn evenly."""
    wave: float = 0.4
    """Arrivals at noon and at midnight differ by this share of their mean, up and down."""
    users: int = 20
    node_gpus: int = 8


def generated(recipe: Recipe, seed: int = 0) -> Trace:
    """Return a workload; equal recipes and seeds give equal jobs. Raises InputError for a recipe that cannot be meant.

    >>> trace = generated(Recipe(gpus=64, days=1), seed=1)
    >>> max(job.gpus for job in trace) <= 64, trace.capacity
    (True, 64)
    """
    training, inference = _sizes(recipe.training_sizes, recipe), _sizes(recipe.inference_sizes, recipe)
    _check(recipe, training)
    draw = Random(seed)  # noqa: S311 - an experiment, not a secret
    work = _mean_work(recipe, training, inference)
    mean_gap = work / (recipe.load * recipe.gpus)
    end = recipe.days * DAY
    time = 0.0
    jobs: list[TraceJob] = []
    while True:
        time += draw.expovariate(1 / mean_gap) / (1 + recipe.wave)  # the fastest pace, thinned to the pace of the hour
        if time >= end:
            break
        pace = (1 - recipe.wave * cos(2 * pi * time / DAY)) / (1 + recipe.wave)
        if draw.random() < pace:
            jobs.append(_job(recipe, draw, len(jobs), int(time), training, inference))
    return Trace(f"drawn with seed {seed}", "generated", tuple(jobs), capacity=recipe.gpus)


def _job(
    recipe: Recipe,
    draw: Random,
    number: int,
    submit: int,
    training: Mapping[int, float],
    inference: Mapping[int, float],
) -> TraceJob:
    service = draw.random() < recipe.inference
    sizes = inference if service else training
    (gpus,) = draw.choices(list(sizes), list(sizes.values()))
    run = min(recipe.longest_s, max(60, round(draw.lognormvariate(log(recipe.median_run_s), recipe.spread))))
    user = draw.randrange(recipe.users)
    return TraceJob(
        name=f"{'s' if service else 't'}{number:05}",
        submit_s=submit,
        run_s=run,
        gpus=gpus,
        asked_s=-(-run * round(100 * draw.choice(recipe.asked)) // 100),
        pods=-(-gpus // recipe.node_gpus) if gpus % recipe.node_gpus == 0 or gpus < recipe.node_gpus else None,
        user=f"u{user:02}",
        queue="inference" if service else "training",
        inference=service,
    )


def _mean_work(recipe: Recipe, training: Mapping[int, float], inference: Mapping[int, float]) -> float:
    """Return the GPU-seconds of a job in the mean; sizes and run times are drawn apart."""
    gpus = (1 - recipe.inference) * _mean(training) + recipe.inference * _mean(inference)
    return gpus * recipe.median_run_s * exp(recipe.spread**2 / 2)


def _mean(sizes: Mapping[int, float]) -> float:
    return sum(gpus * weight for gpus, weight in sizes.items()) / sum(sizes.values()) if sizes else 0.0


def _sizes(sizes: Mapping[int, float], recipe: Recipe) -> dict[int, float]:
    return {gpus: weight for gpus, weight in sizes.items() if gpus <= recipe.gpus and weight > 0}


def _check(recipe: Recipe, training: Mapping[int, float]) -> None:
    for name in ("gpus", "load", "days", "median_run_s", "longest_s", "users", "node_gpus"):
        if not 0 < getattr(recipe, name) < float("inf"):
            raise InputError(f"{name} is {getattr(recipe, name)}", place="recipe", way_out="give a positive number")
    if not (0 <= recipe.inference <= 1 and 0 <= recipe.wave <= 1 and recipe.spread >= 0):
        raise InputError(
            f"inference {recipe.inference}, wave {recipe.wave}, spread {recipe.spread}",
            place="recipe",
            way_out="inference and wave are shares, spread is 0 or more",
        )
    if not recipe.asked or min(recipe.asked) < 1:
        raise InputError(f"asked {recipe.asked}", place="recipe", way_out="multiples of the run time, 1 or more")
    if not training and recipe.inference < 1:
        raise InputError(f"no training size fits on {recipe.gpus} GPUs", place="recipe", way_out="add smaller sizes")
