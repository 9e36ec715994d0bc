"""What waits, and the room in time that it is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from kant_opt.backends import Taken
from kant_opt.view import Gang

FOREVER = 1 << 62
"""The end of a run of unknown length."""


@dataclass(frozen=True, eq=False, slots=True)
class Ticket:
    """One gang in the queue, as planning sees it. Two tickets are never equal."""

    name: str
    position: int
    """Place in the queue as given."""
    submit: int = 0
    length: int | None = None
    """Seconds it may run at most, at least 1; None: unknown."""
    gpus: int = 1
    """GPUs in all, shares rounded up; the units of a counting space."""
    run: int | None = None
    """Seconds it will really run, at most `length`; None: as long as it may."""
    priority: int = 0
    tenant: str = ""
    preemptible: bool = False
    after: tuple[str, ...] = ()
    """Names of jobs that have to end before it starts."""
    gang: Gang | None = None
    """Its pods and their rules; None where only numbers count."""

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of the jobs that it stands for."""
        return (self.name,) if self.gang is None else tuple(job.name for job in self.gang.jobs)

    @property
    def needs(self) -> int:
        """Return how long its window must be free of others: a preemptible job of unknown length can leave at once."""
        if self.length is not None:
            return self.length
        return 1 if self.preemptible else FOREVER


@dataclass(eq=False, slots=True)
class Claim:
    """Room for a ticket in [start, end): promised, or in use where it runs."""

    ticket: Ticket
    start: int
    end: int
    taken: list[Taken] | None = field(default=None, repr=False)
    """The pods with their nodes and GPUs; None in a counting space until it starts."""
