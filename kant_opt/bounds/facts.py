"""What is known before bounding, and what a bound is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kant_opt.view import Free, Gang, Mask


@dataclass(frozen=True)
class Bound:
    """A proven value and how it was proven."""

    value: int
    source: str = "counting"


@dataclass(frozen=True)
class Facts:
    """What is known before bounding.

    `free`: the room before anything was placed. `possible`: gangs not proven impossible on it, alone. `admitted`:
    those placed. `values`: level name -> value reached.
    """

    free: Free
    possible: Sequence[Gang]
    admitted: Sequence[Gang]
    values: dict[str, int]
    traffic_weights: Sequence[int]
    """Per depth, 0 at depth 0 and at the node."""
    known: dict[tuple[object, ...], int] = field(default_factory=dict)
    """Least traffic of jobs of one kind, found once."""

    @cached_property
    def settled(self) -> bool:
        """Whether the admitted gangs are the only set that reaches these values: of each class all or none."""
        return all(
            not value or value == sum(worth for worth, _ in self.by_class.get(int(name[9:-1]), []))
            for name, value in self.values.items()
            if name.startswith("admitted[")
        )

    @cached_property
    def open_nodes(self) -> Mask:
        """The nodes that any possible gang may use, (N,)."""
        nodes = np.zeros(len(self.free.cluster.nodes), dtype=bool)
        for gang in self.possible:
            for part in gang.parts:
                nodes |= part.eligible
        return nodes

    @cached_property
    def by_class(self) -> dict[int, list[tuple[int, Gang]]]:
        """Per priority class the gangs with jobs of it, each with what these add to the term `admitted`."""
        classes: dict[int, list[tuple[int, Gang]]] = {}
        for gang in self.possible:
            worth: dict[int, int] = {}
            for part in gang.parts:
                worth[part.job.priority] = worth.get(part.job.priority, 0) + part.target * part.worth
            for priority, amount in worth.items():
                if amount:
                    classes.setdefault(priority, []).append((amount, gang))
        return classes

    @cached_property
    def admitted_milli(self) -> int | None:
        """GPU thousandths of all new pods, as the values of `admitted` tell; None where a worth is not that number."""
        exact = all(p.gpu_milli and not p.shape.mib for gang in self.possible for p in gang.parts)
        if not exact or (self.free.cluster.unit != 1000).any():
            return None
        return sum(value for name, value in self.values.items() if name.startswith("admitted["))
