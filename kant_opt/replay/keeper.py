"""The checkpoint file: policies that are done, and the state of the one under way."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from time import monotonic
from typing import Any

from kant_opt.errors import InputError
from kant_opt.io.files import read_text, write_atomic
from kant_opt.replay.checkpoint import Kept
from kant_opt.replay.course import Course, Span

_FORMAT = 1
_SHARE = 20
"""Writing takes at most one part in so many of the time."""


def digest(*parts: object) -> str:
    """Return what tells one replay from another: of everything that its result depends on."""
    return hashlib.sha256("\n".join(repr(part) for part in parts).encode()).hexdigest()


class Keeper:
    """Writes and reads one checkpoint file, whole or not at all. Without a path it keeps nothing."""

    def __init__(self, path: Path | None, of: str, every_s: float = 60.0) -> None:
        """`of` is the digest of the replay; raises InputError where the file belongs to another, or is no such file."""
        self.path, self.of, self.every_s = path, of, every_s
        self.done: dict[str, Course] = {}
        self._under_way: tuple[str, Kept] | None = None
        self._written, self._took = monotonic(), 0.0
        if path is not None and path.exists():
            self._read(path)

    @property
    def due(self) -> bool:
        """Whether it is time to save again."""
        since = monotonic() - self._written
        return self.path is not None and since >= max(self.every_s, _SHARE * self._took)

    def under_way(self, name: str) -> Kept | None:
        """Return the state of a policy that was under way."""
        return self._under_way[1] if self._under_way is not None and self._under_way[0] == name else None

    def save(self, name: str, kept: Kept) -> None:
        """Write down the state of a policy under way."""
        self._under_way = name, kept
        self._write()

    def finish(self, name: str, course: Course) -> None:
        """Write down that a policy is done."""
        self.done[name] = course
        self._under_way = None
        self._write()

    def _write(self) -> None:
        if self.path is None:
            return
        begun = monotonic()
        done = {name: {"seconds": c.seconds, "spans": [astuple(s) for s in c.spans]} for name, c in self.done.items()}
        data: dict[str, Any] = {"kant_opt_checkpoint": _FORMAT, "of": self.of, "done": done}
        if self._under_way is not None:
            data["under_way"] = {"name": self._under_way[0], "kept": self._under_way[1].as_json()}
        write_atomic(self.path, json.dumps(data, separators=(",", ":")))
        self._written = monotonic()
        self._took = self._written - begun

    def _read(self, path: Path) -> None:
        way_out = "delete it, or name another file"
        try:
            data = json.loads(read_text(path))
            known = data["kant_opt_checkpoint"] == _FORMAT
        except (ValueError, KeyError, TypeError, RecursionError):
            known = False
        if not known:
            raise InputError("not a checkpoint of a replay", place=str(path), way_out=way_out)
        if data["of"] != self.of:
            raise InputError(
                "a checkpoint of another replay: other trace, cluster, policies or options",
                place=str(path),
                way_out=way_out,
            )
        try:
            for name, course in data["done"].items():
                self.done[name] = Course(tuple(_span(row) for row in course["spans"]), course["seconds"])
            if "under_way" in data:
                self._under_way = data["under_way"]["name"], _kept(data["under_way"]["kept"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError("a damaged checkpoint", place=str(path), way_out=way_out) from None


def _span(row: list[Any]) -> Span:
    position, start, end, backfilled, evicted, where = row
    return Span(position, start, end, backfilled, evicted, tuple((node, milli) for node, milli in where))


def _kept(data: Mapping[str, Any]) -> Kept:
    return Kept(**data)
