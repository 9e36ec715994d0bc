"""What queues and their cohorts may use."""

from __future__ import annotations

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Terms, Vars
from kant_opt.view import Quotas


@CONSTRAINTS.register("quota")
def quota(v: Vars) -> None:
    """Per cap: what new pods of its queues add in its pool <= what the running ones leave of it, and at least 0."""
    for c, cap in enumerate(Quotas(v.cluster).caps):
        terms: Terms = {}
        for k, part in enumerate(v.parts):
            if part.job.queue in cap.queues:
                for n, var in v.pods[k].items():
                    if cap.pool in ("", _charged_pool(v, k, n)) and (amount := _amount(v, k, n, cap.resource)):
                        terms[var] = amount
        if terms:
            v.program.row(f"quota_{c}", terms, Sense.LE, max(0, cap.cap - cap.usage))


def _charged_pool(v: Vars, k: int, node: int) -> str:
    pools = v.cluster.nodes[node].pools
    return next((pool for pool in v.parts[k].podset.pools if pool in pools), pools[0])


def _amount(v: Vars, k: int, node: int, resource: str) -> int:
    if resource == "gpu":
        return v.gpu_milli(k, node)
    shape = v.parts[k].shape
    return shape.cpu if resource == "cpu_milli" else shape.memory
