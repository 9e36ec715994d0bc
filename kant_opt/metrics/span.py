"""How far each placed job reaches over the fabric."""

from __future__ import annotations

from dataclasses import dataclass

from kant_opt.metrics.placed import Placed


@dataclass(frozen=True)
class JobSpan:
    """Domains that the pods of one placed job use, new and living."""

    job: str
    pods: int
    nodes: int
    domains: dict[str, int]
    """Domains used per level above `node`, outermost first."""

    @property
    def extra(self) -> dict[str, int]:
        """Domains beyond the first per level: what `traffic` weighs for a ring."""
        return {level: max(0, used - 1) for level, used in self.domains.items()}


def job_spans(placed: Placed) -> tuple[JobSpan, ...]:
    """Return the span of every placed job, in order of the request."""
    return tuple(
        JobSpan(
            job=name,
            pods=sum(nodes.values()),
            nodes=len(nodes),
            domains={level: len(placed.pods_per_domain(name, level)) for level in placed.outer_levels},
        )
        for name, nodes in placed.pods_on.items()
    )
