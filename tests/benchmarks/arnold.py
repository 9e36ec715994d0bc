"""Arnold's placement of one training job: equal groups of ranks over minipods.

He et al., "Efficient Pre-Training of LLMs via Topology-Aware Communication Alignment on More Than 9600 GPUs", NeurIPS
2025, arXiv 2509.15940. A job is a matrix of nodes, its rows the PP groups (the unit of scheduling), its columns the DP
groups. Equations (4) to (10) minimise alpha x (minipods used) + beta x T, where T is the most minipods that any row
spans. A maximum is no term of ours, but two questions are enough:

- *rows whole* (T = 1): a podset per row, each required in one minipod; all in one gang, whose `traffic` is the number
  of minipods less one.
- *rows cut* anywhere: one podset. Fewer minipods no T allows; ranks given along the nodes then tell T, which is 2
  unless a minipod in between takes less than a row.

Where that T is 2, the better of the two is the optimum for any alpha and beta. The paper lets a row be cut into any
fractions; nodes are whole here. Of its equation (2), with the spread of the columns instead of the minipods used,
these are the points of row spread 1 (a column then takes a node of every row, so all minipods) and, rows and columns
changed over, of column spread 1; points between have no form here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kant_opt import FabricSpec, Job, Limits, Node, Objective, Outcome, PodSet, Request, place

GPUS = 8
"""Per node, as in the paper."""


@dataclass(frozen=True)
class Setting:
    """A row of the paper's table 1: minipods, nodes in all, and the degrees of data, tensor, pipeline parallelism."""

    name: str
    minipods: int
    nodes: int
    dp: int
    tp: int
    pp: int

    @property
    def rows(self) -> int:
        """PP groups, each of `pp` nodes."""
        return self.dp * self.tp // GPUS

    @property
    def rooms(self) -> tuple[int, ...]:
        """Nodes per minipod; the paper does not tell, so as even as can be."""
        small, more = divmod(self.nodes, self.minipods)
        return (small + 1,) * more + (small,) * (self.minipods - more)


SETTINGS = (
    Setting("(i)", minipods=3, nodes=18, dp=12, tp=4, pp=2),
    Setting("(ii)", minipods=5, nodes=438, dp=24, tp=4, pp=8),
    Setting("(iii)", minipods=11, nodes=1019, dp=46, tp=8, pp=8),
)


@dataclass(frozen=True)
class Spread:
    """Minipods used and the most that a row spans; `proven` where fewer minipods are impossible for such rows."""

    minipods: int
    row_spread: int
    proven: bool
    outcome: Outcome

    def cost(self, alpha: Fraction) -> Fraction:
        """Return equation (4), with beta = 1 - alpha."""
        return alpha * self.minipods + (1 - alpha) * self.row_spread


def request(rooms: Sequence[int], rows: int, size: int, *, cut: bool, folded: bool = False) -> Request:
    """Return the question for the fewest minipods with `rows` rows of `size` nodes, which may be `cut` or not.

    `rooms` are free nodes per minipod. With `folded` a minipod is one node of all its GPUs: the same question, as the
    nodes of a minipod are alike.
    """
    names = [f"m{m:02}" for m in range(len(rooms))]
    if folded:
        nodes = [Node(name=m, path=(m,), gpus=GPUS * room) for m, room in zip(names, rooms, strict=True)]
    else:
        nodes = [
            Node(name=f"{m}-{n:03}", path=(m,), gpus=GPUS)
            for m, room in zip(names, rooms, strict=True)
            for n in range(room)
        ]
    podsets = (
        [PodSet(count=rows * size, gpus=GPUS)]
        if cut
        else [PodSet(name=f"row-{r:02}", count=size, gpus=GPUS, required_level="minipod") for r in range(rows)]
    )
    return Request(
        fabric=FabricSpec(levels=("minipod",)),
        nodes=tuple(nodes),
        jobs=(Job(name="train", podsets=tuple(podsets)),),
        objective=Objective(order=("admitted", "traffic")),
    )


def fewest_minipods(
    rooms: Sequence[int],
    rows: int,
    size: int,
    *,
    cut: bool,
    backend: str = "auto",
    folded: bool = False,
    limits: Limits | None = None,
) -> Spread | None:
    """Return the fewest minipods found; None where the rows do not fit."""
    asked = request(rooms, rows, size, cut=cut, folded=folded)
    outcome = place(asked, backend=backend, limits=limits)
    assert outcome.placement is not None
    if not outcome.placement.jobs:
        return None
    minipod_of = {node.name: node.path[0] for node in asked.nodes}
    ranks = [minipod_of[pods.node] for pods in outcome.placement.jobs[0].pods for _ in range(pods.count)]
    spans = [len(set(ranks[start : start + size])) for start in range(0, len(ranks), size)]
    traffic = next(level for level in outcome.levels if level.name == "traffic")
    return Spread(len(set(ranks)), max(spans), traffic.proven, outcome)
