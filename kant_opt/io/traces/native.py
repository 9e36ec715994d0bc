"""kant_opt's own trace: JSON Lines, one job an object a line, with the fields of TraceJob."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from kant_opt.errors import InputError, UnknownName
from kant_opt.io.files import write_atomic
from kant_opt.io.traces.formats import TRACES, Lines
from kant_opt.io.traces.trace import JobState, Trace, TraceJob

_FIELDS = {f.name for f in fields(TraceJob)}
_TEXTS = ("name", "user", "queue")
_NUMBERS = ("submit_s", "run_s", "gpus", "asked_s", "pods", "gpu_milli", "wait_s")
_NEEDED = ("name", "submit_s", "run_s", "gpus")


class NativeTrace:
    """Only `name`, `submit_s`, `run_s` and `gpus` are needed."""

    name = "jsonl"
    looks_for = 'one JSON object a line with "name", "submit_s", "run_s", "gpus" (kant_opt\'s own)'
    wall_clock = False

    def sniff(self, head: str) -> bool:
        first = head.lstrip().partition("\n")[0]
        return first.startswith("{") and all(f'"{field}"' in first for field in _NEEDED)

    def read(self, lines: Lines) -> Iterator[tuple[int, TraceJob | InputError | None]]:
        for number, line in enumerate(lines, start=1):
            yield number, _job(line) if line.strip() else None

    def capacity(self, lines: Lines) -> int | None:
        return None


def write_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace as JSON Lines, `.gz` packs it; fields that say nothing are left out."""
    plain = TraceJob("", 0, None, 0)
    rows = []
    for job in trace.jobs:
        row = asdict(job)
        kept = {k: v for k, v in row.items() if k in _NEEDED or v != getattr(plain, k)}
        rows.append(json.dumps(kept, ensure_ascii=False))
    write_atomic(Path(path), "".join(row + "\n" for row in rows))


def _job(line: str) -> TraceJob | InputError:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        return InputError(f"not JSON ({str(error)[:80]})", way_out="write one object a line")
    if not isinstance(data, dict):
        return InputError(f"a {type(data).__name__}, not an object", way_out="write one object a line")
    return _checked(data)


def _checked(data: dict[str, Any]) -> TraceJob | InputError:
    for field in _NEEDED:
        if field not in data:
            return InputError(f"field {field!r} is missing", way_out=f"needed: {', '.join(_NEEDED)}")
    for field, value in data.items():
        if field not in _FIELDS:
            return UnknownName("field", field, _FIELDS)
        low = -(1 << 53) if field == "submit_s" else 0
        is_whole = isinstance(value, int) and not isinstance(value, bool) and low <= value <= 1 << 53
        may_miss = value is None and field not in ("submit_s", "gpus")
        if field in _NUMBERS and not (is_whole or may_miss):
            return InputError(f"field {field!r} is {str(value)[:40]!r}", way_out="write a whole number")
        if field in _TEXTS and not isinstance(value, str):
            return InputError(f"field {field!r} is {str(value)[:40]!r}", way_out="write a text")
    if data.get("state", "unknown") not in get_args(JobState):
        return UnknownName("state", str(data["state"])[:40], get_args(JobState))
    if not isinstance(data.get("inference", False), bool):
        return InputError("field 'inference' is neither true nor false", way_out="write true or false")
    pods = data.get("pods")
    if pods is not None and (not pods or data["gpus"] % pods):
        return InputError(f"{data['gpus']} GPUs in {pods} pods", way_out="pods have equal sizes; at least one")
    if data.get("gpu_milli") is not None and not (0 < data["gpu_milli"] < 1000 and data["gpus"] == 1):
        return InputError(f"a share of {data['gpu_milli']} thousandths", way_out="a share is 1 to 999 of 1 GPU")
    return TraceJob(**data)


TRACES.add("jsonl", NativeTrace())
