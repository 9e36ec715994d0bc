"""Changes to an answer that stay only where the objective is none the worse, whatever its order.

Moving pods about lowers traffic first, then broken nodes, then broken leaves. Where that is the order asked for, no
change is for the worse; in any other order, or in a weighted sum, each is looked at and undone where it is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kant_opt.backends.admission import traffic
from kant_opt.backends.base import Answer, Task
from kant_opt.schema import Objective, TermName

_USUAL: tuple[TermName, ...] = ("traffic", "broken_nodes", "broken_leaves")


def unless_worse(task: Task, answer: Answer, change: Callable[[], None]) -> None:
    """Make a change that moves the answer's pods and admits nobody; undo it where it makes the objective worse.

    Costs, where the order is not the usual one, a pass over pods and nodes.
    """
    if _is_usual(task.cluster.request.objective):
        change()
        return
    before, cost = list(answer.taken), costs(task, answer)
    change()
    if costs(task, answer) <= cost:
        return
    moved = [i for i, pair in enumerate(before) if pair is not answer.taken[i]]
    for t in (t for i in moved for t in answer.taken[i][1]):
        task.free.release(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus)
    for t in (t for i in moved for t in before[i][1]):
        task.free.take(t.node, t.part.shape, t.pods, t.part.job.name, t.gpus or None)
    answer.taken[:] = before


def costs(task: Task, answer: Answer) -> list[int]:
    """Return the objective levels without GPUs admitted, the less the better; the room of the answer is taken."""
    objective, free, tree = task.cluster.request.objective, task.free, task.cluster.tree
    counted = task.cluster.schedulable & (free.capacity > 0)
    used, unused = (
        tree.sums((counted & mask).astype(np.int64), tree.leaf_depth) for mask in (free.is_used(), ~free.is_used())
    )
    terms: dict[TermName, int] = {
        "traffic": traffic(task, answer),
        "broken_nodes": int(free.is_broken().sum()),
        "broken_leaves": int(((used > 0) & (unused > 0)).sum()),
    }
    if objective.weights:
        return [sum(weight * terms.get(term, 0) for term, weight in objective.weights.items())]
    return [terms[term] for term in objective.order if term in terms]


def _is_usual(objective: Objective) -> bool:
    asked = [_USUAL.index(term) for term in objective.order if term in _USUAL]
    return not objective.weights and asked == sorted(asked)
