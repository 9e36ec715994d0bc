"""Term `admitted`: GPUs of the new pods, per priority class."""

from __future__ import annotations

from kant_opt.formulation.registry import TERMS
from kant_opt.formulation.vars import Terms, Vars


@TERMS.register("admitted")
def admitted(v: Vars) -> dict[str, tuple[Terms, int]]:
    """Return thousandths of GPUs per class of the request's jobs, highest first; a pod without GPUs counts 1."""
    found: dict[int, Terms] = {}
    for priority in sorted({job.priority for job in v.cluster.request.jobs}, reverse=True):
        found[priority] = {}
    for k, part in enumerate(v.parts):
        terms = found[part.job.priority]
        for n, var in v.pods[k].items():
            terms[var] = max(1, v.gpu_milli(k, n))  # a pod without GPUs is worth one thousandth
    return {f"admitted[{priority}]": (terms, 0) for priority, terms in found.items()}
