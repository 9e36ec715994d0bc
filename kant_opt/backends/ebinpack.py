"""E-Binpack: every gang on the fewest domains, in the tightest ones, and small pods on broken nodes first."""

from __future__ import annotations

from kant_opt.backends.packing import Packing
from kant_opt.backends.strategy import Counts, Site, Strategy
from kant_opt.view import Ints


class EBinpack(Strategy):
    """See `Packing` for the order of preference."""

    name = "e-binpack"

    def fill(self, site: Site, count: int, depth: int, domain: int) -> Counts:
        return Packing(site).place(count, depth, domain)

    def choose(self, site: Site, count: int, depth: int, domains: Ints) -> Ints:
        return Packing(site).ranked(domains, count, depth)
