"""Prices of nodes under rents: the theorem of docs/concepts/rents.md as arithmetic on whole numbers.

A leaf with x free nodes has the rent phi(x). The price of v nodes in a leaf is the least that its rent falls by when v
of the nodes still free are let; the price of v nodes in a domain is the least over all ways to cut them into pieces,
each cut costing its traffic. In a placement the pieces of several gangs in one leaf lower its rent one after another,
by its whole rent at most: so all prices together are at most all rents and the traffic, whatever the rents are as long
as they never fall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kant_opt.fabric import Path

Prices = tuple[int, ...]
"""prices[v] of v nodes; more nodes than there are prices do not fit at all."""


def cheapest_prices(
    leaves: Mapping[Path, int], rents: Mapping[Path, Sequence[int]], cut_costs: Sequence[int], most: int
) -> list[Prices]:
    """Return per depth, from the root to the leaves, the prices of 0 to `most` nodes in the cheapest domain there.

    `leaves` are the free nodes of each leaf, `rents` those of the leaves under each parent (0 where none is given),
    `cut_costs[d]` the traffic of one more child in a domain whose path has the length d. Costs `most` x nodes of the
    largest child per distinct domain.
    """
    room: Mapping[Path, int] = leaves
    # Under one parent the largest leaf is the cheapest: the same rents, and more states to let nodes from.
    children = {
        parent: {_leaf_prices(rents.get(parent, (0,) * (size + 1)), size, most)}
        for parent, size in largest_leaves(leaves).items()
    }
    cheapest = [_least_of(set().union(*children.values()))]
    for depth in reversed(range(len(cut_costs))):
        above: Counter[Path] = Counter()
        for domain, size in room.items():
            above[domain[:-1]] += size
        known: dict[tuple[Prices, int], Prices] = {}  # alike domains cost once
        domains: dict[Path, Prices] = {}
        for domain, size in above.items():
            key = _least_of(children[domain]), min(size, most)
            if key not in known:
                known[key] = _domain_prices(*key, cut_costs[depth])
            domains[domain] = known[key]
        cheapest.append(_least_of(set(domains.values())))
        children = {}
        for domain, prices in domains.items():
            children.setdefault(domain[:-1], set()).add(prices)
        room = above
    return cheapest[::-1]


def largest_leaves(leaves: Mapping[Path, int]) -> dict[Path, int]:
    """Return the free nodes of the largest leaf under each parent."""
    largest: dict[Path, int] = {}
    for leaf, size in leaves.items():
        largest[leaf[:-1]] = max(size, largest.get(leaf[:-1], 0))
    return largest


def _leaf_prices(rents: Sequence[int], size: int, most: int) -> Prices:
    """Return the least that the rent of a leaf of `size` nodes falls by, per number of nodes let."""
    return tuple(min(rents[x] - rents[x - v] for x in range(v, size + 1)) for v in range(min(size, most) + 1))


def _domain_prices(piece: Prices, most: int, cut: int) -> Prices:
    """Return the prices of up to `most` nodes where `piece` has those of a piece in one child."""
    prices = [0]
    for nodes in range(1, most + 1):
        # One piece in one child and the rest, already priced, in pieces of its own: all ways to cut.
        ways = (piece[v] + cut + prices[nodes - v] for v in range(1, min(nodes, len(piece))))
        prices.append(min([*piece[nodes : nodes + 1], *ways]))
    return tuple(prices)


def _least_of(lists: Collection[Prices]) -> Prices:
    """Return the least price for each number of nodes over all lists that go so far."""
    longest = max(map(len, lists), default=1)
    return tuple(min(prices[v] for prices in lists if v < len(prices)) for v in range(longest)) if lists else (0,)
