"""Requests for the MiniZinc twins in `models/`: the problem written a second time, for engines of another kind.

The twins share nothing with the programs of this package but `models/README.md`. What can be said of one podset and one
node alone (may it come here, what is it charged) is computed here; every rule and term that ties pods is in the `.mzn`.
"""

from kant_opt.formulation.minizinc.text import Form, goals, to_dzn, to_mzn

__all__ = ["Form", "goals", "to_dzn", "to_mzn"]
