"""A podset stays in one domain."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.verify.state import State
from kant_opt.verify.texts import pods_in
from kant_opt.verify.violation import Finding, rule


@rule("required_level")
def required_level(state: State) -> Iterator[Finding]:
    """All pods of the podset, living ones too, lie in one domain of its required level."""
    for job, podset in state.placed_podsets():
        if podset.required_level is not None:
            domains = state.pods_per_domain(job.name, [podset.name], podset.required_level)
            if len(domains) > 1:
                yield (
                    f"{job.name}/{podset.name}",
                    f"{len(domains)} domains of level {podset.required_level!r}, one allowed: {pods_in(domains)}",
                )
