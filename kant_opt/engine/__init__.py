"""From a request to a verified outcome."""

from kant_opt.engine.place import place
from kant_opt.engine.relax import relaxations
from kant_opt.engine.session import Session

__all__ = ["Session", "place", "relaxations"]
