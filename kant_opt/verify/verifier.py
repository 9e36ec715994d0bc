"""The one entry: all rules on one placement."""

from __future__ import annotations

import kant_opt.verify.rules  # noqa: F401  # registers them
from kant_opt.fabric import Fabric
from kant_opt.schema import Placement, Request
from kant_opt.verify.index import RequestIndex
from kant_opt.verify.state import State
from kant_opt.verify.violation import RULES, Violation


def verify(request: Request, placement: Placement, fabric: Fabric | None = None) -> tuple[Violation, ...]:
    """Return every rule that `placement` breaks; empty means valid.

    Any placement may be given: unknown jobs, podsets, nodes or GPUs are violations. Only a request that cannot be
    meant (a job names a level that the fabric lacks) raises InputError. `fabric` saves building it once more.
    Costs one pass over nodes, holds and pods.
    """
    return check(RequestIndex(request, fabric), placement)


def check(index: RequestIndex, placement: Placement) -> tuple[Violation, ...]:
    """Do the same as `verify` for many placements of one request: its index is built once."""
    state = State(index, placement)
    return tuple(Violation(name, *finding) for name, find in RULES.items() for finding in find(state))
