"""Slices stay whole: the file is called `slices` because `slice` is a builtin."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.verify.state import State
from kant_opt.verify.texts import pods_in
from kant_opt.verify.violation import Finding, rule


@rule("slice")
def slices(state: State) -> Iterator[Finding]:
    """In every domain of a slice's level the podset's pods, living ones too, are a multiple of its size."""
    for job, podset in state.placed_podsets():
        for piece in podset.slices:
            domains = state.pods_per_domain(job.name, [podset.name], piece.level)
            if bad := {d: here for d, here in domains.items() if (here.living + here.new) % piece.size}:
                yield (
                    f"{job.name}/{podset.name}",
                    f"not in whole slices of {piece.size} per domain of level {piece.level!r}: {pods_in(bad)}",
                )
