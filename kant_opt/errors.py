"""The errors kant_opt raises on purpose. "Infeasible" is an answer, never an error."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class KantOptError(Exception):
    """Base of every error raised on purpose; its text is one sentence fit for a user."""


class InputError(KantOptError, ValueError):
    """The data cannot be meant: says where, which value, and a way out.

    `place` is the file and the position in it ("queue.json: jobs.3.podsets.0.count"), empty where there is none.
    """

    def __init__(self, problem: str, *, place: str = "", way_out: str = "") -> None:
        self.problem, self.place, self.way_out = problem, place, way_out
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text}: {way_out}" if way_out else text)

    def within(self, outer: str) -> InputError:
        """Return the same error seen from `outer`, the file or object that holds the place."""
        return InputError(self.problem, place=f"{outer}: {self.place}" if self.place else outer, way_out=self.way_out)


class UnknownName(InputError):
    """A name that no registry or request knows: lists the known ones and suggests the nearest."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, place: str = "") -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=1)
        shown = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
        hint = f"did you mean {near[0]!r}? known: {shown}" if near else f"known: {shown or 'none'}"
        super().__init__(f"unknown {kind} {name!r}", place=place, way_out=hint)


class BackendUnavailable(KantOptError):
    """A backend's package is not installed; names the extra that brings it."""


class WrongAnswer(KantOptError):
    """An answer of our own broke a rule: a bug in kant_opt, never the user's mistake."""
