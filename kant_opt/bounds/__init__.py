"""Values that no placement can beat, proven without a solver or whatever a solver says."""

from kant_opt.bounds.counting import counting_bounds, least_traffic
from kant_opt.bounds.facts import Bound, Facts
from kant_opt.bounds.rents import Market, markets
from kant_opt.bounds.sets import cheapest_sets
from kant_opt.bounds.weighted import weighted_bound

__all__ = [
    "Bound",
    "Facts",
    "Market",
    "cheapest_sets",
    "counting_bounds",
    "least_traffic",
    "markets",
    "weighted_bound",
]
