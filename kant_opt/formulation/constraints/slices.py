"""Slices stay whole: the file is called `slices` because `slice` is a builtin."""

from __future__ import annotations

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Terms, Values, Vars
from kant_opt.view import domain_counts


@CONSTRAINTS.register("slice")
def slices(v: Vars) -> None:
    """In each domain of the slice's level: new + living placed = size x slices, an integer."""
    for k, part in enumerate(v.parts):
        for depth, size in part.slices:
            alive = domain_counts(v.tree, part.living, depth).tolist()
            new = v.new_in((k,), depth)
            for d in sorted({*new, *v.domains(part.living, depth)}):
                if size > 1:
                    _whole(v, f"slice_{k}_{depth}_{d}", new.get(d, {}), alive[d], v.placed[part.job.name], size)


def _whole(v: Vars, name: str, new: Terms, alive: int, placed: int, size: int) -> None:
    def slices_of(values: Values) -> int:
        return (sum(values[i] for i in new) + alive * values[placed]) // size

    most = (sum(v.program.upper[i] for i in new) + alive) // size
    count = v.derived(f"{name}_count", most, slices_of)
    v.program.row(name, {**new, placed: alive, count: -size}, Sense.EQ, 0)
