"""One file per constraint; importing this package registers them all."""

from kant_opt.formulation.constraints import (
    apart,
    capacity,
    eligible,
    gang,
    quota,
    required_level,
    slices,
    spread,
    together,
    window,
)

__all__ = [
    "apart",
    "capacity",
    "eligible",
    "gang",
    "quota",
    "required_level",
    "slices",
    "spread",
    "together",
    "window",
]
