"""Pods that share one domain: the rows that `required_level` and `together` have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kant_opt.formulation.program import Sense
from kant_opt.formulation.vars import Vars


def one_domain(
    v: Vars, name: str, depth: int, parts: Sequence[int], living: Iterable[int], placed: Iterable[int]
) -> None:
    """At most one domain of `depth` holds pods of `parts`, or living ones on the nodes `living`.

    Living pods bind only where one of the jobs is `placed`; they settle the domain, so that no binary is needed.
    """
    anchors = v.domains(living, depth)
    new = v.new_in(parts, depth)
    if len(anchors) > 1:
        for var in placed:
            v.forbid(f"{name}_placed_{var}", {var: 1})
    elif anchors:
        v.forbid(f"{name}_outside", {i: 1 for d, terms in new.items() if d not in anchors for i in terms})
    elif len(new) > 1:
        v.program.row(f"{name}_one", {v.present(parts, depth, d): 1 for d in new}, Sense.LE, 1)
