"""Solvers that hang, crash or lie: the greedy answer stands, in time, with a note of what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

import pytest

from kant_opt.backends import BACKENDS, Answer, Deadline, Task
from kant_opt.backends import worker as worker_module
from kant_opt.backends.exact import Exact
from kant_opt.backends.solver import Effort, Fixed, OnEvent, RawAnswer, Solver, Stop, settle, within
from kant_opt.backends.worker import Worker, WorkerDied, hire, limit_memory
from kant_opt.engine.place import to_placement
from kant_opt.fabric import build_fabric
from kant_opt.formulation.program import Level, Program
from kant_opt.metrics import measure
from kant_opt.schema import Limits, Request
from kant_opt.testing.builders import gang, racks
from kant_opt.verify import verify
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

# Racks of 2, 3 and 1 free nodes, gangs of 3, 2 and 1: a perfect fit, in the order that the greedy takes. With
# `counting` off a solver is asked all the same.
REQUEST = racks("1,1|1,1,1|1", jobs=[gang("a", 3), gang("b", 2), gang("c", 1)])
GREEDY = {"admitted[0]": 6000, "traffic": 0, "broken_nodes": 0, "broken_leaves": 0}

Behave = Callable[[Program, Level, Sequence[int] | None], RawAnswer]


@dataclass
class Fake(Solver):
    """Does what it is told to."""

    behave: Behave
    name = "fake"

    def solve(
        self,
        program: Program,
        level: Level,
        fixed: Fixed,
        effort: Effort,
        hint: Sequence[int] | None,
        on_event: OnEvent,
        stop: Stop,
    ) -> RawAnswer:
        return self.behave(program, level, hint)


def solve(
    behave: Behave,
    limits: Limits | None = None,
    *,
    request: Request = REQUEST,
    apart: bool = False,
    stop: Stop | None = None,
) -> tuple[Answer, dict[str, int]]:
    limits = limits or request.limits
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    free, quotas = Free(cluster), Quotas(cluster)
    deadline = Deadline(limits.deadline_ms, stop)
    task = Task(cluster, free, quotas, compile_gangs(cluster), "batch", limits, deadline)
    answer = Exact("fake", lambda: Fake(behave), apart=apart, counting=False).solve(task)
    placement = to_placement(cluster, answer)
    assert verify(request, placement) == ()
    return answer, measure(request, placement)


def crash(*_: object) -> RawAnswer:
    raise MemoryError("no more")


def lie_infeasible(*_: object) -> RawAnswer:
    return RawAnswer("INFEASIBLE")


def wrong_point(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
    return RawAnswer("OPTIMAL", [1] * len(program.names), value=10**9, bound=10**9)


def too_short(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
    return RawAnswer("OPTIMAL", [], value=10**9, bound=10**9)


def crossed_bound(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
    return RawAnswer("OPTIMAL", list(hint or ()), bound=-1 if level.sense == "max" else 1)


@pytest.mark.parametrize(
    ("behave", "told"),
    [
        (crash, "ran out of memory: no more"),
        (lie_infeasible, "nothing is possible"),
        (wrong_point, "breaks row"),
        (too_short, "off in length"),
        (crossed_bound, "beaten by its own point"),
    ],
)
def test_the_greedy_answer_stands_and_a_note_says_why(behave: Behave, told: str) -> None:
    answer, values = solve(behave)
    assert values == GREEDY
    assert any(told in note for note in answer.notes), answer.notes
    assert all(bound.source != "fake" for bound in answer.bounds.values()), "nothing that it said counts"


def test_a_claimed_value_is_not_read_but_computed() -> None:
    def boast(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
        return RawAnswer("OPTIMAL", list(hint or ()), value=10**9, bound=None)

    answer, values = solve(boast)
    assert values == GREEDY
    assert not answer.bounds


def test_what_an_honest_solver_proves_is_kept() -> None:
    def honest(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
        return RawAnswer("OPTIMAL", list(hint or ()), bound=GREEDY[level.name])

    answer, _ = solve(honest)
    assert {name: bound.value for name, bound in answer.bounds.items()} == GREEDY
    assert answer.notes == []


def test_a_level_that_is_not_proven_does_not_end_the_later_ones() -> None:
    # Every bound is one given the values before it: 6000 GPU thousandths are placed, and with them traffic 0 is best.
    def unsure(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
        bound = 7000 if level.name == "admitted[0]" else GREEDY[level.name]
        return RawAnswer("FEASIBLE", list(hint or ()), bound=bound)

    answer, _ = solve(unsure)
    assert {name: bound.value for name, bound in answer.bounds.items()} == GREEDY | {"admitted[0]": 7000}
    assert answer.limit_hit == "work"


def test_a_work_limit_on_one_level_leaves_the_later_ones_solved() -> None:
    asked = []

    def tired(program: Program, level: Level, hint: Sequence[int] | None) -> RawAnswer:
        asked.append(level.name)
        return RawAnswer("UNKNOWN")

    answer, values = solve(tired)
    assert asked == list(GREEDY)
    assert values == GREEDY
    assert (answer.bounds, answer.notes, answer.limit_hit) == ({}, [], "work")


def test_a_solver_that_hangs_is_left_behind() -> None:
    def hang(*_: object) -> RawAnswer:
        time.sleep(5)
        return RawAnswer("UNKNOWN")

    started = time.monotonic()
    answer, values = solve(hang, Limits(deadline_ms=600))
    assert time.monotonic() - started < 3, "it slept for five seconds"
    assert values == GREEDY
    assert any("left behind" in note for note in answer.notes), answer.notes


def test_words_count_for_nothing_where_numbers_do_not_bear_them_out() -> None:
    assert settle("OPTIMAL", 5, 6) == "FEASIBLE"
    assert settle("FEASIBLE", 5, 5) == "OPTIMAL"
    assert settle("kObjectiveTarget", None, 5) == "UNKNOWN"
    assert settle("OPTIMAL", None, None) == "UNKNOWN"
    assert settle("INFEASIBLE", None, None) == "INFEASIBLE"


# -- what only a process of its own survives -------------------------------------------------------
# Behaviours run in the worker: they are found there by their name in this module.


def be_killed(*_: object) -> RawAnswer:
    os.kill(os.getpid(), signal.SIGKILL)
    return RawAnswer("UNKNOWN")


def abort(*_: object) -> RawAnswer:
    os.abort()


def take_all_memory(*_: object) -> RawAnswer:
    return RawAnswer("UNKNOWN", note=str(len(bytearray(1 << 33))))


def sleep(*_: object) -> RawAnswer:
    time.sleep(60)
    return RawAnswer("UNKNOWN")


def start_a_child_and_sleep(*_: object) -> RawAnswer:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "kant_opt-child-of-a-solver"])
    return sleep()


@pytest.mark.parametrize(("behave", "told"), [(be_killed, "code -9"), (abort, "code -6")])
def test_a_worker_killed_while_it_solves_is_told(behave: Behave, told: str) -> None:
    answer, values = solve(behave, apart=True)
    assert values == GREEDY
    assert any("its process ended with" in note and told in note for note in answer.notes), answer.notes


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on a process's own memory")
def test_memory_is_limited_and_the_limit_named() -> None:
    answer, values = solve(take_all_memory, Limits(memory_mb=500), apart=True)
    assert values == GREEDY
    assert answer.limit_hit == "memory"
    assert answer.notes == ["fake: ran out of memory"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no limit on a process's own memory")
def test_a_limit_on_memory_ends_with_its_call() -> None:
    worker = Worker()
    try:
        worker.call(limit_memory, 1)
        assert len(worker.call(bytes, 50 << 20)) == 50 << 20
    finally:
        worker.kill()


def test_what_a_process_does_not_find_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that only this process can import, as one of a script or of a folder that was added later."""
    worker = Worker()
    try:
        (tmp_path / "only_here.py").write_text("def one():\n    return 1\n")
        monkeypatch.syspath_prepend(tmp_path)
        from only_here import one  # type: ignore[import-not-found]  # made just now

        with pytest.raises(RuntimeError, match="ModuleNotFoundError: No module named 'only_here'"):
            worker.call(one)
        assert worker.call(len, [1, 2]) == 2  # in a new process
    finally:
        worker.kill()


def test_who_hangs_is_ended_when_the_caller_wants_to_stop() -> None:
    stop = Stop()
    Timer(1.0, stop.ask).start()
    started = time.monotonic()
    answer, values = solve(sleep, apart=True, stop=stop)
    assert time.monotonic() - started < 30, "it slept for a minute"
    assert values == GREEDY
    assert any("stopped by the caller" in note for note in answer.notes), answer.notes


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked for in /proc")
def test_a_worker_takes_along_what_it_started() -> None:
    solve(start_a_child_and_sleep, Limits(deadline_ms=3000), apart=True)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    assert not [line for line in lines if b"kant_opt-child-of-a-solver" in line]


def test_a_worker_hears_that_it_is_to_stop() -> None:
    wait = (
        "from threading import Event\n"
        "from kant_opt.backends.worker import emit, told_to_stop\n"
        "heard = Event()\n"
        "told_to_stop().when_asked(heard.set)\n"
        "emit('waits')\n"
        "assert heard.wait(60)\n"
    )
    worker = Worker()
    try:
        worker.call(exec, wait, on_event=lambda _: worker.stop())
        assert worker.call(divmod, 7, 2) == (3, 1), "the wish ended with the call"
    finally:
        worker.kill()


# -- the process of its own ------------------------------------------------------------------------


def test_a_worker_answers_and_passes_errors_on() -> None:
    worker = Worker()
    try:
        assert worker.call(divmod, 7, 2) == (3, 1)
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            worker.call(divmod, 7, 0)
        assert worker.call(divmod, 8, 2) == (4, 0), "an error does not end it"
    finally:
        worker.kill()


def test_another_thread_may_take_the_last_idle_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a look at the list and the grip into it; then a new one starts."""

    class Emptied(list[Worker]):
        def __bool__(self) -> bool:
            return True

    monkeypatch.setitem(worker_module._idle, (), Emptied())
    worker = hire(())
    assert worker.call(abs, -3) == 3
    worker.kill()


def test_a_worker_that_crashes_takes_nobody_along() -> None:
    worker = Worker()
    with pytest.raises(WorkerDied):
        worker.call(os.abort)
    assert not worker.alive


def test_a_worker_that_hangs_is_killed_in_time() -> None:
    worker = Worker()

    def ask(stop: Stop) -> RawAnswer:
        stop.when_asked(worker.kill)
        worker.call(time.sleep, 60)
        return RawAnswer("UNKNOWN")

    started = time.monotonic()
    raw = within(0.2, ask)
    assert time.monotonic() - started < 10, "it slept for a minute"
    assert raw.word == "UNKNOWN"
    assert raw.note == "did not stop in time and was ended"
    assert not worker.alive


@pytest.mark.parametrize("name", ["cp-sat", "milp", "milp-cbc"])
@pytest.mark.parametrize("deadline_ms", [1, 50, 1000])
def test_an_answer_comes_within_any_deadline(name: str, deadline_ms: int) -> None:
    cluster = Cluster(REQUEST, build_fabric(REQUEST.fabric, REQUEST.nodes))
    free, quotas = Free(cluster), Quotas(cluster)
    task = Task(cluster, free, quotas, compile_gangs(cluster), "batch", REQUEST.limits, Deadline(deadline_ms))
    answer = BACKENDS[name].solve(task)
    assert verify(REQUEST, to_placement(cluster, answer)) == ()
