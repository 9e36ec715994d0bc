"""All pods or none, of one job and of a group."""

from __future__ import annotations

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import CONSTRAINTS
from kant_opt.formulation.vars import Vars
from kant_opt.view import Part


@CONSTRAINTS.register("gang")
def gang(v: Vars) -> None:
    """L placed <= sum over nodes of pods <= T placed; the jobs of a group with `all_or_none` are placed as one."""
    for k, part in enumerate(v.parts):
        placed = v.placed[part.job.name]
        pods = dict.fromkeys(v.pods[k].values(), 1)
        least = _least(part)
        if least == part.target:  # also of jobs alike: so many pods for each that is placed
            v.program.row(f"gang_{k}", {**pods, placed: -least}, Sense.EQ, 0)
            continue
        v.program.row(f"gang_most_{k}", {**pods, placed: -part.target}, Sense.LE, 0)
        v.program.row(f"gang_least_{k}", {**pods, placed: -least}, Sense.GE, 0)
    waiting = {part.job.name for part in v.parts if part.target}
    for g, group in enumerate(v.cluster.request.groups):
        if not group.all_or_none:
            continue
        missing = [name for name in group.jobs if name in waiting]
        for name in group.jobs:
            for other in missing:  # a job with nothing to place counts as admitted, but drags the others along
                if name != other and name in v.placed:
                    row = {v.placed[name]: 1, v.placed[other]: -1}
                    v.program.row(f"group_{g}_{v.placed[name]}_{v.placed[other]}", row, Sense.LE, 0)


def _least(part: Part) -> int:
    """Return the least new pods that the rule asks for; `Part.least` rounds up to whole slices, which `slice` does."""
    podset = part.podset
    if podset.min_count is None:
        return part.target
    return max(0, min(podset.min_count, podset.count - podset.finished) - sum(part.living.values()))
