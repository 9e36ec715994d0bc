"""The environment passes gymnasium's own checks, and is the loop of replays: equal decisions give equal starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="the extra gym is not installed")

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric.generators import leaf_spine
from kant_opt.io.traces import Trace, TraceJob
from kant_opt.replay import replay
from kant_opt.replay.gym_env import QueueEnv

CLUSTER = leaf_spine(leaves=2, nodes_per_leaf=2)  # 32 GPUs

Choose = Callable[[dict[str, Any], dict[str, Any]], int]


def drawn(seed: int, num_jobs: int = 40) -> Trace:
    """More work than 32 GPUs can do as it comes, in jobs of 1 to 32 GPUs."""
    rng = np.random.default_rng(seed)
    jobs, now = [], 0
    for i in range(num_jobs):
        now += int(rng.integers(0, 120))
        gpus, run = int(rng.choice([1, 2, 4, 8, 16, 32])), int(rng.integers(1, 600))
        jobs.append(TraceJob(f"j{i}", now, run, gpus, asked_s=run + int(rng.integers(0, 300))))
    return Trace("drawn", "native", tuple(jobs))


def first_that_fits(seen: dict[str, Any], info: dict[str, Any]) -> int:
    return int(np.argmax(info["action_mask"]))


def head_or_none(seen: dict[str, Any], info: dict[str, Any]) -> int:
    return 0 if info["action_mask"][0] else len(info["action_mask"]) - 1


def never(seen: dict[str, Any], info: dict[str, Any]) -> int:
    return len(info["action_mask"]) - 1


def played(env: QueueEnv, choose: Choose, seed: int = 0) -> float:
    """Play an episode and return the sum of its rewards."""
    seen, info = env.reset(seed=seed)
    over, total = False, 0.0
    while not over:
        assert env.observation_space.contains(seen)
        seen, reward, over, _, info = env.step(choose(seen, info))
        total += reward
    return total


@pytest.mark.parametrize("backend", ["e-binpack", "random"])
def test_gymnasium_has_nothing_to_say(backend: str) -> None:
    check_env(QueueEnv(drawn(1), CLUSTER, window=5, num_jobs=20, backend=backend), skip_render_check=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("choose", "policy", "order"),
    [
        (first_that_fits, "best-effort", "fifo"),
        (first_that_fits, "best-effort", "shortest-first"),
        (head_or_none, "fifo", "fifo"),
    ],
)
def test_decisions_of_a_policy_give_the_starts_of_its_replay(
    choose: Choose, policy: str, order: str, seed: int
) -> None:
    env = QueueEnv(drawn(seed), CLUSTER, window=40, order=order)
    played(env, choose)
    (run,) = replay(drawn(seed), CLUSTER, policies=[policy], order=order).runs
    assert env.starts == {job.job: job.start_s for job in run.jobs}


@pytest.mark.parametrize("choose", [first_that_fits, head_or_none, never])
@pytest.mark.parametrize("window", [1, 4])
def test_an_episode_is_worth_what_its_jobs_waited(choose: Choose, window: int) -> None:
    """Also for who never starts anybody: all jobs start in the end, one after another once none comes any more."""
    trace = drawn(3)
    env = QueueEnv(trace, CLUSTER, window=window)
    total = played(env, choose)
    assert set(env.starts) == {job.name for job in trace}
    assert total == -sum(job.gpus * (env.starts[job.name] - job.submit_s) for job in trace)


def test_a_job_that_does_not_fit_or_is_not_there_is_none() -> None:
    """`full` takes all; `next` does not fit until 100, when time went on by an action that names nobody."""
    jobs = (TraceJob("full", 0, 100, 32), TraceJob("small", 0, 50, 1), TraceJob("large", 0, 50, 32))
    env = QueueEnv(Trace("t", "native", jobs), CLUSTER, window=5)
    _, info = env.reset()
    assert info["jobs"] == ("full", "small", "large")
    assert info["action_mask"].tolist() == [1, 1, 1, 0, 0, 1]
    seen, reward, _, _, info = env.step(0)
    assert (info["time_s"], reward) == (100, -100 * 33), "nothing fits before: both waited 100 s"
    seen, reward, _, _, info = env.step(0)
    assert (info["time_s"], info["jobs"], reward) == (150, ("large",), -50 * 32)
    assert seen["queue"][0, 5] == 1
    assert seen["queue"][1].tolist() == [0] * 6
    seen, reward, over, _, info = env.step(3)
    assert (over, reward) == (True, 0), "nobody at 3, and nothing else would happen: `large` starts by itself"
    assert env.starts["large"] == 150
    with pytest.raises(ResetNeeded):
        env.step(0)


def test_free_gpus_are_those_of_each_leaf() -> None:
    jobs = (TraceJob("half", 0, 100, 12, pods=3), TraceJob("next", 1, 10, 32), TraceJob("one", 2, 10, 1))
    env = QueueEnv(Trace("t", "native", jobs), CLUSTER, window=2)
    env.reset()
    seen, _, _, _, info = env.step(0)
    assert info["time_s"] == 2, "`next` does not fit at 1, `one` does at 2"
    assert sorted(seen["free"].tolist()) == [0.25, 1.0], "3 pods of 4 GPUs lie on one leaf of 16"


def test_episodes_are_drawn_by_the_seed() -> None:
    env = QueueEnv(drawn(1), CLUSTER, num_jobs=10)
    found = []
    for seed in (1, 1, 2, 3, 4):
        played(env, first_that_fits, seed)
        assert len(env.starts) == 10
        found.append(env.starts)
    assert found[0] == found[1]
    assert len({tuple(starts) for starts in found}) > 1


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(InputError, match="window"):
        QueueEnv(drawn(1), CLUSTER, window=0)
    with pytest.raises(InputError, match="episodes"):
        QueueEnv(drawn(1), CLUSTER, num_jobs=0)
    with pytest.raises(UnknownName):
        QueueEnv(drawn(1), CLUSTER, order="no")
    with pytest.raises(UnknownName):
        QueueEnv(drawn(1), CLUSTER, backend="no")
    with pytest.raises(InputError, match="no job"):
        QueueEnv(Trace("t", "native", (TraceJob("j", 0, 1, 999),)), CLUSTER)
    with pytest.raises(ResetNeeded):
        QueueEnv(drawn(1), CLUSTER).step(0)
