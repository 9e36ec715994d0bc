"""What no schedule can beat, from durations and areas alone and without any solver, in exact numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from itertools import pairwise
from math import ceil

from kant_opt.formulation.schedule import Activity, Goal, Resource, ScheduleProgram


@dataclass(frozen=True)
class ScheduleBound:
    """A proven value and how it was proven."""

    value: int
    source: str


def schedule_bound(program: ScheduleProgram, goal: Goal) -> ScheduleBound:
    """Return the best of the bounds below; the first of equals. Costs a sort per resource.

    Raises ValueError where an activity fits at no time, whatever the others do.

    >>> nodes = Resource("nodes", 4)
    >>> gangs = tuple(Activity(f"gang {i}", 10, ({0: 3},)) for i in range(4))
    >>> schedule_bound(ScheduleProgram((nodes,), gangs, ()), Goal("makespan"))
    ScheduleBound(value=30, source='energy')
    """
    heads = earliest_starts(program)
    bounds = _makespan(program, heads) if goal.costs is None else _start_costs(program, goal.costs, heads)
    return max(bounds, key=lambda bound: bound.value)


# -- each activity by itself -----------------------------------------------------------------------


def earliest_starts(program: ScheduleProgram) -> list[int]:
    """Return for each activity a time before which it cannot start: release, those before it, what is busy."""
    heads = [0] * len(program.activities)
    for i in program.in_order:
        activity = program.activities[i]
        ready = max([activity.release, *(heads[k] + program.activities[k].duration for k in activity.after)])
        found = [_alone(program.resources, activity, mode, ready) for mode in range(len(activity.modes))]
        times = [time for time in found if time is not None]
        if not times:
            raise ValueError(f"{activity.name} fits at no time")
        heads[i] = min(times)
    return heads


def _alone(resources: Sequence[Resource], activity: Activity, mode: int, ready: int) -> int | None:
    """Return the earliest start from `ready` on if nothing else were scheduled; None where there is none."""
    time, moved = ready, True
    while moved:
        moved = False
        for r, amount in activity.modes[mode].items():
            start = _window(resources[r], amount, activity.duration, time)
            if start is None:
                return None
            if start > time:
                time, moved = start, True
    return time


def _window(resource: Resource, amount: int, duration: int, ready: int) -> int | None:
    """Return the first time from `ready` on with `amount` free for `duration`."""
    start: int | None = ready
    ends = [time for time, _ in resource.steps[1:]]
    for (begin, free), end in zip(resource.steps, [*ends, None], strict=True):
        if end is not None and end <= ready:
            continue
        if start is not None and start + duration <= begin and start < begin:
            return start
        if free < amount and duration:
            start = None
        elif start is None:
            start = begin
    return start


def tails_of(program: ScheduleProgram) -> list[int]:
    """Return for each activity the time that has to pass between its end and the makespan."""
    tails = [0] * len(program.activities)
    for i in reversed(program.in_order):
        tails[i] = max((program.activities[k].duration + tails[k] for k in program.successors[i]), default=0)
    return tails


# -- makespan --------------------------------------------------------------------------------------


def _makespan(program: ScheduleProgram, heads: Sequence[int]) -> Iterator[ScheduleBound]:
    tails = tails_of(program)
    through = [head + a.duration + tail for head, a, tail in zip(heads, program.activities, tails, strict=True)]
    chained = any(activity.after for activity in program.activities)
    yield ScheduleBound(max(through, default=0), "critical path" if chained else "longest job")
    for r, resource in enumerate(program.resources):
        work = [(heads[i], tails[i], e) for i, a in enumerate(program.activities) if (e := _energy(a, r))]
        yield ScheduleBound(max(_areas(resource, work), default=0), "energy")


def _energy(activity: Activity, r: int) -> int:
    """Return units x time of resource `r` that the activity takes in any mode."""
    return activity.duration * min(mode.get(r, 0) for mode in activity.modes)


def _areas(resource: Resource, work: list[tuple[int, int, int]]) -> Iterator[int]:
    """Yield bounds of the makespan from (head, tail, energy) of activities.

    All with heads from h on need their energy between h and the makespan less the least of their tails; and all with
    tails from q on need theirs between the least of their heads and the makespan less q.
    """
    for by_head in (True, False):
        ranked = sorted(work, key=lambda w: -w[0 if by_head else 1])
        energy, head, tail = 0, ranked[0][0] if ranked else 0, ranked[0][1] if ranked else 0
        for i, (h, q, e) in enumerate(ranked):
            energy, head, tail = energy + e, min(head, h), min(tail, q)
            last_of_its_kind = i + 1 == len(ranked) or ranked[i + 1][0 if by_head else 1] != (h if by_head else q)
            if last_of_its_kind and (end := _filled(resource, head, energy)) is not None:
                yield end + tail


def _filled(resource: Resource, start: int, energy: int) -> int | None:
    """Return the first whole time by which `energy` fits from `start` on; None if never."""
    for (begin, free), (end, _) in pairwise(resource.steps):
        begin = max(begin, start)
        if end > begin:
            if free * (end - begin) >= energy:
                return begin + -(-energy // free) if energy else begin
            energy -= free * (end - begin)
    begin, free = resource.steps[-1]
    return max(begin, start) + -(-energy // free) if free else None


# -- costs of starts -------------------------------------------------------------------------------


def _start_costs(
    program: ScheduleProgram, costs: Sequence[tuple[int, int]], heads: Sequence[int]
) -> Iterator[ScheduleBound]:
    alone = [weight * max(0, head - since) for (weight, since), head in zip(costs, heads, strict=True)]
    yield ScheduleBound(sum(alone), "earliest starts")
    for r, resource in enumerate(program.resources):
        sharing = [i for i, a in enumerate(program.activities) if costs[i][0] and _energy(a, r)]
        if not sharing:
            continue
        least = _mean_busy_times(program, r, resource, [(i, costs[i][0], heads[i]) for i in sharing])
        if least is not None:
            least += sum(alone) - sum(alone[i] + costs[i][0] * costs[i][1] for i in sharing)
            yield ScheduleBound(ceil(least), "energy")


def _mean_busy_times(
    program: ScheduleProgram, r: int, resource: Resource, work: list[tuple[int, int, int]]
) -> Fraction | None:
    """Return a bound of the sum of weight x start over (activity, weight, head); None where it never ends.

    An activity starts half its duration before its mean busy time. Their weighted sum is least where the whole
    resource goes to the released activity of most weight per unit of energy, others interrupted: Goemans' bound
    (SODA 1997; Goemans et al., SIAM J. Discrete Math. 15 (2002), doi:10.1137/S089548019936223X), here for a capacity
    that changes.
    """
    left = {i: Fraction(_energy(program.activities[i], r)) for i, _, _ in work}
    rate = {i: Fraction(weight, _energy(program.activities[i], r)) for i, weight, _ in work}
    total = -sum((Fraction(weight * program.activities[i].duration, 2) for i, weight, _ in work), Fraction(0))
    arrivals = sorted((head, i) for i, _, head in work)
    events = [*sorted({head for head, _ in arrivals} | {time for time, _ in resource.steps}), None]
    free_from = dict(resource.steps)
    waiting: list[tuple[Fraction, int]] = []
    free, seen = 0, 0
    for begin, end in pairwise(events):
        assert begin is not None
        free = free_from.get(begin, free)
        while seen < len(arrivals) and arrivals[seen][0] <= begin:
            heappush(waiting, (-rate[arrivals[seen][1]], arrivals[seen][1]))
            seen += 1
        time = Fraction(begin)
        while waiting and free and (end is None or time < end):
            i = waiting[0][1]
            until = time + left[i] / free
            if end is not None and until > end:
                until = Fraction(end)
            total += rate[i] * free * (until * until - time * time) / 2
            left[i] -= free * (until - time)
            time = until
            if not left[i]:
                heappop(waiting)
    return None if waiting else total
