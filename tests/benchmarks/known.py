"""A placement request whose best value somebody else published, and what comes out when it is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kant_opt import Limits, Outcome, Request, place


def folder(*parts: str) -> Path | None:
    """Return a folder of the benchmarks, found as the `shared` fixture does it; None where it is missing."""
    root = Path(__file__).resolve().parents[2]
    found = Path(os.environ.get("KANT_OPT_SHARED", root.parent / "shared" / "data")).joinpath("benchmarks", *parts)
    return found if found.is_dir() else None


@dataclass(frozen=True)
class Known:
    """One instance. A value v of the objective level `level` means `origin + v / step` in the instance's own units."""

    name: str
    optimum: int
    ask: Callable[[], Request]
    """Makes the request; the larger ones take a second."""
    level: str
    origin: int = 0
    step: int = 1


@dataclass(frozen=True)
class Result:
    """What was found, in the instance's own units; `value` is None where not all that must be placed is."""

    known: Known
    value: int | None
    bound: int | None
    outcome: Outcome

    @property
    def proven(self) -> bool:
        """Whether the answer is said to be optimal."""
        return self.value is not None and self.value == self.bound

    def check(self) -> None:
        """Assert that the published optimum is neither beaten nor excluded by the bound."""
        minimised = self.known.step < 0 or not self.known.level.startswith("admitted")
        sign, optimum = (1 if minimised else -1), self.known.optimum
        assert self.value is None or sign * self.value >= sign * optimum, f"{self.value} beats the optimum {optimum}"
        assert self.bound is None or sign * self.bound <= sign * optimum, f"bound {self.bound} excludes {optimum}"


def solve(known: Known, backend: str, limits: Limits | None = None) -> Result:
    """Return the verified answer of `place` to the instance."""
    outcome = place(known.ask(), backend=backend, limits=limits, prove=False)
    level = next(level for level in outcome.levels if level.name == known.level)
    return Result(known, _read(known, level.value), _read(known, level.bound), outcome)


def _read(known: Known, value: int | None) -> int | None:
    return None if value is None else known.origin + value // known.step
