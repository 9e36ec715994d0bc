"""Rules that a scheduler's PodGroup adds to the job that was read from the pods of the gang."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kant_opt.io.objects import Notes
from kant_opt.schema import Job, parse


class GangRules:
    """Collects rules on one job, then builds it anew. Podsets are named as in the job; None means all of them."""

    def __init__(self, job: Job, levels: Sequence[str], notes: Notes) -> None:
        self._job, self._notes = job, notes
        self._rank = {level: i for i, level in enumerate(levels)}
        self._podsets: dict[str, dict[str, Any]] = {p.name: {} for p in job.podsets}
        self._fields: dict[str, Any] = {}
        self._together: list[dict[str, Any]] = []

    @property
    def podsets(self) -> tuple[str, ...]:
        """Names of the podsets."""
        return tuple(self._podsets)

    def set(self, **fields: object) -> None:
        """Set fields of the job itself."""
        self._fields |= fields

    def within(self, level: str | None, podsets: Iterable[str] | None = None, *, hard: bool = True) -> None:
        """All pods of the podsets lie in one domain of a level (None: no rule), or should where not `hard`."""
        names = list(self._podsets if podsets is None else podsets)
        if level is None or not names:
            return
        if not hard:
            for name in names:
                self._podsets[name]["preferred_level"] = level
        elif len(names) > 1:
            self._together.append({"level": level, "podsets": names})
        elif self._is_inside(level, self._podsets[names[0]].get("required_level")):
            self._podsets[names[0]]["required_level"] = level

    def slices(self, level: str, size: int, podset: str) -> bool:
        """Pods come in slices of a size, each in one domain of a level. Return False where they do not divide."""
        count = next(p.count for p in self._job.podsets if p.name == podset)
        if size < 1 or count % size:
            return False
        self._podsets[podset]["slices"] = [{"level": level, "size": size}]
        return True

    def at_least(self, number: int, podsets: Iterable[str] | None = None) -> None:
        """The gang may start with so many pods of the podsets together; only told of a single podset."""
        names = list(self._podsets if podsets is None else podsets)
        total = sum(p.count for p in self._job.podsets if p.name in names)
        if number >= total or number < 1 or not names:
            return
        if len(names) > 1:
            self._notes.add("gangs that may start with fewer pods over several podsets wait for all", self._job.name)
            return
        self._podsets[names[0]]["min_count"] = number

    def build(self, place: str) -> Job:
        """Return the job with the rules."""
        data = self._job.model_dump()
        data["podsets"] = [p | self._podsets[p["name"]] for p in data["podsets"]]
        data["together"] = [*data["together"], *self._together]
        return parse(Job, data | self._fields, place=place)

    def _is_inside(self, level: str, other: str | None) -> bool:
        return other is None or self._rank.get(level, 0) >= self._rank.get(other, 0)
