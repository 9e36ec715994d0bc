"""One file per objective term; importing this package registers them all."""

from kant_opt.formulation.terms import admitted, fragmentation, traffic

__all__ = ["admitted", "fragmentation", "traffic"]
