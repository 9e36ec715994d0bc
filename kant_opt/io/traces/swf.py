"""Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 for unknown, comments after ";".

Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999,
doi:10.1007/3-540-47954-6_4. Processors stand for GPUs. Lines may go on: where a later field reads "2:ppn=16...", as in
the logs of MetaCentrum, it tells the pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kant_opt.errors import InputError
from kant_opt.io.traces.formats import TRACES, Lines
from kant_opt.io.traces.trace import JobState, TraceJob

_STATES: dict[int, JobState] = {0: "failed", 1: "done", 5: "cancelled"}
_NUMBER = re.compile(r"-?\d{1,18}(\.\d*)?(e[+-]?\d{1,3})?\Z", re.ASCII | re.IGNORECASE)
_NODES = re.compile(r"(\d{1,6}):ppn=(\d{1,6})(?:[:#].*)?\Z", re.ASCII)
_FIELDS = 18


class SwfFormat:
    """Fields used: job, submit, wait, run, processors (asked, else used), time asked, status, user, queue."""

    name = "swf"
    looks_for = "18 numbers a line, comments after ';' (Standard Workload Format)"
    wall_clock = False

    def sniff(self, head: str) -> bool:
        lines = [line for line in head.splitlines()[:-1] or head.splitlines() if line.strip()]
        jobs = [line for line in lines if not line.lstrip().startswith(";")]
        if not jobs:
            return bool(lines) and any("MaxProcs" in line or "Computer" in line for line in lines)
        words = jobs[0].split()
        return len(words) >= _FIELDS and all(_NUMBER.match(word) for word in words[:_FIELDS])

    def read(self, lines: Lines) -> Iterator[tuple[int, TraceJob | InputError | None]]:
        jobs: list[tuple[int, TraceJob]] = []
        for number, line in enumerate(lines, start=1):
            words = line.split()
            if words and not words[0].startswith(";"):
                found = _job(words)
                if isinstance(found, TraceJob):
                    jobs.append((number, found))
                else:
                    yield number, found
        yield from sorted(jobs, key=lambda numbered: int(numbered[1].name))  # numbered as submitted, written as ended

    def capacity(self, lines: Lines) -> int | None:
        for line in lines:
            if not line.startswith(";"):
                break
            name, _, value = line[1:].partition(":")
            if name.strip() == "MaxProcs" and value.strip().isdecimal():
                return int(value)
        return None


def _job(words: list[str]) -> TraceJob | InputError:
    if len(words) < _FIELDS:
        return InputError(f"{len(words)} fields of {_FIELDS}", way_out="is the line cut?")
    try:
        # Nearly all fields are plain integers; some logs write floats.
        fields = [int(word) for word in words[:_FIELDS]]
    except ValueError:
        bad = [word for word in words[:_FIELDS] if not _NUMBER.match(word)]
        if bad:
            return InputError(f"{bad[0][:40]!r} is not a number", way_out="fields are numbers, -1 where unknown")
        fields = [_whole(word) for word in words[:_FIELDS]]
    gpus = fields[7] if fields[7] > 0 else max(0, fields[4])
    return TraceJob(
        name=str(fields[0]),
        submit_s=fields[1],
        run_s=fields[3] if fields[3] >= 0 else None,
        gpus=gpus,
        asked_s=fields[8] if fields[8] > 0 else None,
        pods=_pods(words[_FIELDS:], gpus),
        user=str(fields[11]) if fields[11] >= 0 else "",
        queue=str(fields[14]) if fields[14] >= 0 else "",
        state=_STATES.get(fields[10], "unknown"),
        wait_s=fields[2] if fields[2] >= 0 else None,
    )


def _whole(word: str) -> int:
    """Return a float rounded up, so that a job holds its processors for all of its time."""
    value = float(word)
    return int(value) + (value > int(value))


def _pods(rest: list[str], gpus: int) -> int | None:
    for word in rest:
        if (match := _NODES.match(word)) and int(match[1]) * int(match[2]) == gpus:
            return int(match[1])
    return None


TRACES.add("swf", SwfFormat())
