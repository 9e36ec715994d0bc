"""What a backend is: it says what it can do, answers, and claims nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from kant_opt.backends.placer import Failure, Taken
from kant_opt.bounds import Bound
from kant_opt.registry import Registry
from kant_opt.schema import Limits
from kant_opt.view import Cluster, Free, Gang, Quotas

Order = Literal["batch", "online"]
"""batch: by priority, then most GPUs first. online: as given, each gang before the next is looked at."""


@dataclass
class Answer:
    """What a backend found; the engine verifies, measures and explains it."""

    taken: list[tuple[Gang, list[Taken]]] = field(default_factory=list)
    failed: list[tuple[Gang, Failure]] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    """What the backend proved, per objective level up to the first whose value is not proven."""
    limit_hit: str = ""
    notes: list[str] = field(default_factory=list)


class Deadline:
    """A point on the monotonic clock; `passed` is False for ever without one."""

    def __init__(self, after_ms: int | None) -> None:
        self.at = None if after_ms is None else monotonic() + after_ms / 1000

    @property
    def seconds_left(self) -> float | None:
        """Seconds until then, not below 0; None without a deadline."""
        return None if self.at is None else max(0.0, self.at - monotonic())

    @property
    def passed(self) -> bool:
        return self.at is not None and monotonic() >= self.at


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

    def in_order(self) -> list[Gang]:
        """Return the gangs in the order in which a greedy takes them."""
        if self.order == "online":
            return self.gangs
        return sorted(self.gangs, key=lambda g: (-g.priority, -g.gpu_milli, g.position))


class Backend(ABC):
    """One way to place gangs."""

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
