"""Studies: each run a row, whatever becomes of it; a kill loses nothing and a second call doubles nothing."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from kant_opt.backends import BACKENDS, Answer, Backend
from kant_opt.backends.outside import add_outside
from kant_opt.errors import InputError, UnknownName
from kant_opt.io import save
from kant_opt.schema import Limits, Request
from kant_opt.study import Row, read_rows, rows, run_study
from kant_opt.study.task import Task, measured, run_task
from kant_opt.testing.builders import gang, racks

SMALL = racks("8,8|8,8,8", jobs=[gang("small", 2, 8), gang("large", 3, 8)])
"""First-fit cuts the large gang; the rack that each gang fills makes traffic 0."""
TOYS = ("toy/fill-the-gap", "toy/greedy-trap")


def told(row: Row) -> dict[str, Any]:
    """Return all of a row that equal runs share."""
    return row.model_dump(exclude={"seconds", "cpu_seconds", "peak_mb", "date"})


def task(
    request: Request = SMALL, backend: str = "e-binpack", time_s: float = 60, memory_mb: int | None = None
) -> Task:
    return Task("small", "d", request.model_dump_json(by_alias=True), backend, Limits(), time_s, memory_mb)


def test_a_grid_has_a_row_of_each_combination_in_order(tmp_path: Path) -> None:
    found = run_study(
        TOYS, ("e-binpack", "random"), (Limits(), Limits(rounds=5)), (0, 7), out=tmp_path / "o.jsonl", apart=False
    )
    assert [row.key for row in found.rows] == [row.key for row in read_rows(tmp_path / "o.jsonl")]
    assert Counter(row.instance for row in found.rows) == dict.fromkeys(TOYS, 8)
    assert len({row.key for row in found.rows}) == 16
    assert found.kept == 0
    greedy = found.rows[8]
    assert (greedy.instance, greedy.backend) == ("toy/greedy-trap", "e-binpack")
    assert [(level.name, level.value, level.bound) for level in greedy.levels][:2] == [
        ("admitted[0]", 96_000, 96_000),
        ("traffic", 1, 0),  # the largest first goes to the tightest rack: see instances/toy/README.md
    ]


def test_serial_threads_and_processes_give_the_same_rows(tmp_path: Path) -> None:
    """Here one after another, in processes of their own that two threads start, and in a pool of processes."""
    grid: dict[str, Any] = {"instances": [("small", SMALL)], "backends": ("first-fit", "e-binpack")}
    serial = run_study(**grid, out=tmp_path / "serial.jsonl", apart=False)
    with ThreadPoolExecutor(2) as threads:
        by_threads = run_study(**grid, executor=threads, out=tmp_path / "threads.jsonl")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        by_processes = run_study(**grid, executor=processes, out=tmp_path / "processes.jsonl", apart=False)
    assert [row.levels[1].value for row in serial.rows] == [1, 0]
    expected = list(map(told, serial.rows))
    assert list(map(told, by_threads.rows)) == list(map(told, by_processes.rows)) == expected
    assert all(row.peak_mb > 10 and row.cpu_seconds > 0 for row in by_threads.rows)


# -- failures are rows -----------------------------------------------------------------------------


@pytest.mark.parametrize("time_s", [0.000_001, 0.01])  # before it is asked, and while it begins
def test_a_run_that_takes_too_long_is_ended_and_says_so(time_s: float) -> None:
    row = run_task(task(time_s=time_s))
    assert (row.status, row.reason, row.levels) == ("FAILED", f"time: ended after {time_s:g} s", ())


def test_a_run_that_needs_more_memory_says_so() -> None:
    row = run_task(task(memory_mb=1))
    assert row.status == "FAILED"
    assert row.reason.startswith("memory: needs more than 1 MiB")


def test_an_error_and_a_backend_that_is_unknown_there_are_rows() -> None:
    row = run_task(task(backend="no-such"))
    assert row.status == "FAILED"
    assert row.reason.startswith("error: UnknownName: unknown backend 'no-such'")


class Bomb(str):
    """A text that ends the process that it is sent to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,)


def test_a_crash_is_a_row() -> None:
    row = run_task(replace(task(), request=Bomb()))
    assert (row.status, row.reason) == ("FAILED", "crash: its process ended with code 3")


class Raises(Backend):
    """Fails at its first call, answers at the second."""

    name = "raises"
    calls = 0

    def solve(self, task: Any) -> Answer:
        self.calls += 1
        if self.calls == 1:
            raise ZeroDivisionError("first")
        return Answer(failed=[(gang, "limit") for gang in task.gangs])


def test_a_failed_run_is_tried_again_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BACKENDS, "_parts", dict(BACKENDS.items()))
    BACKENDS.add("raises", Raises())
    grid: dict[str, Any] = {
        "instances": [("small", SMALL)],
        "backends": ["raises"],
        "out": tmp_path / "o",
        "apart": False,
    }
    (row,) = run_study(**grid).rows
    assert (row.status, row.reason) == ("FAILED", "error: ZeroDivisionError: first")
    assert run_study(**grid) == ([row], 1)
    (row,) = run_study(**grid, again=True).rows
    assert row.status == "UNKNOWN"
    assert run_study(**grid, again=True).kept == 1


class Lossy(Executor):
    """An executor whose every other worker dies."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()
        if self.calls % 2:
            future.set_exception(ConnectionError("worker lost"))
        else:
            future.set_result(measured(args[0]))
        return future


def test_a_worker_that_dies_costs_its_run_alone_and_it_can_be_had_again(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"instances": TOYS, "backends": ("e-binpack", "binpack"), "out": tmp_path / "o"}
    first = run_study(**grid, executor=Lossy())
    assert [row.status == "FAILED" for row in first.rows] == [True, False, True, False]
    assert first.rows[0].reason == "worker: ConnectionError: worker lost"
    second = run_study(**grid, again=True, apart=False)
    assert second.kept == 2
    assert all(row.status != "FAILED" for row in second.rows)


# -- going on --------------------------------------------------------------------------------------


def test_what_is_there_is_not_run_again_and_a_line_cut_short_is(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"instances": TOYS, "backends": ["e-binpack"], "apart": False}
    whole = run_study(**grid, out=tmp_path / "whole")
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    for cut in (1, len(lines[1]) // 2, len(lines[1]) - 1):  # at most all but the line's end
        path = tmp_path / f"cut-{cut}"
        path.write_bytes(lines[0] + lines[1][:cut])
        assert len(read_rows(path)) == 1
        resumed = run_study(**grid, out=path)
        assert resumed.kept == 1
        assert list(map(told, resumed.rows)) == list(map(told, whole.rows))
        assert len(path.read_bytes().splitlines()) == 2
    before = (tmp_path / "whole").read_bytes()
    assert run_study(**grid, out=tmp_path / "whole") == (whole.rows, 2)
    assert (tmp_path / "whole").read_bytes() == before


def test_a_changed_instance_is_another_run(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    save(SMALL, path)
    grid: dict[str, Any] = {"instances": [path], "backends": ["e-binpack"], "out": tmp_path / "o", "apart": False}
    run_study(**grid)
    save(racks("8,8|8,8", jobs=SMALL.jobs), path)
    assert run_study(**grid).kept == 0
    assert len(read_rows(tmp_path / "o")) == 2


_STUDY = """
import sys
from kant_opt.study import run_study
instances, backends = ("toy/fill-the-gap", "toy/greedy-trap"), ("e-binpack", "first-fit", "random")
run_study(instances, backends, seeds=range(2), out=sys.argv[1], apart=sys.argv[2] == "apart")
"""


@pytest.mark.parametrize("how", ["together", pytest.param("apart", marks=pytest.mark.slow)])
def test_a_study_killed_in_the_middle_goes_on_without_loss_or_double_rows(tmp_path: Path, how: str) -> None:
    """SIGKILL as soon as two rows are there: no row is lost, each of the 12 is there once at the end."""
    path = tmp_path / "study.jsonl"
    command = [sys.executable, "-c", _STUDY, str(path), how]
    process = subprocess.Popen(command)
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < 2):
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = read_rows(path)
    assert len(before) >= 2
    subprocess.run(command, check=True, timeout=280)
    after = read_rows(path)
    assert after[: len(before)] == before
    assert len(after) == len({row.key for row in after}) == 12
    assert {row.status for row in after} <= {"OPTIMAL", "FEASIBLE"}


def test_a_caller_who_wants_no_more_does_not_wait_for_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while one thread's run sleeps for hours: its process is ended, so that the thread is."""
    (tmp_path / "sleeper.py").write_text("import time\ndef sleep(request):\n    time.sleep(10_000)\n")
    info = tmp_path / "sleeper-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sleeper\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[kant_opt.backends]\nsleeper = sleeper:sleep\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(BACKENDS, "_parts", dict(BACKENDS.items()))
    add_outside()

    def interrupt(row: Row, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as threads, pytest.raises(KeyboardInterrupt):
        run_study(["toy/cut-gang"], ["sleeper", "first-fit"], executor=threads, out=tmp_path / "o", on_row=interrupt)
    assert [row.backend for row in read_rows(tmp_path / "o")] == ["first-fit"]


def test_two_studies_do_not_write_one_file(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "o"
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another study is writing it"):
            run_study(TOYS, ["e-binpack"], out=path, apart=False)
    assert len(run_study(TOYS, ["e-binpack"], out=path, apart=False).rows) == 2


def test_mistakes_are_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown backend 'e-binpak': did you mean 'e-binpack'\?"):
        run_study(TOYS, ["e-binpak"], out=tmp_path / "o")
    with pytest.raises(UnknownName, match="unknown instance 'toy/none'"):
        run_study(["toy/none"], ["e-binpack"], out=tmp_path / "o")
    with pytest.raises(InputError, match="cannot be written"):
        run_study(TOYS, ["e-binpack"], out=tmp_path / "none" / "o")
    (tmp_path / "other").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match=r"other: line 1: .*'instance' is missing"):
        run_study(TOYS, ["e-binpack"], out=tmp_path / "other")
    (tmp_path / "other").write_text("text\n")
    with pytest.raises(InputError, match="other: line 1: is no JSON"):
        read_rows(tmp_path / "other")


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(rows)
    assert result.attempted > 0
    assert result.failed == 0
