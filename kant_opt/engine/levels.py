"""The objective levels of an answer: its values beside the best bounds that anybody proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from kant_opt.backends import Answer, Proof
from kant_opt.bounds import Bound
from kant_opt.schema import Certificate, LevelValue, Objective, Outcome


def values_of_levels(objective: Objective, terms: Mapping[str, int]) -> dict[str, int]:
    """Return the value of every objective level, in order, from the values of all terms."""
    if not objective.weights:
        return {
            name: value
            for term in objective.order
            for name, value in terms.items()
            if name == term or name.startswith(f"{term}[")
        }
    total = 0
    for term, weight in objective.weights.items():
        amount = sum(value for name, value in terms.items() if name == term or name.startswith(f"{term}["))
        total += -weight * amount if term == "admitted" else weight * amount
    return {"weighted": total}


def level_values(
    values: Mapping[str, int], proof: Proof, answer: Answer
) -> tuple[tuple[LevelValue, ...], Certificate | None]:
    """Return every objective level with its best bound, and the certificate where that of traffic is by rents."""
    levels = []
    for name, value in values.items():
        bounds = [found[name] for found in (proof.bounds, answer.bounds) if name in found]
        levels.append(_level(name, value, bounds))
    by_rents = any(level.name == "traffic" and level.bound_source == "rents" for level in levels)
    return tuple(levels), proof.certificate if by_rents else None


def bounds_of(outcome: Outcome) -> dict[str, Bound]:
    """Return the bounds of an outcome's levels."""
    return {level.name: Bound(level.bound, level.bound_source) for level in outcome.levels if level.bound is not None}


def _level(name: str, value: int, bounds: Sequence[Bound]) -> LevelValue:
    """Return the level with its best bound, of equal ones the first."""
    sense: Literal["max", "min"] = "max" if name.startswith("admitted[") else "min"
    best = None
    if bounds:
        best = (min if sense == "max" else max)(bounds, key=lambda b: b.value)
    return LevelValue(
        name=name,
        sense=sense,
        value=value,
        bound=None if best is None else best.value,
        bound_source="" if best is None else best.source,
    )
