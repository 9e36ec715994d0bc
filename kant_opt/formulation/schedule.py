"""The neutral scheduling program: when does each activity start, where activities share resources in whole units?

It knows no solver, no nodes and no jobs. Time is whole and starts at 0; windows are half open, [start, end).
The resource-constrained project scheduling problem with several modes, calendars and start costs
(Brucker et al., Eur. J. Oper. Res. 112 (1999), doi:10.1016/S0377-2217(98)00204-5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

Demand = Mapping[int, int]
"""Index of a resource -> units taken while the activity runs."""


@dataclass(frozen=True)
class Busy:
    """`amount` units of a resource are not there in [start, end); `end` None: for ever."""

    start: int
    end: int | None
    amount: int


@dataclass(frozen=True)
class Resource:
    """Units that activities share, less those that are busy."""

    name: str
    capacity: int
    busy: tuple[Busy, ...] = ()

    @cached_property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """(time, units free from then on), times rising from 0; never below 0 units."""
        changes: dict[int, int] = {0: 0}
        for busy in self.busy:
            for time, amount in ((busy.start, busy.amount), (busy.end, -busy.amount)):
                if time is not None:
                    changes[max(0, time)] = changes.get(max(0, time), 0) + amount
        times = sorted(changes)
        used = accumulate(changes[time] for time in times)
        return tuple((time, max(0, self.capacity - taken)) for time, taken in zip(times, used, strict=True))


@dataclass(frozen=True)
class Activity:
    """Runs once, for `duration`, without a break, in one of its modes."""

    name: str
    duration: int
    modes: tuple[Demand, ...]
    """What it takes, one of these: the same work done in one place or in another."""
    release: int = 0
    latest: int | None = None
    """Latest start; None: any."""
    after: tuple[int, ...] = ()
    """Indices of activities that have to end before it starts."""


@dataclass(frozen=True)
class Goal:
    """An objective level, to be minimised: the last end, or the sum of weight x max(0, start - since)."""

    name: str
    costs: tuple[tuple[int, int], ...] | None = None
    """(weight, since) of every activity, weights not below 0; None: the makespan."""


@dataclass(frozen=True)
class Schedule:
    """A start and the index of a mode for every activity."""

    starts: tuple[int, ...]
    modes: tuple[int, ...]


@dataclass(frozen=True)
class ScheduleProgram:
    """Activities on resources, goals in order: an earlier goal counts more than all later ones together.

    >>> pool = Resource("nodes", 4, (Busy(0, 10, 2),))
    >>> wide, slim = Activity("wide", 5, ({0: 3},)), Activity("slim", 5, ({0: 2},))
    >>> program = ScheduleProgram((pool,), (wide, slim), (Goal("makespan"),))
    >>> good = Schedule((10, 0), (0, 0))
    >>> list(program.broken(good)), program.value(program.goals[0], good)
    ([], 15)
    """

    resources: tuple[Resource, ...]
    activities: tuple[Activity, ...]
    goals: tuple[Goal, ...]

    def value(self, goal: Goal, schedule: Schedule) -> int:
        """Return what `goal` comes to."""
        if goal.costs is None:
            ends = (start + a.duration for start, a in zip(schedule.starts, self.activities, strict=True))
            return max(ends, default=0)
        pairs = zip(goal.costs, schedule.starts, strict=True)
        return sum(weight * max(0, start - since) for (weight, since), start in pairs)

    def broken(self, schedule: Schedule) -> Iterator[str]:
        """Yield what does not hold, one sentence each. Costs a sort of the events per resource."""
        if not len(schedule.starts) == len(schedule.modes) == len(self.activities):
            yield f"{len(schedule.starts)} starts and {len(schedule.modes)} modes for {len(self.activities)} activities"
            return
        for activity, start, mode in zip(self.activities, schedule.starts, schedule.modes, strict=True):
            if not 0 <= mode < len(activity.modes):
                yield f"{activity.name} has no mode {mode}"
                return
            if start < activity.release:
                yield f"{activity.name} starts at {start}, before its release at {activity.release}"
            if activity.latest is not None and start > activity.latest:
                yield f"{activity.name} starts at {start}, after {activity.latest}"
            for i in activity.after:
                if start < (end := schedule.starts[i] + self.activities[i].duration):
                    yield f"{activity.name} starts at {start}, before {self.activities[i].name} ends at {end}"
        for r, resource in enumerate(self.resources):
            yield from self._overuse(r, resource, schedule)

    def _overuse(self, r: int, resource: Resource, schedule: Schedule) -> Iterator[str]:
        changes: dict[int, int] = {}
        for activity, start, mode in zip(self.activities, schedule.starts, schedule.modes, strict=True):
            if activity.duration and (amount := activity.modes[mode].get(r, 0)):
                changes[start] = changes.get(start, 0) + amount
                changes[start + activity.duration] = changes.get(start + activity.duration, 0) - amount
        free = dict(resource.steps)
        used, room = 0, resource.capacity
        for time in sorted(changes.keys() | free.keys()):
            used, room = used + changes.get(time, 0), free.get(time, room)
            if used > max(0, room):
                yield f"{resource.name} has {room} units at {time}, and {used} are used"
                return

    @cached_property
    def horizon(self) -> int:
        """A time by which some best schedule has ended.

        After the last release and the last change of any resource at least one activity runs at every instant of a
        schedule in which nothing can start earlier, and one of those is best: no goal rewards waiting.
        """
        last = max((activity.release for activity in self.activities), default=0)
        last = max([last, *(resource.steps[-1][0] for resource in self.resources)])
        return last + sum(activity.duration for activity in self.activities)

    @cached_property
    def in_order(self) -> tuple[int, ...]:
        """The activities, each behind those that it comes after. Raises ValueError where that is a circle."""
        open_before = [len(set(activity.after)) for activity in self.activities]
        ready = [i for i, count in enumerate(open_before) if not count]
        for i in ready:
            for k in self.successors[i]:
                open_before[k] -= 1
                if not open_before[k]:
                    ready.append(k)  # the list grows while it is walked
        if len(ready) < len(self.activities):
            first = next(a.name for a, count in zip(self.activities, open_before, strict=True) if count)
            raise ValueError(f"{first} comes after itself")
        return tuple(ready)

    @cached_property
    def successors(self) -> Sequence[Sequence[int]]:
        """For every activity those that come after it."""
        found: list[list[int]] = [[] for _ in self.activities]
        for i, activity in enumerate(self.activities):
            for before in set(activity.after):
                found[before].append(i)
        return found
