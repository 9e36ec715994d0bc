"""The text of a twin and of its data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from kant_opt.errors import InputError
from kant_opt.fabric import Fabric
from kant_opt.formulation.minizinc.classes import alike_nodes, check_classes_are_exact, class_values
from kant_opt.formulation.minizinc.goals import goals_of
from kant_opt.formulation.minizinc.tables import Table, Tables, Value
from kant_opt.schema import Request
from kant_opt.shipped import shipped

Form = Literal["per_node", "classes"]
"""Which twin: the one with every node, exact for every request, or the one with classes of alike nodes."""

_INCLUDE = 'include "rules.mzn";'
_LARGEST = 2**31 - 3  # the largest number that Gecode holds


def goals(request: Request) -> tuple[str, ...]:
    """Return the names of the objective levels, in their order, as `Outcome.levels` has them."""
    return tuple(goal.name for goal in goals_of(request))


def to_mzn(
    request: Request, fabric: Fabric, *, form: Form = "per_node", goal: int = 0, kept: Sequence[int] = ()
) -> str:
    """Return twin and data as one MiniZinc text that includes no other file; raises as `to_dzn`."""
    twin, rules = ((shipped("models") / f"{name}.mzn").read_text(encoding="utf-8") for name in (form, "rules"))
    data = to_dzn(request, fabric, form=form, goal=goal, kept=kept)
    return f"{twin.replace(_INCLUDE, rules)}\n% {'-' * 64} data\n{data}"


def to_dzn(
    request: Request, fabric: Fabric, *, form: Form = "per_node", goal: int = 0, kept: Sequence[int] = ()
) -> str:
    """Return the data of a request for `models/per_node.mzn` or `models/classes.mzn`.

    `goal` is the position of the level to optimise, `kept` are values that the levels before may not fall behind.
    Raises InputError where the twin has no such term, would not be exact, or its engine cannot hold a number.
    Its size is podsets times nodes, times the number of quotas.
    """
    tables = Tables(request, fabric)
    if form == "classes":
        check_classes_are_exact(request, fabric)
        cells = alike_nodes(tables)
        values = tables.shared(cells) | class_values(tables, cells)
    else:
        cells = tuple((name,) for name in fabric.nodes)
        values = tables.shared(cells) | tables.of_nodes()
    values |= {"goal": goal + 1, "kept": [*kept]}
    return (
        "\n".join([*_heading(tables, cells), *(f"{name} = {_written(name, v)};" for name, v in values.items())]) + "\n"
    )


def _heading(tables: Tables, cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield comments that tell which number is what. JSON keeps odd names inside their line."""
    for i, cell in enumerate(cells, start=1):
        yield f"% cell {i}: {json.dumps(cell)}"
    for i, (job, podset) in enumerate(tables.podsets, start=1):
        yield f"% podset {i}: {json.dumps((job.name, podset.name))}"
    for i, goal in enumerate(goals_of(tables.request), start=1):
        yield f"% goal {i}: {goal.name}"


def _written(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return _number(name, value)
    if isinstance(value, Table):
        sets = ", ".join(f"1..{size}" for size in value.sizes)
        return f"array{len(value.sizes)}d({sets}, {_written(name, value.numbers)})"
    inside = ", ".join(_written(name, part) for part in (sorted(value) if isinstance(value, set) else value))
    return f"{{{inside}}}" if isinstance(value, set) else f"[{inside}]"


def _number(name: str, value: int) -> str:
    if abs(value) > _LARGEST:
        raise InputError(
            f"{name} holds {value}, more than MiniZinc's engines can",
            way_out="ask for less of it, or in rounder numbers: data are divided by what divides all of them",
        )
    return str(value)
