"""Ways to place gangs, by name in BACKENDS."""

from kant_opt.backends import greedy as _greedy  # isort: skip  # fills the registry, the others after it
from kant_opt.backends import exact as _exact
from kant_opt.backends import search as _search
from kant_opt.backends.base import BACKENDS, Answer, Backend, Deadline, Order, Task
from kant_opt.backends.placer import Failure, Placer, Taken
from kant_opt.backends.rents import best_rents

__all__ = ["BACKENDS", "Answer", "Backend", "Deadline", "Failure", "Order", "Placer", "Taken", "Task", "best_rents"]
del _exact, _greedy, _search
