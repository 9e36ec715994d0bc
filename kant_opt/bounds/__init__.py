"""Values that no placement can beat, proven by counting; solvers add theirs later."""

from kant_opt.bounds.counting import Bound, Facts, counting_bounds

__all__ = ["Bound", "Facts", "counting_bounds"]
