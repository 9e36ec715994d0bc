"""A replay that is killed goes on from its checkpoint, and comes to the same end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kant_opt.errors import InputError
from kant_opt.io.traces import Trace, write_trace
from kant_opt.planning import POLICIES, make_policy
from kant_opt.replay import replay
from kant_opt.replay.checkpoint import Kept
from kant_opt.replay.course import run_course
from kant_opt.replay.keeper import Keeper, digest
from kant_opt.replay.stage import counting_stage, fabric_stage
from kant_opt.replay.workload import workload
from tests.replay.test_replay import drawn, small_fabric


@pytest.mark.parametrize("looks_at", ["numbers", "nodes"])
@pytest.mark.parametrize(
    "policy", [p for p in POLICIES if "optimal" not in p and p not in ("depth-k", "slack-k", "delay-k")]
)
def test_going_on_from_any_state_comes_to_the_same_end(
    policy: str, looks_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every state that could have been saved is read back from JSON and gone on with."""
    monkeypatch.setattr("kant_opt.replay.course._LOOK_EVERY", 11)
    work = workload(drawn(1, jobs=50))
    stage = counting_stage(work, 20) if looks_at == "numbers" else fabric_stage(work, *small_fabric(4, 8))
    how: dict[str, Any] = {"order": "fair-share", "backend": "random", "seed": 1}
    saved: list[str] = []
    whole = run_course(
        stage,
        make_policy(policy),
        due=lambda: True,
        save=lambda kept: saved.append(json.dumps(kept.as_json())),
        **how,
    )
    assert len(saved) > 4
    assert len(whole.spans) == 50
    for state in saved:
        course = run_course(stage, make_policy(policy), kept=Kept(**json.loads(state)), **how)
        assert course.spans == whole.spans


KILLED = """
import sys
from kant_opt.replay import replay
replay(sys.argv[1], 64, policies=["easy", "easy-sjbf"], checkpoint=sys.argv[2], checkpoint_every_s=0.0)
"""


def test_killed_and_gone_on_with(tmp_path: Path) -> None:
    trace = drawn(2, jobs=3000)
    write_trace(trace, tmp_path / "trace.jsonl")
    file = tmp_path / "checkpoint.json"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "trace.jsonl"), str(file)])
    while not file.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if os.name == "posix":
        assert process.returncode == -signal.SIGKILL, "it was done before it could be killed"
    kept = json.loads(file.read_text())
    assert "under_way" in kept
    assert len(kept["done"]) < 2
    how: dict[str, Any] = {"policies": ["easy", "easy-sjbf"]}
    gone_on = replay(tmp_path / "trace.jsonl", 64, checkpoint=file, **how)
    whole = replay(tmp_path / "trace.jsonl", 64, **how)
    assert [replace(run, seconds=0.0) for run in gone_on.runs] == [replace(run, seconds=0.0) for run in whole.runs]
    again = replay(tmp_path / "trace.jsonl", 64, checkpoint=file, **how)
    assert [run.jobs for run in again.runs] == [run.jobs for run in whole.runs]  # all of it was in the file


def test_a_file_that_is_not_this_replays_checkpoint(tmp_path: Path) -> None:
    trace, file = drawn(3, jobs=10), tmp_path / "checkpoint.json"
    replay(trace, 24, policies=["easy"], checkpoint=file)
    with pytest.raises(InputError, match="checkpoint of another replay"):
        replay(trace, 25, policies=["easy"], checkpoint=file)
    with pytest.raises(InputError, match="checkpoint of another replay"):
        replay(Trace("other", "jsonl", trace.jobs[:-1]), 24, policies=["easy"], checkpoint=file)
    for text in ("", "[]", "{}", '{"kant_opt_checkpoint": 2}', "[" * 10_000):
        file.write_text(text)
        with pytest.raises(InputError, match="not a checkpoint"):
            replay(trace, 24, policies=["easy"], checkpoint=file)
    file.write_text(json.dumps({"kant_opt_checkpoint": 1, "of": digest(1), "done": {"easy": {"spans": [[1]]}}}))
    with pytest.raises(InputError, match="damaged"):
        Keeper(file, digest(1))
