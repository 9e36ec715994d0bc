"""Objective levels as shares of the terms."""

from __future__ import annotations

from dataclasses import dataclass

from kant_opt.errors import InputError
from kant_opt.schema import Request


@dataclass(frozen=True)
class Goal:
    """One objective level: its share of each term, by the term's name."""

    name: str
    maximised: bool
    share_of: dict[str, int]


def priorities(request: Request) -> list[int]:
    """Return the priority classes, highest first."""
    return sorted({job.priority for job in request.jobs}, reverse=True)


def terms(request: Request) -> list[str]:
    """Return the names of all terms in the order of `rules.mzn`: admitted class by class, then the others."""
    return [*(f"admitted[{priority}]" for priority in priorities(request)), "traffic", "broken_nodes", "broken_leaves"]


def goals_of(request: Request) -> list[Goal]:
    """Return the objective levels in their order. Raises InputError for a term that the twins have not, or for none."""
    objective = request.objective
    if "moves" in (objective.weights or objective.order):
        raise InputError("the MiniZinc twins know no moves", place="objective", way_out="leave the term out")
    admitted = [f"admitted[{priority}]" for priority in priorities(request)]
    if objective.weights:
        shares: dict[str, int] = {term: weight for term, weight in objective.weights.items() if term != "admitted"}
        shares |= dict.fromkeys(admitted, -objective.weights.get("admitted", 0))
        return [Goal("weighted", False, shares)]
    found = []
    for term in objective.order:
        names = admitted if term == "admitted" else [term]
        found += [Goal(name, term == "admitted", {name: 1}) for name in names]
    if not found:
        raise InputError("there is nothing to optimise", place="objective", way_out="add a job or a term")
    return found
