"""Processes of their own for solvers: one that hangs is killed, one that crashes takes nobody along.

They also keep apart what does not load together: OR-Tools brings a HiGHS of its own, and where highspy's is loaded
first (or second), one of the two fails to import. A worker stays for the next call, so that its imports are paid once.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Thread
from time import monotonic
from typing import IO, Any, Protocol

from kant_opt.backends.solver import Effort, OnEvent, RawAnswer, Stop, within

_START = "import sys; from kant_opt.backends.worker import _serve; _serve(sys.argv[1:])"
_idle: dict[tuple[str, ...], list[Worker]] = {}
_PATIENCE_S = 0.03
"""How long after its time a process is told to stop, waited for then, and ended."""
_OVERRUN = 0.05
"""Share of its time by which a solver is told to stop earlier: most look at the clock now and then only."""


class WorkerDied(Exception):
    """The process ended before it answered: it crashed, ran out of memory or was killed."""


class Worker:
    """One process that runs functions one at a time; `modules` are what it imports first.

    Where it ended, the next call starts it anew.
    """

    def __init__(self, modules: tuple[str, ...] = ()) -> None:
        self.modules = modules
        self._sending = Lock()
        self._start()

    def _start(self) -> None:
        path = os.pathsep.join(folder or "." for folder in sys.path)
        self._process = Popen(  # noqa: S603  # our own interpreter with a text of our own
            [sys.executable, "-c", _START, *self.modules],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # a Ctrl-C of the terminal is ours to hear
        )

    def call(self, function: Callable[..., Any], *args: Any, on_event: Callable[..., None] | None = None) -> Any:
        """Return function(*args), run there; both must pickle. `on_event` is told what it emits on the way.

        Raises what it raises as RuntimeError, but MemoryError as such; and WorkerDied.
        """
        if not self.alive:
            self._start()
        assert self._process.stdout is not None
        try:
            self._send(function, *args)
            while True:
                kind, what = pickle.load(self._process.stdout)  # noqa: S301  # from a process of our own
                if kind == "event" and on_event is not None:
                    on_event(*what)
                elif kind == "error":
                    raise RuntimeError(what)
                elif kind == "memory":
                    self.kill()  # what is left of it is of no use
                    raise MemoryError(what)
                elif kind == "answer":
                    return what
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            self.kill()
            raise WorkerDied(f"its process ended with code {self._process.returncode}") from error

    def stop(self) -> None:
        """Tell the function that runs there to stop, from any thread: see `told_to_stop`."""
        with suppress(OSError, ValueError):  # it may have ended
            self._send(None)

    def _send(self, *message: object) -> None:
        assert self._process.stdin is not None
        with self._sending:
            pickle.dump(pickle.dumps(message, protocol=5), self._process.stdin, protocol=5)
            self._process.stdin.flush()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process now, and those that it started."""
        _end_group(self._process.pid)
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):
                pipe.close()  # type: ignore[union-attr]  # both are pipes


def hire(modules: tuple[str, ...]) -> Worker:
    """Return a worker that has imported `modules` or is about to: an idle one, or a new one."""
    idle = _idle.setdefault(modules, [])
    with suppress(IndexError):  # none is idle, or another thread took the last one
        while True:
            worker = idle.pop()
            if worker.alive:
                return worker
    return Worker(modules)


def give_back(worker: Worker) -> None:
    """Keep a worker for the next call, if it lives and one is enough."""
    idle = _idle.setdefault(worker.modules, [])
    if worker.alive and not idle:
        idle.append(worker)
    else:
        worker.kill()


def warm_up(modules: tuple[str, ...]) -> None:
    """See to it that a worker for `modules` is there, or on its way, when the next one is hired."""
    give_back(hire(modules))


@atexit.register
def _dismiss() -> None:
    for workers in _idle.values():
        for worker in workers:
            worker.kill()
        workers.clear()


class Asked(Protocol):
    """What solves problems: a solver of programs or of schedules."""

    def solve(self, *args: Any) -> RawAnswer:
        """Return the best point and bound, from (*problem, effort, hint, on_event, stop)."""
        ...


def ask(
    solver: Asked,
    worker: Worker | None,
    problem: tuple[Any, ...],
    effort: Effort,
    hint: Any,
    on_event: OnEvent,
    *,
    memory_mb: int | None,
    stop: Stop,
    patience: float = _PATIENCE_S,
) -> RawAnswer:
    """Return what a solver says within its effort, from the worker's process; without one from a thread here.

    `problem` is what its `solve` takes first. `stop` and `patience` as in `within`; raises nothing but
    KeyboardInterrupt.
    """

    def now(inner: Stop) -> RawAnswer:
        if worker is None:
            return solver.solve(*problem, effort, hint, on_event, inner)
        inner.when_asked(worker.stop)
        until = None if effort.seconds is None else monotonic() + (1 - _OVERRUN) * effort.seconds
        answer = worker.call(_solve, solver, problem, effort, until, memory_mb, hint, on_event=on_event)
        assert isinstance(answer, RawAnswer)
        return answer

    end = None if worker is None else worker.kill
    return within(effort.seconds, now, patience=patience, stop=stop, end=end)


def call_in_time(
    function: Callable[..., Any], *args: Any, loads: tuple[str, ...], seconds: float, stop: Stop
) -> Any | None:
    """Return function(*args, until), `until` on the monotonic clock, from a process that has imported `loads`.

    None where it failed, or was ended as its time was up or somebody asked to stop.
    """
    worker, until = hire(loads), monotonic() + seconds
    found: list[Any] = []

    def now(inner: Stop) -> RawAnswer:
        inner.when_asked(worker.stop)
        found.append(worker.call(function, *args, until))
        return RawAnswer("UNKNOWN", values=[])

    try:
        within(seconds, now, patience=_PATIENCE_S, stop=stop, end=worker.kill)
    finally:
        give_back(worker)
    return found[0] if found else None


# -- in the process of the worker ------------------------------------------------------------------

_answers: IO[bytes] | None = None
_stop = Stop()


def told_to_stop() -> Stop:
    """Return what the caller of the function that runs asks when it wants it to stop."""
    return _stop


def emit(*event: object) -> None:
    """Tell the caller something on the way."""
    if _answers is not None:
        _send("event", event)


def limit_memory(mebibytes: int | None) -> None:
    """Let this process take so much memory of its own from now until the call ends; None: what the system allows.

    On Linux this counts what is written to, not what is mapped: close to what the process really uses.
    """
    with suppress(ImportError, ValueError, OSError):  # no such limit here, or it is not ours to raise
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = hard if mebibytes is None else mebibytes << 20
        resource.setrlimit(resource.RLIMIT_DATA, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _solve(
    solver: Asked, problem: tuple[Any, ...], effort: Effort, until: float | None, memory_mb: int | None, hint: Any
) -> RawAnswer:
    """Solve in this process, whose start and imports may have used up some of the time."""
    limit_memory(memory_mb)
    if until is not None:
        effort = replace(effort, seconds=max(0.0, until - monotonic()))
    return solver.solve(*problem, effort, hint, emit, told_to_stop())


def _send(kind: str, what: object) -> None:
    assert _answers is not None
    pickle.dump((kind, what), _answers, protocol=5)
    _answers.flush()


def _serve(modules: list[str]) -> None:
    """Answer calls until the caller is gone. What solvers print goes nowhere: standard output is the caller's pipe."""
    global _answers, _stop
    _answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    calls: SimpleQueue[tuple[Stop, Callable[..., Any], tuple[Any, ...]]] = SimpleQueue()
    Thread(target=_listen, args=(calls,), daemon=True).start()
    for name in modules:
        with suppress(ImportError):  # said again, and heard, when it is used
            import_module(name)
    while True:
        _stop, function, args = calls.get()
        try:
            kind, result = "answer", function(*args)
        except MemoryError as error:
            kind, result = "memory", str(error)
        except BaseException as error:
            kind, result = "error", f"{type(error).__name__}: {error}"
        limit_memory(None)
        _send(kind, result)


def _listen(calls: SimpleQueue[tuple[Stop, Callable[..., Any], tuple[Any, ...]]]) -> None:
    """Take calls from the caller, or its wish that the last one stops; where it is gone, end at once, also in the
    middle of a call."""
    latest = Stop()
    while True:
        try:
            message = pickle.load(sys.stdin.buffer)  # noqa: S301  # from our own caller
        except BaseException:  # the caller is gone, or there is no memory left to hear it
            _end_group(os.getpid())
            os._exit(0)
        try:
            function, *args = pickle.loads(message)  # noqa: S301
        except Exception as error:  # what to call is not to be found here
            function, args = _fail, [error]
        if function is None:
            latest.ask()
        else:
            latest = Stop()
            calls.put((latest, function, tuple(args)))


def _fail(error: Exception) -> None:
    raise error


def _end_group(process: int) -> None:
    """End a worker and what it started: it leads a session, and so a group, of its own."""
    with suppress(OSError, AttributeError):  # gone already, or a system without groups
        if os.getpgid(process) == process:
            os.killpg(process, signal.SIGKILL)
