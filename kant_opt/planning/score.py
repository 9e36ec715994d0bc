"""What a plan comes to: waits and makespan, each with a bound that holds for every plan of the same jobs."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.profile import Profile
from kant_opt.planning.queue import Queue
from kant_opt.planning.registry import Policy
from kant_opt.planning.ticket import FOREVER, Ticket
from kant_opt.schema import LevelValue

_ALONE, _AREA = "each job alone, by its GPUs", "GPU-seconds"


def score(queue: Queue, board: Board, policy: Policy) -> tuple[LevelValue, ...]:
    """Return `total_wait`, the sum of starts less submissions, and `makespan`, from now to the last end that is known.

    Both over the jobs that have a start; the policy's own values replace those of the same name.
    """
    running = {claim.ticket for claim, _ in queue.running}
    starts = {run.ticket: run for run in board.runs if run.ticket not in running and not run.evicted_for}
    now = queue.request.now_s
    free = _free(queue)
    earliest = {ticket: _alone(free, ticket, now) for ticket in starts}
    waits = LevelValue(
        name="total_wait",
        sense="min",
        value=sum(run.start - ticket.submit for ticket, run in starts.items()),
        bound=sum(earliest[ticket] - ticket.submit for ticket in starts),
        bound_source=_ALONE,
    )
    known = [ticket for ticket, run in starts.items() if run.end < FOREVER]
    alone = max((earliest[ticket] + (ticket.length or 0) for ticket in known), default=now)
    area = _area(free, known, now)
    span = LevelValue(
        name="makespan",
        sense="min",
        value=max((starts[ticket].end for ticket in known), default=now) - now,
        bound=max(alone, area) - now,
        bound_source=_ALONE if alone >= area else _AREA,
    )
    own = {level.name for level in policy.levels}
    return (*policy.levels, *(level for level in (waits, span) if level.name not in own))


def _free(queue: Queue) -> Profile:
    """Return the GPUs left by the jobs that run, evictions not counted on."""
    cluster = queue.cluster
    free = Profile(int(cluster.gpus[cluster.schedulable].sum()))
    for claim, alloc in queue.running:
        if not claim.ticket.preemptible:
            held = sum(h.gpus for h in alloc.holds if cluster.schedulable[cluster.tree.index[h.node]])
            free.take(claim.start, claim.end, held)
    return free


def _alone(free: Profile, ticket: Ticket, now: int) -> int:
    """Return the earliest start of a ticket if nobody else waited; its first try where GPUs do not tell."""
    first = max(now, ticket.submit)
    start = free.earliest(_whole(ticket), ticket.needs, first)
    return first if start is None else start


def _area(free: Profile, tickets: list[Ticket], now: int) -> int:
    """Return the first time by which the GPUs free from now on come to the GPU-seconds that the tickets need."""
    left = sum(_whole(ticket) * (ticket.length or 0) for ticket in tickets)
    for i, units in enumerate(free.free):
        begin = max(now, free.times[i])
        end = free.times[i + 1] if i + 1 < len(free.times) else FOREVER
        if end <= begin:
            continue
        if left <= max(0, units) * (end - begin):
            return begin + (-(-left // units) if left else 0)
        left -= max(0, units) * (end - begin)
    return now


def _whole(ticket: Ticket) -> int:
    """Return the whole GPUs without which the ticket does not start."""
    return sum(part.shape.gpus * part.least for part in ticket.gang.parts) if ticket.gang else ticket.gpus
