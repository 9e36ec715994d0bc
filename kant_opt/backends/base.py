"""What a backend is: it says what it can do, answers, and claims nothing."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from kant_opt.backends.placer import Failure, Taken
from kant_opt.backends.rents import Rents
from kant_opt.backends.solver import News, Stop
from kant_opt.bounds import Bound
from kant_opt.registry import Registry
from kant_opt.schema import Limits
from kant_opt.view import Cluster, Free, Gang, Quotas

log = logging.getLogger("kant_opt")

Order = Literal["batch", "online"]
"""batch: by priority, then most GPUs first. online: as given, each gang before the next is looked at."""


@dataclass(frozen=True)
class Event:
    """News while an answer is looked for: a better value of an objective level, or a better bound of it.

    Told as it is found, before anything is verified: only the outcome is a claim.
    """

    source: str
    """Who found it: a backend, or what proved a bound."""
    level: str
    kind: News
    value: int


OnEvent = Callable[[Event], None]


@dataclass
class Answer:
    """What a backend found; the engine verifies, measures and explains it."""

    taken: list[tuple[Gang, list[Taken]]] = field(default_factory=list)
    failed: list[tuple[Gang, Failure]] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    """What the backend proved, per objective level up to the first whose value is not proven."""
    limit_hit: str = ""
    formulation: str = ""
    """The integer program that was solved, in a few words."""
    notes: list[str] = field(default_factory=list)


class Deadline:
    """A point on the monotonic clock, or the moment when somebody asks to stop; without either it never passes."""

    def __init__(self, after_ms: int | None, stop: Stop | None = None) -> None:
        self.at = None if after_ms is None else monotonic() + after_ms / 1000
        self.stop = stop or Stop()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until then, not below 0; None without a deadline."""
        if self.stop.asked:
            return 0.0
        return None if self.at is None else max(0.0, self.at - monotonic())

    @property
    def passed(self) -> bool:
        return self.seconds_left == 0

    @property
    def late(self) -> bool:
        """Whether the time is over; that somebody asks to stop does not count."""
        return self.at is not None and monotonic() >= self.at

    def earlier(self, seconds: float) -> Deadline:
        """Return the deadline that leaves so many seconds until this one, or half of what is left."""
        found = Deadline(None, self.stop)
        if self.at is not None:
            left = max(0.0, self.at - monotonic())
            found.at = self.at - min(seconds, left / 2)
        return found


@dataclass(frozen=True)
class Task:
    """What a backend is asked: place `gangs` on `free`, which it may change."""

    cluster: Cluster
    free: Free
    quotas: Quotas
    gangs: list[Gang]
    order: Order
    limits: Limits
    deadline: Deadline
    on_event: OnEvent | None = None
    """Told of news, also from threads that are not the caller's."""
    rents: Rents = field(default_factory=Rents)
    """The rents of this request's markets."""

    def tell(self, source: str, level: str, kind: News, value: int) -> None:
        """Pass news on. What the listener raises is logged and ends nothing."""
        if self.on_event is not None:
            try:
                self.on_event(Event(source, level, kind, value))
            except Exception:
                log.warning("whoever listens to events failed", exc_info=True)

    def in_order(self) -> list[Gang]:
        """Return the gangs in the order in which a greedy takes them."""
        if self.order == "online":
            return self.gangs
        return sorted(self.gangs, key=lambda g: (-g.priority, -g.gpu_milli, g.position))


class Backend(ABC):
    """One way to place gangs.

    It looks at `task.deadline.passed` often, which also says that the caller wants it to stop, and returns then what
    it has.
    """

    name: str
    proves = False
    """Whether its answer carries a bound of its own."""

    def available(self) -> bool:
        """Return whether what it needs is installed; looks, does not import."""
        return True

    @abstractmethod
    def solve(self, task: Task) -> Answer:
        """Return the best answer found within the limits."""


BACKENDS: Registry[Backend] = Registry("backend")
