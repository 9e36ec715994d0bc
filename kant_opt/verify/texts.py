"""Short readings of names, domains and counts for messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kant_opt.fabric import Path
from kant_opt.verify.state import Presence

_SHOWN = 8


def some(names: Iterable[str]) -> str:
    """Return the first names and how many more there are."""
    listed = list(names)
    rest = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + rest


def domain_name(path: Path) -> str:
    """Return a domain's path as people write it."""
    return "/".join(path)


def pods_in(domains: Mapping[Path, Presence]) -> str:
    """Return "r1 (3 pods), r2 (1 pod)", domains in order of their paths."""
    return some(f"{domain_name(d)} ({_pods(domains[d].living + domains[d].new)})" for d in sorted(domains))


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
