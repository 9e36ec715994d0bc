"""The node takes such pods at all."""

from __future__ import annotations

from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars


@CONSTRAINTS.register("eligible")
def eligible(v: Vars) -> None:
    """No pod on a node that does not suit it. Most programs have no variable there and need no row."""
    if v.everywhere:
        for k, pods in enumerate(v.pods):
            closed = v.excluded(k, window=False)
            for n, var in pods.items():
                if closed[n]:
                    v.forbid(f"eligible_{k}_{n}", {var: 1})
