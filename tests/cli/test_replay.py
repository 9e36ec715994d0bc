"""`kant-opt replay`: what it shows and writes, its exit codes, its refusals."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from kant_opt.io import save
from kant_opt.io.traces import Trace, TraceJob, write_trace
from kant_opt.schema import Request

Run = Callable[..., Result]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two GPUs wait for the first of three jobs on eight: 4, then 8, then 4 GPUs."""
    jobs = (
        TraceJob("a", 0, 60, 4, queue="q"),
        TraceJob("b", 1, 60, 8, queue="q"),
        TraceJob("c", 2, 30, 4, queue="other"),
        TraceJob("gone", 3, None, 1, state="cancelled"),
    )
    path = tmp_path / "log.jsonl"
    write_trace(Trace("log", "jsonl", jobs), path)
    return path


def test_policies_side_by_side(run: Run, log: Path) -> None:
    """b waits 59 s for a; c waits for b under FIFO (118 s) and fills up beside a under EASY."""
    result = run("replay", log, "--gpus", 8)
    assert result.exit_code == 0
    assert "3 jobs on 8 GPUs, all alike" in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["fifo", "59", "s"] in [row[:3] for row in rows]
    assert ["easy", "20", "s"] in [row[:3] for row in rows]
    assert "1 jobs cancelled before they ran: left out" in result.stdout
    assert "JTTED" not in result.stdout


def test_nodes_and_files(run: Run, log: Path, tmp_path: Path, two_by_two: Request) -> None:
    save(two_by_two, tmp_path / "cluster.json")
    out, folder = tmp_path / "out.json", tmp_path / "made" / "tables"
    result = run(
        "replay", log, "--fabric", tmp_path / "cluster.json", "-p", "easy,easy/binpack", "--json", out, "--csv", folder
    )
    assert result.exit_code == 0
    assert "64 GPUs on 8 nodes" in result.stdout
    assert "JTTED" in result.stdout
    data = json.loads(out.read_text())
    assert [row["policy"] for row in data["policies"]] == ["easy", "easy/binpack"]
    assert data["counts"]["cancelled"] == 1
    assert data["scaling"]["gpus"] == 64
    assert {path.stem for path in folder.glob("*.csv")} == {"policies", "waits", "stretch", "series", "jobs"}
    with (folder / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["policy"], row["job"], row["start_s"]) for row in rows[:3]] == [
        ("easy", "a", "0"),
        ("easy", "b", "1"),
        ("easy", "c", "2"),
    ]


def test_json_on_stdout_and_quiet(run: Run, log: Path) -> None:
    result = run("replay", log, "--gpus", 8, "--json", "-", "-q")
    assert json.loads(result.stdout)["trace"] == "log.jsonl"
    assert run("replay", log, "--gpus", 8, "-q").stdout == ""


def test_a_job_that_never_fits_is_exit_code_1(run: Run, log: Path) -> None:
    result = run("replay", log, "--gpus", 4)
    assert result.exit_code == 1
    assert "1 jobs never fit on 4 GPUs" in result.stdout
    assert run("replay", log, "--gpus", 4, "--queue", "other").exit_code == 0
    assert run("replay", log, "--gpus", 4, "--first", 1).exit_code == 0


def test_a_checkpoint_is_gone_on_with(run: Run, log: Path, tmp_path: Path) -> None:
    call = ("replay", log, "--gpus", 8, "--checkpoint", tmp_path / "kept.json", "--json", "-", "-q")
    assert run(*call).stdout == run(*call).stdout
    other = run("replay", log, "--gpus", 9, "--checkpoint", tmp_path / "kept.json")
    assert other.exit_code == 2
    assert "checkpoint of another replay" in other.stderr


def test_nodes_that_fail(run: Run, log: Path) -> None:
    """64 nodes that each fail every 36 s in the mean do so within the 2 s of submissions."""
    result = run("replay", log, "--fabric", "uneven-64", "--mtbf-h", 0.01, "--repair-h", 0.01, "--seed", 1)
    assert result.exit_code == 0
    assert "failures of" in result.stdout


def test_mistakes_are_one_sentence(run: Run, log: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(log.read_text() + "{\n")
    calls: list[tuple[tuple[object, ...], str]] = [
        ((log,), "does not say how large its cluster was"),
        ((log, "--gpus", 8, "--fabric", "uneven-64"), "two clusters"),
        ((log, "--fabric", "uneven-63"), "did you mean 'uneven-64'"),
        ((log, "--gpus", 8, "-p", "esy"), "did you mean 'easy'"),
        ((log, "--gpus", 8, "--queue", "p"), "unknown queue 'p'"),
        ((log, "--gpus", 8, "--json", log), "would overwrite"),
        ((log, "--gpus", 8, "--csv", log), "no folder can be made"),
        ((log, "--gpus", 8, "--arrivals", -1), "give a positive number"),
        ((log, "--gpus", 8, "--mtbf-h", 5), "lets nodes fail, and there are none"),
        ((log, "--fabric", "uneven-64", "--mtbf-h", 0), "give positive times"),
        ((bad, "--gpus", 8), "bad.jsonl: line 5: not JSON"),
        ((tmp_path / "nowhere", "--gpus", 8), "cannot be read"),
    ]
    for call, told in calls:
        result = run("replay", *call)
        assert result.exit_code == 2, call
        assert told in result.stderr
        assert result.stderr.count("\n") == 1
    assert run("replay", bad, "--gpus", 8, "--skip-bad-lines").exit_code == 0
