"""The trace formats kant_opt reads, and the one door to all of them: `read_trace`."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.traces.cells import Cells
from kant_opt.io.traces.trace import BadLine, Trace, TraceJob
from kant_opt.registry import Registry

OnBad = Literal["stop", "skip"]
"""A line that cannot be read stops the reading, or is left out and reported."""

Lines = list[str]


class TraceFormat(Protocol):
    """One way in which workloads are written down, a job a line."""

    @property
    def name(self) -> str:
        """What users call it."""
        ...

    @property
    def looks_for(self) -> str:
        """What `sniff` wants to see, in words."""
        ...

    @property
    def wall_clock(self) -> bool:
        """Its times are dates; then they are counted from the first submission."""
        ...

    def sniff(self, head: str) -> bool:
        """Return whether a file that begins like this looks like the format."""
        ...

    def read(self, lines: Lines) -> Iterator[tuple[int, TraceJob | InputError | None]]:
        """Yield per line its number (from 1) and its job, or what is wrong with it; None: nothing to see.

        Jobs without a name are called by their line. Those submitted at one time come in the order of the queue.
        """
        ...

    def capacity(self, lines: Lines) -> int | None:
        """Return the GPUs of the cluster, None where the file does not say."""
        ...


TRACES: Registry[TraceFormat] = Registry("trace format")


@dataclass(frozen=True)
class TableFormat:
    """A CSV with a header line: known by its columns, wherever they stand; others are not looked at."""

    name: str
    looks_for: str
    columns: tuple[str, ...]
    job: Callable[[Cells], TraceJob]
    wall_clock: bool = False

    def sniff(self, head: str) -> bool:
        return set(self.columns) <= set(_header(head.partition("\n")[0]))

    def read(self, lines: Lines) -> Iterator[tuple[int, TraceJob | InputError | None]]:
        header = _header(lines[0] if lines else "")
        if missing := [column for column in self.columns if column not in header]:
            raise InputError(
                f"column {missing[0]!r} is missing", place="line 1", way_out=f"needed: {', '.join(self.columns)}"
            )
        for number, line in enumerate(lines[1:], start=2):
            yield number, self._job(header, line) if line.strip() else None

    def capacity(self, lines: Lines) -> int | None:
        return None

    def _job(self, header: list[str], line: str) -> TraceJob | InputError:
        try:
            cells = next(csv.reader([line], strict=True))
            if len(cells) != len(header):
                return InputError(f"{len(cells)} cells for {len(header)} columns", way_out="is the line cut or quoted?")
            return self.job(Cells(dict(zip(header, cells, strict=True))))
        except csv.Error as error:
            return InputError(f"not CSV ({error})", way_out="check its quotes")
        except InputError as error:
            return error


def read_trace(source: str | Path, *, format: str | None = None, on_bad: OnBad = "stop") -> Trace:  # noqa: A002
    """Return the trace in a file, `.gz` or not; its content tells the format unless one is named.

    Raises InputError for a file that no or several formats know, and with `on_bad="stop"` for the first line that
    cannot be read; with "skip" such lines are left out and listed. UnknownName for a `format` not in TRACES. Costs
    some microseconds a line, and memory for the text and all jobs.
    """
    path = Path(source)
    chosen = TRACES[format] if format is not None else _sniffed(path)
    lines = read_text(path).splitlines()
    jobs: list[TraceJob] = []
    bad: list[BadLine] = []
    try:
        for number, found in chosen.read(lines):
            if isinstance(found, InputError):
                if on_bad == "stop":
                    raise found.within(f"line {number}")
                bad.append(BadLine(number, str(found)))
            elif found is not None:
                jobs.append(found if found.name else replace(found, name=str(number)))
    except InputError as error:
        raise error.within(path.name) from None
    jobs.sort(key=lambda job: job.submit_s)
    if chosen.wall_clock and jobs:
        first = jobs[0].submit_s
        jobs = [replace(job, submit_s=job.submit_s - first) for job in jobs]
    return Trace(
        name=path.name,
        format=chosen.name,
        jobs=tuple(jobs),
        capacity=chosen.capacity(lines),
        bad_lines=tuple(bad),
        notes=tuple(_notes(jobs, bad)),
    )


def _sniffed(path: Path) -> TraceFormat:
    head = read_head(path)
    found = [name for name, part in TRACES.items() if part.sniff(head)]
    if len(found) == 1:
        return TRACES[found[0]]
    if found:
        raise InputError(
            f"this file could be read as {' or '.join(found)}", place=path.name, way_out="name the trace format"
        )
    wanted = "; ".join(f"{name}: {part.looks_for}" for name, part in TRACES.items())
    raise InputError("no known trace in this file", place=path.name, way_out=f"looked for {wanted}")


def _notes(jobs: list[TraceJob], bad: list[BadLine]) -> Iterable[str]:
    if bad:
        shown = "; ".join(f"line {line.line}: {line.reason}" for line in bad[:3])
        yield f"{len(bad)} lines left out that could not be read ({shown}{'; ...' if len(bad) > 3 else ''})"
    if repeated := len(jobs) - len({job.name for job in jobs}):
        yield f"{repeated} jobs have the name of another"


def _header(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]
