"""Nodes for runs that were planned by number: given when each run starts, in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count

from kant_opt.backends import Placer
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.errors import WrongAnswer
from kant_opt.planning.board import Board, Run
from kant_opt.planning.queue import Queue
from kant_opt.planning.running import held_gpus
from kant_opt.planning.ticket import FOREVER
from kant_opt.schema import Allocation
from kant_opt.view import Free, Shape


def give_places(queue: Queue, board: Board) -> None:
    """Give the runs of a counting space their nodes: see `CountingSpace` for why there is always room.

    Ends come before starts of the same instant. Costs a placement per run.
    """
    free = Free(queue.cluster)
    placer = Placer(free, EBinpack(), work=queue.request.limits.search_states)
    allocations = {claim.ticket: alloc for claim, alloc in queue.running}
    gpus = held_gpus(queue.cluster, list(allocations.values()))
    leaving: list[tuple[int, int, Callable[[], None]]] = []
    ranks = count()

    def leaves(run: Run, leave: Callable[[], None]) -> None:
        if run.end < FOREVER:
            heappush(leaving, (run.end, next(ranks), leave))

    for run in sorted(board.runs, key=lambda r: (r.start, r.ticket not in allocations)):
        if run.ticket in allocations:
            leaves(run, partial(_release, free, gpus, allocations[run.ticket]))
            continue
        while leaving and leaving[0][0] <= run.start:
            heappop(leaving)[2]()
        assert run.ticket.gang is not None, "tickets of a request have gangs"
        taken = placer.place(run.ticket.gang)
        if isinstance(taken, str):
            raise WrongAnswer(f"no nodes for job {run.ticket.name!r} at {run.start}, though their number is free")
        run.claim.taken = taken
        leaves(run, partial(placer.release, taken))


def _release(free: Free, gpus: dict[tuple[str, int], list[int]], alloc: Allocation) -> None:
    """Give back the whole GPUs of a job that ran before the plan."""
    for i, hold in enumerate(alloc.holds):
        held = tuple(gpus[alloc.job, i])
        free.release(free.cluster.tree.index[hold.node], Shape(len(held), 0, 0, 0, 0), hold.pods, alloc.job, (held,))
