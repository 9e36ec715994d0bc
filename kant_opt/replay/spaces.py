"""Where a replay's gangs go: node by node, by any backend that places one gang after another."""

from __future__ import annotations

from collections.abc import Sequence

from kant_opt.backends import BACKENDS, Failure, Placer, Taken
from kant_opt.backends.greedy import Greedy
from kant_opt.errors import UnknownName
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.view import Cluster, Free, Gang, Mask, Quotas


def placing_backend(name: str) -> Greedy:
    """Return a backend that can place gangs as they start; raises UnknownName with those that can."""
    able = {known: part for known, part in BACKENDS.items() if isinstance(part, Greedy)}
    if name not in able:
        raise UnknownName("backend that places gang by gang", name, able)
    return able[name]


class BackendSpace(TopologicalSpace):
    """A space of nodes in which a named backend chooses them. Every gang has its own draw, so that answers do not
    depend on how often was asked.
    """

    def __init__(self, cluster: Cluster, backend: Greedy, seed: int = 0) -> None:
        super().__init__(cluster, cluster.request.reservations, cluster.request.limits.search_states)
        self.backend, self.seed = backend, seed

    def choose_nodes(self, gang: Gang, free: Free, quotas: Quotas, within: Mask | None) -> list[Taken] | Failure:
        strategy = self.backend.make((self.seed << 32) + gang.position)
        return self.backend.place(Placer(free, strategy, quotas, self.work), gang, within)


def nodes_used(taken: Sequence[Taken]) -> tuple[tuple[int, int], ...]:
    """Return (node index, GPU thousandths) pairs of what a gang takes."""
    found: dict[int, int] = {}
    for t in taken:
        milli = 1000 * t.part.shape.gpus or t.part.shape.milli or 1000
        found[t.node] = found.get(t.node, 0) + t.pods * milli
    return tuple(sorted(found.items()))
