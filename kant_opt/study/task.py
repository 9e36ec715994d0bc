"""One run in a process of its own, ended when its time or memory is up; whatever happens, a row comes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Timer

from kant_opt import __version__
from kant_opt.backends.worker import Worker, WorkerDied, limit_memory
from kant_opt.engine import place
from kant_opt.schema import Limits, Request, parse
from kant_opt.study.rows import Row

_live: dict[Task, Worker] = {}
"""The processes of the runs that go on in this one's threads."""


@dataclass(frozen=True)
class Task:
    """One run, as plain data that any executor can send."""

    instance: str
    digest: str
    request: str
    """JSON."""
    backend: str
    limits: Limits
    time_s: float
    memory_mb: int | None

    def failed(self, reason: str) -> Row:
        """Return the row of a run that has no outcome."""
        return Row(
            instance=self.instance,
            digest=self.digest,
            backend=self.backend,
            limits=self.limits,
            status="FAILED",
            reason=reason,
            version=__version__,
            date=_today(),
        )


def run_task(task: Task, apart: bool = True) -> Row:
    """Return the row of one run; raises nothing but KeyboardInterrupt."""
    if not apart:
        try:
            return measured(task)
        except Exception as error:
            return task.failed(f"error: {type(error).__name__}: {error}")
    worker = _live[task] = _Once()
    late: list[bool] = []

    def end() -> None:
        late.append(True)
        worker.kill()

    timer = Timer(task.time_s, end)
    timer.daemon = True
    timer.start()
    try:
        row = worker.call(_bounded, task)
        assert isinstance(row, Row)
        return row
    except MemoryError:
        return task.failed(f"memory: needs more than {task.memory_mb} MiB")
    except WorkerDied as error:
        return task.failed(f"time: ended after {task.time_s:g} s" if late else f"crash: {error}")
    except RuntimeError as error:
        return task.failed(f"error: {error}")
    finally:
        timer.cancel()
        worker.kill()
        _live.pop(task, None)


def end_run(task: Task) -> None:
    """End the process of a run that a thread of this process waits for, if there is one."""
    if (worker := _live.get(task)) is not None:
        worker.kill()


def measured(task: Task) -> Row:
    """Place the request in this process and measure time and memory."""
    request = parse(Request, json.loads(task.request), place=task.instance)
    outcome = place(request, backend=task.backend, limits=task.limits)
    cpu_seconds, peak_mb = _used()
    return Row(
        instance=task.instance,
        digest=task.digest,
        backend=task.backend,
        limits=task.limits,
        status=outcome.status,
        levels=outcome.levels,
        placed=len(outcome.placement.jobs) if outcome.placement else 0,
        jobs=len(request.jobs),
        limit_hit=outcome.run.limit_hit,
        seconds=outcome.run.seconds,
        cpu_seconds=round(cpu_seconds, 3),
        peak_mb=peak_mb,
        version=__version__,
        date=_today(),
    )


def _bounded(task: Task) -> Row:
    """Do the same within the task's memory; in a process that does nothing else."""
    limit_memory(task.memory_mb)
    if task.memory_mb is not None and _used()[1] > task.memory_mb:  # a small request may ask for nothing more
        raise MemoryError
    return measured(task)


def _used() -> tuple[float, int]:
    """Return processor seconds and the most memory in MiB; zeros where the system does not say."""
    with suppress(ImportError):
        import resource

        own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, own.ru_maxrss >> 10
    return 0.0, 0


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class _Once(Worker):
    """A worker that stays ended: its time may be up before it is asked anything."""

    _ended = False

    def _start(self) -> None:
        if self._ended:
            raise WorkerDied("its process was ended")
        super()._start()

    def kill(self) -> None:
        self._ended = True
        super().kill()
