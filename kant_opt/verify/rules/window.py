"""Reserved nodes stay free for whom they are reserved."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from kant_opt.schema import Job
from kant_opt.verify.state import State
from kant_opt.verify.violation import Finding, rule


@rule("window")
def window(state: State) -> Iterator[Finding]:
    """No new pod on a node while somebody else's reservation, or maintenance, overlaps the job's run."""
    if not state.request.reservations:
        return
    now = state.request.now_s
    for job, podset in state.placed_podsets():
        end = _end(job, now)
        for node in state.new_of(job.name, podset.name):
            for held in state.index.reservations.get(node, ()):
                until = inf if held.end_s is None else held.end_s
                if job.name not in held.jobs and held.start_s < end and now < until:
                    yield (
                        f"{job.name}/{podset.name}",
                        f"node {node!r} is reserved by {held.name!r} in [{held.start_s}, {until}), "
                        f"the job runs in [{now}, {end})",
                    )


def _end(job: Job, now: int) -> float:
    """Return when the job's claim on its nodes ends: a preemptible job of unknown length can leave at any time."""
    if job.walltime_s is not None:
        return now + job.walltime_s
    return now + 1 if job.preemptible else inf
