"""Not too many pods in one place."""

from __future__ import annotations

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars
from kant_opt.view import domain_counts


@CONSTRAINTS.register("spread")
def spread(v: Vars) -> None:
    """In each domain of the spread's level: new + living placed <= max_per_domain."""
    for k, part in enumerate(v.parts):
        for depth, most in part.spread:
            alive = domain_counts(v.tree, part.living, depth).tolist()
            new = v.new_in((k,), depth)
            for d in sorted({*new, *v.domains(part.living, depth)}):
                terms = {**new.get(d, {}), v.placed[part.job.name]: alive[d]}
                v.program.row(f"spread_{k}_{depth}_{d}", terms, Sense.LE, most)
