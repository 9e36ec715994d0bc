"""Cable bundles between two ends, from lists that may tell each link from both sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kant_opt.schema import Link


@dataclass(frozen=True)
class Bundle:
    """All cables between two ends."""

    gbps: int
    """Bandwidth of one cable, Gbit/s; of the slowest where they differ."""
    links: int
    """Number of cables."""
    total_gbps: int


def bundles(links: Iterable[Link]) -> dict[tuple[str, str], Bundle]:
    """Return the bundle of each pair of ends, the pair sorted by name.

    Entries of one direction add up; a link told from both sides counts once, the larger telling is taken. Cables from
    an end to itself are left out.

    >>> bundles([Link(a="leaf", b="spine", links=2), Link(a="spine", b="leaf", links=2)])
    {('leaf', 'spine'): Bundle(gbps=400, links=2, total_gbps=800)}
    """
    told: dict[tuple[str, str], Bundle] = {}
    for link in links:
        if link.a == link.b:
            continue
        new = Bundle(link.gbps, link.links, link.gbps * link.links)
        told[link.a, link.b] = _sum(told[link.a, link.b], new) if (link.a, link.b) in told else new
    found: dict[tuple[str, str], Bundle] = {}
    for (a, b), bundle in told.items():
        pair = (a, b) if a <= b else (b, a)
        other = found.get(pair)
        if other is None or (other.total_gbps, other.links) < (bundle.total_gbps, bundle.links):
            found[pair] = bundle
    return dict(sorted(found.items()))


def _sum(one: Bundle, other: Bundle) -> Bundle:
    return Bundle(min(one.gbps, other.gbps), one.links + other.links, one.total_gbps + other.total_gbps)
