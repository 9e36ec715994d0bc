"""What a good placement is, and how long to look for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator

from kant_opt.schema.base import Count, Frozen, Name, PositiveCount, check_unique

TermName = Literal["admitted", "traffic", "broken_nodes", "broken_leaves", "moves"]


class Objective(Frozen):
    """Lexicographic by default: a later term counts only among answers that are equal in all earlier ones.

    `admitted` is maximised (GPUs of the highest priority class first, then of the next), every other term minimised.
    Fragmentation in the sense of the documents is `broken_nodes`, then `broken_leaves`.
    """

    order: tuple[TermName, ...] = ("admitted", "traffic", "broken_nodes", "broken_leaves")
    weights: dict[TermName, Count] = {}
    """Not empty: one weighted sum of these terms instead of `order`."""
    traffic_weights: dict[Name, Count] = {}
    """Cost of one more domain per level; levels not given: 1 for the innermost above
    the node, times 4 per level out."""

    def weights_of(self, levels: Sequence[str]) -> dict[str, int]:
        """Return the traffic weight of every level above the node, given outermost first."""
        return {level: self.traffic_weights.get(level, 4 ** (len(levels) - 1 - i)) for i, level in enumerate(levels)}

    @model_validator(mode="after")
    def _terms_once(self) -> Self:
        check_unique("objective term", self.order)
        if not self.order and not self.weights:
            raise ValueError("an objective needs an order of terms or weights")
        return self


class Limits(Frozen):
    """When to stop looking. A limit that bit is named in the outcome's run record."""

    deadline_ms: PositiveCount | None = None
    """Wall clock for the whole call; None: no limit."""
    search_states: PositiveCount = 10_000_000
    """Work limit of the exact search for one gang of mixed shapes, in count vectors looked at;
    ten million take well under a second."""
    rounds: PositiveCount = 35
    """Work limit of the backend `search`: rounds of ruin and recreate per gang."""
    memory_mb: PositiveCount | None = None
    """Memory of a solver's process, in MiB; None: no limit. It holds about 130 before it begins. Where it is not
    enough, the answer at hand stands. Not enforced on systems that know no such limit (Windows, macOS)."""
    workers: PositiveCount = 1
    seed: Count = 0
