"""The greedy backends: one strategy, gang after gang."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kant_opt.backends import baselines
from kant_opt.backends.base import BACKENDS, Answer, Backend, Task
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.backends.placer import Failure, Placer, Taken
from kant_opt.backends.strategy import Strategy
from kant_opt.view import Gang, Mask


class Greedy(Backend):
    """Places gangs in order with the strategy that `make` returns for a seed."""

    def __init__(self, name: str, make: Callable[[int], Strategy]) -> None:
        self.name, self.make = name, make

    def solve(self, task: Task) -> Answer:
        answer = Answer()
        placer = Placer(
            task.free,
            self.make(task.limits.seed),
            task.quotas,
            task.limits.search_states,
            lambda: task.deadline.passed,
        )
        for gang in task.in_order():
            if task.deadline.passed:
                answer.limit_hit = "deadline"
                answer.failed.append((gang, "limit"))
                continue
            taken = self.place(placer, gang)
            if isinstance(taken, str):
                answer.failed.append((gang, taken))
                if taken == "limit":
                    hit = "deadline" if task.deadline.passed else "search_states"
                    answer.limit_hit = answer.limit_hit or hit
            else:
                answer.taken.append((gang, taken))
        return answer

    def place(self, placer: Placer, gang: Gang, within: Mask | None = None) -> list[Taken] | Failure:
        """Place one gang on the nodes of `within` (N,); a hook for backends that choose between strategies."""
        return placer.place(gang, within)


class ESpread(Greedy):
    """E-Spread: inference gangs are spread inside the request's inference zone while it has room, everything else is
    E-Binpacked outside it. Either kind goes to the other side only where its own has no room for it.
    """

    def __init__(self) -> None:
        super().__init__("e-spread", lambda seed: EBinpack())

    def place(self, placer: Placer, gang: Gang, within: Mask | None = None) -> list[Taken] | Failure:
        zone = _zone(placer)
        if not zone.any():
            return placer.place(gang, within)
        if all(job.kind == "inference" for job in gang.jobs):
            spreading = Placer(placer.free, baselines.spread(), placer.quotas, placer.work, placer.is_late)
            inside = spreading.place(gang, zone if within is None else zone & within)
            return inside if not isinstance(inside, str) else placer.place(gang, within)
        outside = placer.place(gang, ~zone if within is None else ~zone & within)
        return outside if not isinstance(outside, str) else placer.place(gang, within)


def _zone(placer: Placer) -> Mask:
    cluster = placer.free.cluster
    zone = cluster.request.inference_zone
    if zone is None:
        return np.zeros(len(cluster.nodes), dtype=bool)
    named = set(zone.nodes)
    return np.fromiter(
        (
            node.name in named
            or (bool(zone.selector) and all(node.labels.get(k) in allowed for k, allowed in zone.selector.items()))
            for node in cluster.nodes
        ),
        np.bool_,
        len(cluster.nodes),
    )


for _backend in (
    Greedy("e-binpack", lambda seed: EBinpack()),
    ESpread(),
    Greedy("first-fit", baselines.first_fit),
    Greedy("best-fit", baselines.best_fit),
    Greedy("binpack", baselines.binpack),
    Greedy("spread", baselines.spread),
    Greedy("random", baselines.random),
):
    BACKENDS.add(_backend.name, _backend)
