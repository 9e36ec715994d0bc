"""The smallest formulation that is exact: nodes and jobs alike are counted, not told apart."""

from __future__ import annotations

from collections.abc import Sequence

from kant_opt.formulation.classes import fold
from kant_opt.formulation.written import Written
from kant_opt.view import Cluster, Free, Gang


class Folded(Written):
    """Exact for every request: what cannot be folded stays as it is in the per-node formulation."""

    def __init__(self, cluster: Cluster, free: Free, gangs: Sequence[Gang]) -> None:
        super().__init__(cluster, free, gangs, fold(cluster, free, gangs))
