"""Two studies of the same runs, such as of two versions: what became better, and what became worse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kant_opt.study.records import is_better
from kant_opt.study.rows import Row, by_key, limits_text


@dataclass(frozen=True)
class Change:
    """One run whose answer is not as good, or not as proven, as before; or better."""

    instance: str
    backend: str
    limits: str
    seed: int
    what: str

    def __str__(self) -> str:
        return f"{self.instance}, {self.backend}, {self.limits}, seed {self.seed}: {self.what}"


@dataclass(frozen=True)
class Comparison:
    """What differs between the runs that both studies have."""

    regressions: tuple[Change, ...]
    improvements: tuple[Change, ...]
    equal: int
    only_old: int
    only_new: int
    """Runs that one study alone has: not compared."""


def compare(old: Iterable[Row], new: Iterable[Row]) -> Comparison:
    """Return the runs whose first differing value is worse, that failed only now, or whose proof is lost; and those
    the other way round. Times are not compared: they are the machine's.
    """
    before, after = by_key(old), by_key(new)
    both = [key for key in before if key in after]
    worse = [_change(after[key], what) for key in both if (what := _worse(before[key], after[key]))]
    better = [_change(after[key], what) for key in both if (what := _worse(after[key], before[key], back=True))]
    return Comparison(
        regressions=tuple(worse),
        improvements=tuple(better),
        equal=len(both) - len(worse) - len(better),
        only_old=len(before) - len(both),
        only_new=len(after) - len(both),
    )


def _change(row: Row, what: str) -> Change:
    return Change(row.instance, row.backend, limits_text(row.limits), row.limits.seed, what)


def _worse(good: Row, bad: Row, *, back: bool = False) -> str:
    """Return in what `bad` is worse than `good`, empty where it is not; `back`: `bad` is the older of the two."""
    if bad.status == "FAILED" or good.status == "FAILED":
        if bad.status == good.status or good.status == "FAILED":
            return ""
        return "answered, failed before" if back else f"failed, {bad.reason}"
    first = next((pair for pair in zip(good.levels, bad.levels, strict=True) if pair[0].value != pair[1].value), None)
    if first is not None:
        if not is_better(good.levels, bad.levels):
            return ""
        was, now = (first[1], first[0]) if back else first
        return f"{was.name} {was.value} -> {now.value}"
    was_proven, is_proven = ([level.name for level in row.levels if level.proven] for row in (good, bad))
    if len(is_proven) >= len(was_proven):
        return ""
    names = ", ".join(name for name in was_proven if name not in is_proven)
    return f"{names} {'proven, not before' if back else 'no longer proven'}"
