"""Not too many pods in one place."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.verify.state import State
from kant_opt.verify.texts import pods_in
from kant_opt.verify.violation import Finding, rule


@rule("spread")
def spread(state: State) -> Iterator[Finding]:
    """In every domain of a spread's level at most `max_per_domain` pods of the podset, living ones too."""
    for job, podset in state.placed_podsets():
        for limit in podset.spread:
            domains = state.pods_per_domain(job.name, [podset.name], limit.level)
            if bad := {d: here for d, here in domains.items() if here.living + here.new > limit.max_per_domain}:
                yield (
                    f"{job.name}/{podset.name}",
                    f"more than {limit.max_per_domain} pods in one domain of level {limit.level!r}: {pods_in(bad)}",
                )
