"""A grid of runs, written down one line each: what a kill leaves undone, the next call does.

Each run has a process of its own, which is ended when its time or memory is up, so a run that hangs or crashes costs
its own row alone. Who runs them is a `concurrent.futures.Executor`: threads here, processes, or another machine's
workers; rows are written by the caller as they come in, so a worker needs nothing but the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

from kant_opt.backends import BACKENDS
from kant_opt.errors import InputError
from kant_opt.io import read_request
from kant_opt.schema import Limits, Request, to_json
from kant_opt.study.instances import Instances, digest_of
from kant_opt.study.rows import Key, Row, limits_text, read_rows, repair
from kant_opt.study.task import Task, end_run, run_task

_AHEAD = 64
"""Runs handed to an executor before some come back: it need not hold a whole study of large requests."""
OnRow = Callable[[Row, int, int], None]
"""Told of a row that was written, how many are now, and how many the study has."""


class StudyResult(NamedTuple):
    """The rows of the runs that were asked for, in their order; how many were there already."""

    rows: list[Row]
    kept: int


def run_study(
    instances: Iterable[str | Path | tuple[str, Request]],
    backends: Sequence[str],
    limits: Sequence[Limits] = (Limits(),),
    seeds: Sequence[int] = (0,),
    *,
    executor: Executor | None = None,
    out: str | Path,
    time_s: float = 3600.0,
    memory_mb: int | None = None,
    apart: bool = True,
    again: bool = False,
    on_row: OnRow | None = None,
) -> StudyResult:
    """Run every backend on every instance with every limit and seed, and append a row of each to `out`.

    `instances` are names of stored ones, paths of request files, or (name, request). Runs that `out` has a row of are
    not run again, also failed ones; `again` runs those that failed once more. `executor`: who runs; without one, one
    after another here. `time_s` and `memory_mb` bound each run's process; limits of `limits` bound the search inside
    and are how to compare alike. With `apart` False runs share the caller's process: backends registered there are
    known, but nothing bounds them. Raises InputError for names, files and an `out` that another study writes.

    A row failed for time, memory, a crash or an error says so; the study goes on. Ctrl-C ends it, and what was
    written stays.
    """
    for name in backends:
        if name != "auto":
            BACKENDS[name]  # an unknown name is told before anything is run
    path = Path(out)
    with _alone(path) as file:
        known = {row.key: row for row in read_rows(path)}
        tasks = [
            Task(name, digest, text, backend, limit.model_copy(update={"seed": seed}), time_s, memory_mb)
            for name, digest, text in _loaded(instances)
            for backend in backends
            for limit in limits
            for seed in seeds
        ]
        keys = [key_of(task) for task in tasks]
        missing = {
            key: task
            for key, task in zip(keys, tasks, strict=True)
            if key not in known or (again and known[key].status == "FAILED")
        }
        kept = len(set(keys)) - len(missing)
        rows = _run(list(missing.values()), executor, apart=apart)
        for done, row in enumerate(rows, start=kept + 1):
            _append(file, row)
            known[row.key] = row
            if on_row is not None:
                on_row(row, done, kept + len(missing))
    return StudyResult([known[key] for key in dict.fromkeys(keys)], kept)


def key_of(task: Task) -> Key:
    """Return the key of the row that a task becomes."""
    return (task.instance, task.digest, task.backend, limits_text(task.limits), task.limits.seed)


def _loaded(instances: Iterable[str | Path | tuple[str, Request]]) -> Iterator[tuple[str, str, str]]:
    """Yield name, digest and the request as JSON: a worker elsewhere has no files of ours."""
    stored = Instances()
    names = frozenset(stored.names())
    for instance in instances:
        if isinstance(instance, tuple):
            name, request = instance
        elif isinstance(instance, Path) or (instance not in names and Path(instance).exists()):
            name, request = str(instance), read_request(instance)[0]
        else:
            name, request = instance, stored.load(instance)
        yield name, digest_of(request), to_json(request)


def _run(tasks: Sequence[Task], executor: Executor | None, *, apart: bool) -> Iterator[Row]:
    """Yield rows as they come in."""
    if executor is None:
        for task in tasks:
            yield run_task(task, apart)
        return
    waiting = iter(tasks)
    running: dict[Future[Row], Task] = {}
    try:
        while True:
            for task in islice(waiting, _AHEAD - len(running)):
                running[executor.submit(run_task, task, apart)] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield _result(future, running.pop(future))
    finally:  # the caller wants no more
        for future, task in running.items():
            if not future.cancel():
                end_run(task)


def _result(future: Future[Row], task: Task) -> Row:
    """Return the row of a run; a worker that died is the run's failure, as far as one can tell."""
    error = future.exception()
    return future.result() if error is None else task.failed(f"worker: {type(error).__name__}: {error}")


@contextmanager
def _alone(path: Path) -> Iterator[IO[bytes]]:
    """Open a study's file to append, for this process alone, its last line whole."""
    try:
        file = path.open("ab")
    except OSError as error:
        raise InputError(
            f"cannot be written: {(error.strerror or str(error)).lower()}", place=str(path), way_out="name another file"
        ) from None
    with file:
        if not _locked(file):
            raise InputError(
                "another study is writing it", place=str(path), way_out="wait for it, or name another file"
            )
        repair(path)
        yield file


def _locked(file: IO[bytes]) -> bool:
    """Return whether the file is ours until it is closed; a system without locks trusts its user."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _append(file: IO[bytes], row: Row) -> None:
    """Write one line and see it on the disk: what is told as done survives a power cut."""
    file.write(to_json(row).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())
