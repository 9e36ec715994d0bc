"""How the nodes of one class are filled: rows that say which pods fit, and the way from counts to single nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from kant_opt.formulation.program import Program
from kant_opt.formulation.stock import Kind, Stock, Vector

Terms = dict[int, int]
Load = list[int]
"""Pods on one node, per shape of the stock."""


class Filling(ABC):
    """Variables and rows of its own beside the pods of each shape, in all of the class. Written into one program."""

    word: str
    variables: int
    """Variables of its own."""

    def __init__(self, stock: Stock) -> None:
        self.stock = stock
        self.used: Terms = {}
        """Nodes without a GPU in use that get one used, as a sum."""
        self.full: Terms = {}
        """Nodes of which all free GPUs are taken, as a sum."""

    @staticmethod
    @abstractmethod
    def suits(stock: Stock) -> bool:
        """Return whether it is exact for the stock, and not too large."""

    @abstractmethod
    def write(self, program: Program, name: str, pods: Sequence[Terms]) -> None:
        """Add variables and rows; `pods` are the pods of each shape as sums."""

    @abstractmethod
    def count(self, values: list[int], kind: int, load: Vector) -> None:
        """Add one node of a kind with a load of pods, not empty, to the values. Raises KeyError where it cannot be."""

    @abstractmethod
    def loads(self, values: Sequence[int], kind: int) -> Iterator[Load]:
        """Yield what lies on the nodes of a kind, at most as many as there are."""

    def set(self, values: list[int], loads: Mapping[int, Sequence[int]]) -> None:
        """Set its variables to what stands for loads by node."""
        for k, kind in enumerate(self.stock.kinds):
            for node in kind.nodes:
                if node in loads and any(load := self._bound(loads[node])):
                    self.count(values, k, load)

    def fill(self, values: Sequence[int], pods: Sequence[int]) -> dict[int, Load]:
        """Return node -> load, `pods` per shape in all."""
        found: dict[int, Load] = {}
        for k, kind in enumerate(self.stock.kinds):
            found.update(zip(kind.nodes, self.loads(values, k), strict=False))
        anywhere = found.setdefault(self.stock.kinds[0].nodes[0], [0] * len(pods))
        for s, needs in enumerate(self.stock.needs):
            if not any(needs):
                anywhere[s] += pods[s]
        return found

    def _bound(self, load: Sequence[int]) -> Vector:
        """Return a load without the pods that fit anywhere."""
        return tuple(n if any(needs) else 0 for n, needs in zip(load, self.stock.needs, strict=True))

    def tell(self, kind: Kind, gpus: int, terms: Terms) -> None:
        """Note that `terms` count nodes of a kind on which new pods take so many GPUs."""
        for total, counts in ((self.used, kind.idle), (self.full, gpus == kind.full_at)):
            for var, coefficient in terms.items() if self.stock.fragments and gpus and counts else ():
                total[var] = total.get(var, 0) + coefficient
                if not total[var]:
                    del total[var]
