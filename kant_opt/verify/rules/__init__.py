"""One file per rule; importing this package registers them all."""

from kant_opt.verify.rules import (
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
