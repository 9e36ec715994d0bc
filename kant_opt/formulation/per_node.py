"""The reference formulation: pods per podset and node, exact for every request."""

from __future__ import annotations

from collections.abc import Sequence

from kant_opt.formulation.classes import unfolded
from kant_opt.formulation.written import Written
from kant_opt.view import Cluster, Free, Gang


class PerNode(Written):
    """Nothing is folded: parts x nodes variables and more where GPUs are shared, for some hundred nodes.

    With `everywhere` any placement of the request's podsets on its nodes can be written, valid or not; then the program
    is larger.
    """

    def __init__(self, cluster: Cluster, free: Free, gangs: Sequence[Gang], *, everywhere: bool = False) -> None:
        super().__init__(cluster, free, gangs, unfolded(gangs, also_empty=everywhere), everywhere=everywhere)
