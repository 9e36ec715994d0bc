"""Orders that need no more than the ticket: fifo, priority, shortest first, least predicted work first."""

from __future__ import annotations

from collections.abc import Callable

from kant_opt.planning.board import Board
from kant_opt.planning.registry import ORDERS, Key, Order
from kant_opt.planning.ticket import FOREVER, Ticket


@ORDERS.register("fifo")
class Fifo(Order):
    """By submission."""

    name = "fifo"

    def key(self, ticket: Ticket, board: Board) -> Key:
        return ticket.submit, ticket.position


@ORDERS.register("priority")
class Priority(Order):
    """Higher priority first, then by submission."""

    name = "priority"
    by_priority = True

    def key(self, ticket: Ticket, board: Board) -> Key:
        return -ticket.priority, ticket.submit, ticket.position


@ORDERS.register("shortest-first")
class ShortestFirst(Order):
    """Shortest walltime first, unknown ones last."""

    name = "shortest-first"

    def key(self, ticket: Ticket, board: Board) -> Key:
        return FOREVER if ticket.length is None else ticket.length, ticket.submit, ticket.position


def asked(ticket: Ticket) -> int | None:
    """Predict that a job runs as long as it may."""
    return ticket.length


@ORDERS.register("srpt")
class LeastWork(Order):
    """Least predicted remaining work first: run time times GPUs, as a waiting job has all of it before it.

    Nobody who runs is stopped for it. After A-SRPT, which predicts from a job's earlier runs; here `predict` is the
    walltime unless another predictor is given.
    """

    name = "srpt"

    def __init__(self, predict: Callable[[Ticket], int | None] = asked) -> None:
        self.predict = predict

    def key(self, ticket: Ticket, board: Board) -> Key:
        seconds = self.predict(ticket)
        work = FOREVER if seconds is None else seconds * max(1, ticket.gpus)
        return work, ticket.submit, ticket.position
