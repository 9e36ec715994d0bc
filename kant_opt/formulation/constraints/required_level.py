"""A podset stays in one domain."""

from __future__ import annotations

from kant_opt.formulation.constraints._one_domain import one_domain
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars


@CONSTRAINTS.register("required_level")
def required_level(v: Vars) -> None:
    """At most one domain of the required level holds pods of the podset."""
    for k, part in enumerate(v.parts):
        if part.required:
            one_domain(v, f"required_{k}", part.required, (k,), part.living, [v.placed[part.job.name]])
