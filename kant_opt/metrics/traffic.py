"""Term `traffic`: what the gangs' communication across switches costs."""

from __future__ import annotations

from kant_opt.metrics.placed import Placed
from kant_opt.schema import Job


def traffic(placed: Placed) -> int:
    """Return the sum of `traffic_by_job`."""
    return sum(traffic_by_job(placed).values())


def traffic_by_job(placed: Placed) -> dict[str, int]:
    """Return the weighted traffic of every placed job, in order of the request.

    Per level above `node`: weight x (domains used - 1) for `ring`, weight x pairs of pods in different domains for
    `all_to_all`, nothing for `none`. Living pods count with the new ones.
    """
    weights = traffic_weights(placed)
    return {
        name: sum(weight * crossings(placed, placed.jobs[name], level) for level, weight in weights.items())
        for name in placed.pods_on
    }


def traffic_by_level(placed: Placed) -> dict[str, int]:
    """Return the weighted traffic of every level above `node`, outermost first; the values add up to `traffic`."""
    return {
        level: weight * sum(crossings(placed, placed.jobs[name], level) for name in placed.pods_on)
        for level, weight in traffic_weights(placed).items()
    }


def traffic_weights(placed: Placed) -> dict[str, int]:
    """Return the weight of every level above `node`, outermost first: as the objective says, else 1, 4, 16, ...
    from the innermost outwards."""
    return placed.request.objective.weights_of(placed.outer_levels)


def crossings(placed: Placed, job: Job, level: str) -> int:
    """Return how often a placed job crosses `level`, unweighted."""
    if job.communication == "none":
        return 0
    pods = placed.pods_per_domain(job.name, level)
    if job.communication == "ring":
        return max(0, len(pods) - 1)
    return (sum(pods) ** 2 - sum(n * n for n in pods)) // 2
