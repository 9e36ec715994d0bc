"""The smallest changes that let a gang in on the cluster as it is after a placement, proven minimal or said not to be.

One function per kind of change. Each tries the change itself with the exact placer, so that what is reported works;
it is proven minimal where the next smaller change was tried and is proven not to work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kant_opt.backends import Placer
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.engine.fewest import fewest_jobs, fewest_nodes, fewest_openings
from kant_opt.engine.relaxed import minimum
from kant_opt.engine.what_if import WhatIf
from kant_opt.errors import InputError, UnknownName
from kant_opt.schema import Outcome, QuotaRaise, Relaxation, Request
from kant_opt.view import Quotas


def relaxations(request: Request, outcome: Outcome, job: str) -> tuple[Relaxation, ...]:
    """Return the smallest changes, one per kind, each of which alone lets in a job that `outcome` does not place.

    They refer to the cluster after the outcome's placement. Of a job in an all-or-none group they let in the group.
    Empty where no change of these kinds helps. Raises UnknownName for a job that the request does not have, InputError
    for one that is placed. Costs some dozens of placements of the gang, far fewer than a hundred on large clusters.

    >>> from kant_opt.engine import place
    >>> from kant_opt.testing.builders import gang, racks
    >>> request = racks("4,4|4,4", jobs=[gang("a", 3, 4, required_level="rack")])
    >>> [r.sentence for r in relaxations(request, place(request), "a")]
    ["drop the required level 'rack'", '1 pod fewer: 2 fit']
    """
    names = [j.name for j in request.jobs]
    if job not in names:
        raise UnknownName("job", job, names)
    if job not in {reason.job for reason in outcome.reasons} or outcome.placement is None:
        raise InputError(f"job {job!r} is placed, or has nothing to place", way_out="ask about a job with a reason")
    case = WhatIf(request, outcome.placement, job)
    fits = case.fits(case.request)
    if fits:
        text = "it fits as it is: place it again, with a later deadline or a higher limit"
        return (Relaxation(kind="retry", proven=True, sentence=text),)
    found: list[Relaxation] = []
    for search in _SEARCHES:
        found += search(case)
    if fits is None:  # whether no change at all would do is not known
        found = [relaxation.model_copy(update={"proven": False}) for relaxation in found]
    return tuple(found)


def _first(case: WhatIf, options: Sequence[Relaxation]) -> Iterator[Relaxation]:
    """Yield the first of the options, smallest change first, that lets the gang in."""
    proven = True
    for option in options:
        fits = case.try_(option)
        if fits:
            yield option.model_copy(update={"proven": proven})
            return
        proven = proven and fits is False


# -- rules of the job --------------------------------------------------------------------------------


def _level(case: WhatIf) -> Iterator[Relaxation]:
    named = {p.required_level for job in case.jobs for p in job.podsets} | {
        t.level for j in case.jobs for t in j.together
    }
    named |= {g.together_level for g in case.request.groups if not case.names.isdisjoint(g.jobs)}
    depths = [case.tree.depth(level) for level in named if level]
    options = [
        Relaxation(kind="level", proven=False, level=to, sentence=_moved("required level", named, to, case))
        for to in _out_from(case, depths)
    ]
    yield from _first(case, options)


def _slices(case: WhatIf) -> Iterator[Relaxation]:
    named = {piece.level for job in case.jobs for p in job.podsets for piece in p.slices}
    options = [
        Relaxation(kind="slices", proven=False, level=to, sentence=_moved("slices of level", named, to, case))
        for to in _out_from(case, [case.tree.depth(level) for level in named])
    ]
    yield from _first(case, options)


def _out_from(case: WhatIf, depths: Sequence[int]) -> list[str]:
    """Return the levels outside the innermost one given, from the inside out, and "" for none at all."""
    return [case.tree.level(depth) for depth in range(max(depths, default=0) - 1, 0, -1)] + [""] * bool(depths)


def _moved(what: str, levels: set[str | None] | set[str], to: str, case: WhatIf) -> str:
    inside = case.tree.depth(to) if to else 0
    moved = sorted((case.tree.depth(level), level) for level in levels if level and case.tree.depth(level) > inside)
    told = " and ".join(repr(level) for _, level in moved)
    return f"{what} {to!r} in place of {told}" if to else f"drop the {what} {told}"


def _spread(case: WhatIf) -> Iterator[Relaxation]:
    now = [s.max_per_domain for job in case.jobs for p in job.podsets for s in p.spread]
    if not now:
        return
    most = max(part.target + sum(part.living.values()) for part in case.gang.parts)

    def option(amount: int) -> Relaxation:
        text = f"allow {_many(amount, 'pod')} per domain where the spread allows fewer"
        return Relaxation(kind="spread", proven=False, amount=amount, sentence=text)

    yield from _least(case, min(now) + 1, most, option)


def _apart(case: WhatIf) -> Iterator[Relaxation]:
    named = {rule.level for job in case.jobs for rule in job.apart}
    named |= {job.exclusive_level for job in case.jobs if job.exclusive_level}
    if not named:
        return
    outermost = min(case.tree.depth(level) for level in named)
    inwards = [case.tree.level(depth) for depth in range(outermost + 1, case.tree.node_depth + 1)]
    options = [
        Relaxation(
            kind="apart", proven=False, level=to, sentence=f"keep pods apart, or domains to itself, by {to!r} only"
        )
        for to in inwards
    ]
    options.append(Relaxation(kind="apart", proven=False, sentence="drop what keeps it apart from others"))
    yield from _first(case, options)


def _span(case: WhatIf) -> Iterator[Relaxation]:
    if case.tree.fabric.separate_roots and not all(job.may_span_fabrics for job in case.jobs):
        text = "let it span fabrics that have no link between them"
        yield from _first(case, [Relaxation(kind="span", proven=False, sentence=text)])


# -- fewer pods --------------------------------------------------------------------------------------


def _pods(case: WhatIf) -> Iterator[Relaxation]:
    for job in case.jobs:
        for podset, part in ((p, part) for p in job.podsets for part in case.gang.parts if part.podset is p):
            alive, unit = sum(part.living.values()), part.unit
            smallest = (alive // unit + 1) * unit
            now = minimum(podset)
            sizes = range(smallest, now, unit)
            if not sizes or not part.least:
                continue
            whose = f" of podset {podset.name!r}" if len(job.podsets) > 1 else ""
            whose += f" of job {job.name!r}" if len(case.jobs) > 1 else ""

            def option(
                step: int, *, size: int = sizes[-1], unit: int = unit, now: int = now, alive: int = alive,
                whose: str = whose, name: str = job.name, podset_name: str = podset.name,
            ) -> Relaxation:  # fmt: skip
                kept = size - step * unit
                less, fit = now - kept, kept - alive
                text = f"{_many(less, 'pod')} fewer{whose}: {fit} {'fits' if fit == 1 else 'fit'}"
                if unit > 1:
                    text += f", in slices of {unit}"
                return Relaxation(
                    kind="pods", proven=False, podset=podset_name, amount=less, names=(name,), sentence=text
                )

            yield from _least(case, 0, len(sizes) - 1, option)


def _least(case: WhatIf, low: int, high: int, option: Callable[[int], Relaxation]) -> Iterator[Relaxation]:
    """Yield the least n in low .. high with which the gang fits; it also fits with any n above that."""
    best, proven = None, True
    while low <= high:
        middle = high if best is None else (low + high) // 2
        fits = case.try_(option(middle))
        if fits:
            best, high = middle, middle - 1
        elif best is None:
            return
        else:
            proven, low = fits is False, middle + 1
    if best is not None:
        yield option(best).model_copy(update={"proven": proven})


# -- quota -------------------------------------------------------------------------------------------


def _quota(case: WhatIf) -> Iterator[Relaxation]:
    """Place the gang without quotas and count what it exceeds: the same for all its placements where `is_exact`."""
    quotas = Quotas(case.cluster)
    if not quotas:
        return
    unlimited = Quotas(case.cluster)
    unlimited.caps = []
    gang = case.smallest_gang
    taken = Placer(case.free, EBinpack(), unlimited, case.request.limits.search_states)
    pods = taken.place(gang)
    if isinstance(pods, str):
        return
    taken.release(pods)
    before = [cap.usage for cap in quotas.caps]
    for t in pods:
        quotas.charge(t.part, t.node, t.pods)
    more: dict[tuple[str, str, str], int] = {}
    queues = {job.queue for job in case.jobs}
    for cap, used in zip(quotas.caps, before, strict=True):
        over = cap.usage - cap.cap
        if cap.usage > used and over > 0:
            queue = min(queues & cap.queues)
            key = (queue, cap.resource, cap.pool)
            more[key] = max(more.get(key, 0), -(-over // (1000 if cap.resource == "gpu" else 1)))
    raises = tuple(
        QuotaRaise.model_validate({"queue": queue, "resource": resource, "pool": pool, "more": amount})
        for (queue, resource, pool), amount in sorted(more.items())
    )
    told = " and ".join(
        f"{r.more:,} {r.resource}{f' in pool {r.pool!r}' if r.pool else ''} for queue {r.queue!r}" for r in raises
    )
    exact = len(queues) == 1 and all(quotas.is_exact(part) and not part.shape.mib for part in gang.parts)
    for r in _first(case, [Relaxation(kind="quota", proven=False, quotas=raises, sentence=f"more quota: {told}")]):
        yield r.model_copy(update={"proven": exact})


# -- the cluster -------------------------------------------------------------------------------------


def _many(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


_SEARCHES: tuple[Callable[[WhatIf], Iterator[Relaxation]], ...] = (
    _level,
    _slices,
    _spread,
    _apart,
    _span,
    _pods,
    _quota,
    fewest_openings,
    fewest_jobs,
    fewest_nodes,
)
