"""Policies and orders by name: what each has to say, and to whom."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from kant_opt.planning.ticket import Ticket
from kant_opt.registry import Registry
from kant_opt.schema import LevelValue

if TYPE_CHECKING:
    from kant_opt.planning.board import Board

Key = tuple[int, ...]


class Policy(ABC):
    """At every event it decides who starts and who is promised a start.

    One object serves one run of the timeline and may remember things between events.
    """

    name: str
    levels: tuple[LevelValue, ...] = ()
    """Values with bounds that the policy proves itself, for the plan."""
    limit_hit: str = ""
    """The limit that stopped its search, empty where none did."""
    notes: tuple[str, ...] = ()
    """What the plan's run record should tell."""
    looks_at_places = False
    """It asks where a claim lies: numbers alone will not do."""
    keeps_order = False
    """Nobody starts before a job ahead in the queue."""

    @abstractmethod
    def decide(self, board: Board) -> None:
        """Start and promise by the board's methods. Called once per instant, after all its ends and arrivals."""


class Order(ABC):
    """Who is ahead of whom in the queue, by a key: least first. Keys end in (submit, position): equals keep order."""

    name: str
    changes = False
    """True: keys change with time, and the queue is sorted anew at every event."""
    by_priority = False
    """Higher priority goes ahead, whatever else counts."""

    @abstractmethod
    def key(self, ticket: Ticket, board: Board) -> Key:
        """Return the ticket's key now."""


POLICIES: Registry[Callable[..., Policy]] = Registry("policy")
"""Name -> what makes a fresh policy. Names that end in -k take a number: "depth-8"."""

ORDERS: Registry[Callable[[], Order]] = Registry("order")
"""Name -> what makes a fresh order."""

_NUMBERED = re.compile(r"(.+)-(\d{1,6})\Z", re.ASCII)


def make_policy(name: str) -> Policy:
    """Return a fresh policy by name; "depth-8" is "depth-k" with 8. Raises UnknownName with the known names."""
    if name not in POLICIES and (match := _NUMBERED.match(name)) and f"{match[1]}-k" in POLICIES:
        return POLICIES[f"{match[1]}-k"](int(match[2]))
    return POLICIES[name]()
