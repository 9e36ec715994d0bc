"""One part of a gang into the fabric: fewest domains from the top, then the tightest, then broken nodes first.

The rules of counting are in the capacities (see view.capacities), so that every number handed down is one that fits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kant_opt.backends.strategy import Counts, Site
from kant_opt.backends.subsets import even_shares, fewest_inner, tightest_subset
from kant_opt.view import Ints, Mask


class Packing:
    """E-Binpack for one part at one site."""

    def __init__(self, site: Site) -> None:
        self.site, self.free, self.part, self.room = site, site.free, site.part, site.room
        self.used = site.used or None
        self.tree = site.tree
        at_node = self.tree.node_depth in (site.part.required, site.part.preferred)
        self.innermost = self.tree.node_depth if at_node else self.tree.leaf_depth

    def place(self, count: int, depth: int = 0, domain: int = 0) -> Counts:
        """Return where `count` pods go inside one domain, which has room for them."""
        if count == 0:
            return []
        if self.part.balance_depth > depth:
            return self._place_evenly(count, depth, domain)
        if self.used is not None and depth < self.innermost:
            inside = self._used_domain(count, depth, domain)
            if inside is not None:
                return self.place(count, *inside)
        for inner in range(self.innermost, depth, -1):
            run = self.site.inside(depth, domain, inner)
            holding = np.flatnonzero(self.room[inner][run] >= count) + run.start
            if len(holding):
                return self._fill(count, inner, self.tightest(holding, count, inner))
        return self._fill(count, depth, domain)

    def _place_evenly(self, count: int, depth: int, domain: int) -> Counts:
        """Return `count` pods over the fewest domains of the preferred level, as evenly as can be, inside the
        innermost domain that allows it; of several the one with the largest least share, then the tightest."""
        level, unit = self.part.balance_depth, self.site.unit(self.part.balance_depth - 1)
        for outer in range(level, depth - 1, -1):
            run = self.site.inside(depth, domain, outer)
            holding = np.flatnonzero(self.room[outer][run] >= count) + run.start
            if len(holding):
                break
        options = []
        for rank, chosen in enumerate(self.ranked(holding, count, outer).tolist()):
            inner = self.site.inside(outer, chosen, level)
            used = set() if self.used is None else set(np.flatnonzero(self.used[level][inner]).tolist())
            shares = even_shares(self.room[level][inner].tolist(), count, unit, used)
            options.append(
                (len({i for i, _ in shares} - used), -min(number for _, number in shares), rank, inner.start, shares)
            )
        *_, start, shares = min(options)
        found: Counts = []
        for i, number in shares:
            found += self.place(number, level, start + i)
        return found

    def tightest(self, domains: Ints, count: int, depth: int) -> int:
        """Return the first of `ranked`."""
        return int(self.ranked(domains, count, depth)[0])

    def ranked(self, domains: Ints, count: int, depth: int) -> Ints:
        """Return `domains` at `depth`, each with room for `count`, in the order in which they should take them.

        In this order: already used by the gang; fewest domains one level further in and these with the least room
        left over; fewest pods that open a fresh node; for a single pod a node that it fills up; least room left; in
        use rather than untouched; least room left in each parent outwards; least free of anything; by path where all
        is equal.
        """
        tree, free = self.tree, self.free
        keys: list[Ints] = []
        if self.used is not None:
            keys.append((~self.used[depth][domains]).astype(np.int64))
        if depth < tree.leaf_depth:
            keys += self._children_needed(domains, count, depth)
        better = self._better_nodes()
        if better is not None:
            room = tree.sums(np.where(better, self.room[tree.node_depth], 0), depth)
            keys.append(np.maximum(0, count - room[domains]))
        if better is not None and count == 1:
            filled = better & (free.whole == self.part.shape.gpus) & (free.spare == free.whole * free.cluster.unit)
            keys.append(-np.minimum(1, tree.sums(filled & (self.room[tree.node_depth] > 0), depth)[domains]))
        keys.append(self.room[depth][domains])
        keys.append(-np.minimum(1, tree.sums(free.is_used(), depth)[domains]))
        parent, up = domains, depth
        while up > 0:
            parent, up = tree.parent[up][parent], up - 1
            keys.append(self.room[up][parent])
        keys.append(tree.sums(free.spare, depth)[domains])
        return domains[np.lexsort(tuple(reversed(keys)))]

    # -- choosing --------------------------------------------------------------------------------

    def _used_domain(self, count: int, depth: int, domain: int) -> tuple[int, int] | None:
        """Return the innermost domain the gang uses already that holds all of `count`."""
        assert self.used is not None
        for inner in range(self.innermost, depth, -1):
            run = self.site.inside(depth, domain, inner)
            holding = np.flatnonzero(self.used[inner][run] & (self.room[inner][run] >= count)) + run.start
            if len(holding):
                return inner, self.tightest(holding, count, inner)
        return None

    def _children_needed(self, domains: Ints, count: int, depth: int) -> tuple[Ints, Ints]:
        """Return the fewest children that hold `count` in each domain, and for the domains with the fewest of all the
        least room that these leave over."""
        rooms = [self.room[depth + 1][self.tree.children(depth, domain)] for domain in domains.tolist()]
        number = np.array([np.searchsorted(np.cumsum(np.sort(room)[::-1]), count) + 1 for room in rooms])
        over = np.zeros(len(domains), dtype=np.int64)
        if depth + 1 == self.tree.leaf_depth:
            for i in np.flatnonzero(number == number.min()).tolist():
                chosen = tightest_subset(rooms[i].tolist(), count, self.site.unit(depth))
                over[i] = sum(int(rooms[i][k]) for k, _ in chosen) - count
        return number, over

    def _better_nodes(self) -> Mask | None:
        """Return the nodes that pods of this shape should take first; None where they take whole nodes anyway."""
        shape, free = self.part.shape, self.free
        if not shape.uses_gpu:
            return np.asarray(free.spare == 0)  # a CPU pod on a node with free GPUs may strand them
        if free.cluster.whole_node(shape):
            return None
        better: Mask = free.is_used() | (free.cluster.gpus == shape.gpus)
        return better

    # -- filling ---------------------------------------------------------------------------------

    def _fill(self, count: int, depth: int, domain: int) -> Counts:
        """Return where `count` pods go in a domain of which no part nearer to the node holds them all."""
        if depth == self.tree.node_depth:
            return [(domain, count)]
        if depth == self.tree.leaf_depth:
            return list(self._fill_nodes(count, self.tree.nodes_of(depth, domain)))
        found: Counts = []
        for child, number in self._split(count, depth, domain):
            found += self.place(number, depth + 1, child)
        return found

    def _split(self, count: int, depth: int, domain: int) -> Iterator[tuple[int, int]]:
        """Yield (child, pods): the gang's own domains first, then the fewest others, which leave the least over."""
        run = self.tree.children(depth, domain)
        room, mine = self._used_first(count, depth + 1, run)
        yield from mine
        count -= sum(taken for _, taken in mine)
        if not count:
            return
        unit = self.site.unit(depth)
        if depth + 1 == self.tree.leaf_depth:
            chosen = tightest_subset(room.tolist(), count, unit)
        else:
            inner = [
                np.sort(self.room[depth + 2][self.tree.children(depth + 1, run.start + i)])[::-1] if room[i] else None
                for i in range(len(room))
            ]
            chosen = fewest_inner(room.tolist(), inner, count, unit)
        for i, number in chosen:
            yield run.start + i, number

    def _used_first(self, count: int, depth: int, run: slice) -> tuple[Ints, Counts]:
        """Return the room of domains at `depth`, the gang's own emptied, and what these take of `count`."""
        room = self.room[depth][run].copy()
        mine: Counts = []
        if self.used is not None:
            for i in np.flatnonzero(self.used[depth][run]).tolist():
                taken = min(count, int(room[i]))
                room[i] = 0
                count -= taken
                if taken:
                    mine.append((run.start + i, taken))
        return room, mine

    def _fill_nodes(self, count: int, run: slice) -> Iterator[tuple[int, int]]:
        """Yield (node, pods) inside one leaf: where they strand the fewest GPUs for lack of CPU, then better nodes,
        of these the fullest first."""
        room = self.room[self.tree.node_depth][run]
        nodes = np.flatnonzero(room)
        if self.innermost == self.tree.node_depth:
            room, mine = self._used_first(count, self.tree.node_depth, run)
            yield from mine
            count -= sum(taken for _, taken in mine)
            for i, number in (
                tightest_subset(room.tolist(), count, self.site.unit(self.tree.leaf_depth)) if count else ()
            ):
                yield run.start + i, number
            return
        if not self.part.shape.uses_gpu:
            plain = nodes[self.free.capacity[run][nodes] == 0]
            if count > 1 and int(room[plain].sum()) >= count:  # the fewest nodes without GPUs
                for i, number in tightest_subset(room[plain].tolist(), count, 1):
                    yield run.start + int(plain[i]), number
                return
        free = self.free
        stranded = free.stranded(self.part.shape, nodes + run.start)
        keys = [free.spare[run][nodes], room[nodes], free.cpu[run][nodes], free.memory[run][nodes]]
        better = self._better_nodes()
        if better is not None:
            keys.insert(0, (~better[run][nodes]).astype(np.int64))
        keys.insert(0, stranded)
        order = np.lexsort(tuple(reversed(keys)))
        for i in nodes[order].tolist():
            number = min(count, int(room[i]))
            yield run.start + i, number
            count -= number
            if not count:
                return
