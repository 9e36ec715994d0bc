"""The best that is known of each instance: a verified solution, and per objective level its value and best bound.

A bound of a level holds among the placements that are as good on the levels before. So of two records with different
values, both bounds hold up to the first level that differs, and after it only those of the better one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kant_opt import __version__
from kant_opt.engine.levels import values_of_levels
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.io import load_placement, save
from kant_opt.io.files import read_text, write_atomic
from kant_opt.io.plain import load_data
from kant_opt.metrics import measure
from kant_opt.schema import LevelValue, Outcome, Placement, parse, to_json
from kant_opt.schema.base import Frozen
from kant_opt.study.instances import Instances, digest_of
from kant_opt.verify import verify


class Record(Frozen):
    """One line of best-known.jsonl."""

    instance: str
    digest: str
    """Of the request, so that a changed instance does not keep an old value."""
    levels: tuple[LevelValue, ...]
    """Value of the solution; bound and who proved it, perhaps in another run."""
    backend: str
    """Who found the solution."""
    version: str = ""
    """Of kant_opt."""
    limit: str = ""
    """The limit of its run, in words; empty: none, or not known."""
    seed: int = 0
    date: str = ""
    """Of the last change, year-month-day."""


def read_records(path: Path) -> dict[str, Record]:
    """Return the records of a file by instance, in its order; empty where there is no file."""
    lines = read_text(path).splitlines() if path.exists() else []
    found: dict[str, Record] = {}
    for n, line in enumerate(lines, start=1):
        place = f"{path.name}: line {n}"
        try:
            record = parse(Record, json.loads(line), place=place)
        except json.JSONDecodeError as error:
            raise InputError(f"is no JSON: {error}", place=place, way_out="restore the file") from None
        if record.instance in found:
            raise InputError(f"a second record of {record.instance!r}", place=place, way_out="keep one of them")
        found[record.instance] = record
    return found


def submit(
    instances: Instances,
    name: str,
    answer: Outcome | Placement,
    *,
    backend: str = "",
    limit: str = "",
    take_bounds: bool = False,
) -> tuple[Record, bool]:
    """Return the record of `name` with a new answer taken into account, and whether that changed it.

    The answer must keep every rule and is measured here: what an outcome says of its values does not count. Its
    bounds count only with `take_bounds`, for they cannot be checked from a file; use it for runs of your own. A better
    solution replaces the stored one. Raises InputError where a rule is broken, or a bound is refuted by a solution.
    """
    request = instances.load(name)
    placement = answer.placement if isinstance(answer, Outcome) else answer
    if placement is None:
        raise InputError("the outcome holds no placement", place=name, way_out="submit an answer that has one")
    fabric = build_fabric(request.fabric, request.nodes)
    if broken := verify(request, placement, fabric):
        raise InputError(
            f"the placement breaks {len(broken)} rules, first {broken[0]}", place=name, way_out="see `kant-opt verify`"
        )
    values = values_of_levels(request.objective, measure(request, placement, fabric))
    claimed = {level.name: level for level in answer.levels} if isinstance(answer, Outcome) and take_bounds else {}
    new = Record(
        instance=name,
        digest=digest_of(request),
        levels=tuple(_level(level, value, claimed.get(level)) for level, value in values.items()),
        backend=backend or (answer.run.backend if isinstance(answer, Outcome) else "submitted"),
        version=__version__,
        limit=limit,
        seed=answer.run.seed if isinstance(answer, Outcome) else 0,
        date=datetime.now(UTC).date().isoformat(),
    )
    records = read_records(instances.best_known)
    old = records.get(name)
    if old is not None and old.digest != new.digest:
        old = None  # of another request
    best = new if old is None else merged(old, new)
    if best == old:
        return best, False
    if old is None or is_better(new.levels, old.levels):
        path = instances.solution(name)
        path.parent.mkdir(exist_ok=True, parents=True)
        save(placement, path)
    records[name] = best
    write_atomic(instances.best_known, "".join(f"{to_json(records[key])}\n" for key in sorted(records)))
    return best, True


def check(instances: Instances, record: Record) -> Iterator[str]:
    """Yield what is wrong with a record: nothing where its solution keeps every rule and has the values it says.

    Costs about as much as measuring the placement; no bound is proven again.
    """
    if record.instance not in instances.names():
        yield "no such instance"
        return
    request = instances.load(record.instance)
    if digest_of(request) != record.digest:
        yield "the instance has changed since"
        return
    if not instances.solution(record.instance).exists():
        yield "its solution is missing"
        return
    placement = load_placement(instances.solution(record.instance))
    fabric = build_fabric(request.fabric, request.nodes)
    yield from (str(violation) for violation in verify(request, placement, fabric)[:3])
    values = values_of_levels(request.objective, measure(request, placement, fabric))
    if list(values) != [level.name for level in record.levels]:
        yield f"levels {[level.name for level in record.levels]}, of the objective {list(values)}"
        return
    for level in record.levels:
        if level.value != values[level.name]:
            yield f"{level.name} is {level.value}, of the solution {values[level.name]}"
        if refuted(level.sense, level.bound, level.value):
            yield f"{level.name}: bound {level.bound} is beaten by the value {level.value}"


def merged(old: Record, new: Record) -> Record:
    """Return the better of two records of one request, each bound the best that holds for it.

    Raises InputError where a bound of one is beaten by the solution of the other.
    """
    better, other = (new, old) if is_better(new.levels, old.levels) else (old, new)
    levels = best_levels(better.levels, other.levels, place=better.instance)
    if levels == better.levels:
        return better
    return better.model_copy(update={"levels": levels, "date": new.date})


def best_levels(
    better: Sequence[LevelValue], other: Sequence[LevelValue], *, place: str = ""
) -> tuple[LevelValue, ...]:
    """Return the levels of the better answer with the bounds of the other where they hold for it and say more."""
    found = list(better)
    for i, (ours, theirs) in enumerate(zip(better, other, strict=True)):
        for bound in (ours, theirs):
            for value in (ours.value, theirs.value):
                if refuted(ours.sense, bound.bound, value):
                    raise InputError(
                        f"the bound {bound.bound} of {ours.name} ({bound.bound_source}) is beaten by a verified "
                        f"solution of {value}",
                        place=place,
                        way_out="one of them is of another request, or a bound is wrong: report it",
                    )
        if theirs.bound is not None and (
            ours.bound is None or (theirs.bound < ours.bound if ours.sense == "max" else theirs.bound > ours.bound)
        ):
            found[i] = ours.model_copy(update={"bound": theirs.bound, "bound_source": theirs.bound_source})
        if ours.value != theirs.value:
            break
    return tuple(found)


def is_better(levels: Sequence[LevelValue], than: Sequence[LevelValue]) -> bool:
    """Return whether values are better on the first level that differs."""
    for ours, theirs in zip(levels, than, strict=True):
        if ours.value != theirs.value:
            return (ours.value > theirs.value) == (ours.sense == "max")
    return False


def refuted(sense: str, bound: int | None, value: int) -> bool:
    """Return whether a value is better than a bound says can be."""
    return bound is not None and (value > bound if sense == "max" else value < bound)


def _level(name: str, value: int, claimed: LevelValue | None) -> LevelValue:
    sense = "max" if name.startswith("admitted[") else "min"
    bound = None if claimed is None else claimed.bound
    if refuted(sense, bound, value):
        raise InputError(f"the bound {bound} of {name} is beaten by the placement's own {value}")
    level = {"name": name, "sense": sense, "value": value, "bound": bound}
    return parse(LevelValue, level if claimed is None else {**level, "bound_source": claimed.bound_source})


def outcome_or_placement(path: str | Path) -> Outcome | Placement:
    """Return the outcome in a file, or the placement where it holds no more."""
    source = Path(path)
    data = load_data(read_text(source), source.name)
    if isinstance(data, dict) and "status" in data:
        return parse(Outcome, data, place=source.name)
    return load_placement(source)
