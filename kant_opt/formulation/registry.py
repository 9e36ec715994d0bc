"""The constraints and objective terms that formulations are made of, by name."""

from __future__ import annotations

from collections.abc import Callable

from kant_opt.formulation.vars import Terms, Vars
from kant_opt.registry import Registry

Constraint = Callable[[Vars], None]
"""Adds the rows of one rule. Its name is that of the verifier's rule."""

Term = Callable[[Vars], dict[str, tuple[Terms, int]]]
"""Returns the levels of one term by name: coefficients and constant. Its name is that of the measure."""

CONSTRAINTS: Registry[Constraint] = Registry("constraint")
TERMS: Registry[Term] = Registry("objective term")
