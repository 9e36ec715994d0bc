"""Where more is asked for than fits: another set of gangs with as many GPUs admitted of every class and less traffic.

A greedy takes the largest gangs first, which are those with the most traffic. The cheapest set by counting is found by
a knapsack (bounds.sets) and placed first; it counts only if it proves better.
"""

from __future__ import annotations

from dataclasses import replace

from kant_opt.backends.base import BACKENDS, Answer, Task
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.backends.placer import Placer
from kant_opt.backends.traffic import traffic_of
from kant_opt.bounds import Facts, cheapest_sets, least_traffic
from kant_opt.view import Gang

_TRIES = 5
"""Orders in which a set of gangs is tried."""


def with_cheaper_set(task: Task, answer: Answer) -> Answer:
    """Return the answer, or a better one with other gangs; the room of the one returned is taken."""
    if not answer.failed or task.deadline.passed:
        return answer
    placer = Placer(task.free, EBinpack(), task.quotas, task.limits.search_states)
    for _, taken in answer.taken:
        placer.release(taken)
    chosen = _cheapest(task, placer, answer)
    if chosen is not None:
        first = _all_if_possible(task, placer, chosen)
        last = BACKENDS["e-binpack"].solve(replace(task, gangs=[g for g in task.gangs if g not in set(chosen)]))
        other = Answer(
            first.taken + last.taken, first.failed + last.failed, limit_hit=first.limit_hit or last.limit_hit
        )
        if _rank(task, other) > _rank(task, answer):
            return other
        for _, taken in other.taken:
            placer.release(taken)
    for _, taken in answer.taken:
        placer.take_again(taken)
    return answer


def _all_if_possible(task: Task, placer: Placer, gangs: list[Gang]) -> Answer:
    """Place the gangs in order of size; where some find no room, again with these before the others, a few times."""
    order = replace(task, gangs=gangs).in_order()
    for _ in range(_TRIES):
        answer = BACKENDS["e-binpack"].solve(replace(task, gangs=order, order="online"))
        if not answer.failed or task.deadline.passed:
            return answer
        for _, taken in answer.taken:
            placer.release(taken)
        failed = [gang for gang, _ in answer.failed]
        order = [*failed, *(gang for gang in order if gang not in set(failed))]
    return BACKENDS["e-binpack"].solve(replace(task, gangs=gangs))


def _cheapest(task: Task, placer: Placer, answer: Answer) -> list[Gang] | None:
    """Return the set of gangs with the same worth of every class and the least traffic by counting; None where that is
    not less than the answer's, or not known."""
    facts = Facts(
        free=task.free,
        possible=[gang for gang, _ in answer.taken] + [g for g, _ in answer.failed if _fits(placer, g)],
        admitted=[gang for gang, _ in answer.taken],
        values={f"admitted[{priority}]": amount for priority, amount in _admitted(answer).items()},
        traffic_weights=task.cluster.traffic_weights,
    )
    found = cheapest_sets(facts, lambda gang: least_traffic(facts, gang))
    return None if found is None or found.cost >= traffic(task, answer) else found.gangs


def _fits(placer: Placer, gang: Gang) -> bool:
    """Return whether the gang fits alone."""
    taken = placer.place(gang)
    if isinstance(taken, str):
        return False
    placer.release(taken)
    return True


def _rank(task: Task, answer: Answer) -> tuple[list[int], int]:
    """Return what makes one answer better than another: GPUs admitted, highest class first, then less traffic."""
    admitted = _admitted(answer)
    classes = sorted({part.job.priority for gang in task.gangs for part in gang.parts}, reverse=True)
    return [admitted.get(priority, 0) for priority in classes], -traffic(task, answer)


def _admitted(answer: Answer) -> dict[int, int]:
    found: dict[int, int] = {}
    for _, taken in answer.taken:
        for t in taken:
            found[t.part.job.priority] = found.get(t.part.job.priority, 0) + t.pods * t.part.worth
    return found


def traffic(task: Task, answer: Answer) -> int:
    """Return the term `traffic` of an answer."""
    return sum(traffic_of(task.cluster, gang, taken) for gang, taken in answer.taken)
