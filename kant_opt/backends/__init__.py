"""Ways to place gangs, by name in BACKENDS."""

from kant_opt.backends import greedy as _greedy  # isort: skip  # fills the registry, the others after it
from kant_opt.backends import exact as _exact
from kant_opt.backends import search as _search
from kant_opt.backends.base import BACKENDS, Answer, Backend, Deadline, Event, OnEvent, Order, Task
from kant_opt.backends.outside import FromFunction, add_outside
from kant_opt.backends.placer import Failure, Placer, Taken
from kant_opt.backends.prover import Proof, find_proof
from kant_opt.backends.rents import best_rents
from kant_opt.backends.solver import Stop

__all__ = [
    "BACKENDS",
    "Answer",
    "Backend",
    "Deadline",
    "Event",
    "Failure",
    "FromFunction",
    "OnEvent",
    "Order",
    "Placer",
    "Proof",
    "Stop",
    "Taken",
    "Task",
    "best_rents",
    "find_proof",
]
add_outside()
del _exact, _greedy, _search, add_outside
