"""Term `traffic`: what the gangs' communication across switches costs."""

from __future__ import annotations

from kant_opt.formulation.program import Sense
from kant_opt.formulation.registry import TERMS
from kant_opt.formulation.vars import Terms, Values, Vars
from kant_opt.view import domain_counts


@TERMS.register("traffic")
def traffic(v: Vars) -> dict[str, tuple[Terms, int]]:
    """Return weight x (domains used - 1) of rings and weight x pairs apart of all-to-all jobs, over all levels."""
    total: Terms = {}
    levels = v.tree.levels[:-1]
    weights = v.cluster.request.objective.weights_of(levels)
    for name, job in v.jobs.items():
        for level in levels:
            weight = weights[level]
            if not weight or job.communication == "none" or v.is_single(name):
                continue
            cost = _ring if job.communication == "ring" else _pairs_apart
            for var, coefficient in cost(v, name, v.tree.depth(level)).items():
                total[var] = total.get(var, 0) + weight * coefficient
    return {"traffic": (total, 0)}


def _ring(v: Vars, job: str, depth: int) -> Terms:
    """Domains used less one, where placed: domains of living pods are used as soon as the job is placed."""
    parts, alive = v.parts_of[job], v.domains(v.living(job), depth)
    new = [d for d in v.new_in(parts, depth) if d not in alive]
    if len(new) + len(alive) < 2:
        return {}
    return {v.placed[job]: len(alive) - 1, **{v.present(parts, depth, d): 1 for d in new}}


def _pairs_apart(v: Vars, job: str, depth: int) -> Terms:
    """All pairs less those inside one domain.

    Pods are counted in unary, n = b_1 + b_2 + .. with b_i >= b_(i+1), so that n (n - 1) / 2 = sum of (i - 1) b_i.
    """
    parts, placed = v.parts_of[job], v.placed[job]
    alive = domain_counts(v.tree, v.living(job), depth).tolist()
    new = v.new_in(parts, depth)
    everywhere: Terms = {var: 1 for terms in new.values() for var in terms}
    total = _pairs(v, f"pairs_{placed}_{depth}", parts, everywhere, sum(alive), placed)
    for d, here in enumerate(alive):
        if here or d in new:
            inside = _pairs(v, f"pairs_{placed}_{depth}_{d}", parts, new.get(d, {}), here, placed)
            for var, pairs in inside.items():
                total[var] = total.get(var, 0) - pairs
    return total


def _pairs(v: Vars, name: str, parts: tuple[int, ...], new: Terms, alive: int, placed: int) -> Terms:
    """Return the pairs among the new pods and the `alive` ones (where placed) as terms."""
    fixed = sum(v.parts[k].target for k in parts)
    if not new or (len(parts) and _all_of(v, parts, new) and not v.everywhere):
        count = alive + (fixed if new else 0)
        return {placed: count * (count - 1) // 2}

    def pods(values: Values) -> int:
        return sum(values[i] for i in new) + alive * values[placed]

    def at_least(i: int) -> int:
        return v.derived(f"{name}_{i}", 1, lambda values: int(pods(values) >= i))

    most = v.most_of(parts, new) + alive
    unary = [at_least(i) for i in range(1, most + 1)]
    with v.program.part(""):
        v.program.row(f"{name}_count", {**new, placed: alive, **dict.fromkeys(unary, -1)}, Sense.EQ, 0)
        for i in range(len(unary) - 1):
            v.program.row(f"{name}_order_{i}", {unary[i + 1]: 1, unary[i]: -1}, Sense.LE, 0)
    return {var: i for i, var in enumerate(unary) if i}


def _all_of(v: Vars, parts: tuple[int, ...], new: Terms) -> bool:
    """Return whether `new` are all pods of rigid parts: then their number is known where the job is placed."""
    rigid = all(v.parts[k].podset.min_count is None for k in parts)
    return rigid and len(new) == sum(len(v.pods[k]) for k in parts)
