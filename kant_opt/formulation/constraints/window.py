"""Reserved nodes stay free for whom they are reserved."""

from __future__ import annotations

from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars


@CONSTRAINTS.register("window")
def window(v: Vars) -> None:
    """No pod on a node whose reservation overlaps the job's run. Most programs have no variable there."""
    if v.everywhere and v.cluster.request.reservations:
        for k, pods in enumerate(v.pods):
            closed = v.excluded(k, window=True)
            for n, var in pods.items():
                if closed[n]:
                    v.forbid(f"window_{k}_{n}", {var: 1})
