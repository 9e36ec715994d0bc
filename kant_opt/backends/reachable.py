"""Exact answer for one gang of several shapes: which counts of pods can each domain host at once?

For K parts, a domain's *reachable set* holds every vector of new pods (p_1 .. p_K) that it can host under all rules
inside it. A node's set follows from its resources; a domain's is the sum of its children's sets, filtered by the
rules of its own level, each of which speaks of the counts inside one domain: slices (living + new a multiple of the
size), spread (at most k), scopes (all or none of the parts), apart (pods of at most one set). So the gang fits exactly
where its target vector is reachable in the whole fabric. Equal nodes and domains share one set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kant_opt.backends.strategy import Counts
from kant_opt.view import Free, Gang, GpuIndices, Ints, Mask, Part, domain_counts

Vector = tuple[int, ...]
Reach = NDArray[np.bool_]
"""reach[p_1, .., p_K]: the vector is reachable; shape (target_1 + 1, .., target_K + 1)."""


class SearchLimit(Exception):
    """The work limit was reached before the answer was known."""


@dataclass(eq=False)
class _Domain:
    reach: Reach
    children: list[_Domain]
    node: int = -1


class ExactGang:
    """The reachable sets of one gang on the free room as it is. Counts `work` in vectors looked at, and ends as soon as
    `is_late` says so.
    """

    def __init__(
        self,
        free: Free,
        gang: Gang,
        open_nodes: Mask | None,
        work: int,
        is_late: Callable[[], bool] = lambda: False,
    ) -> None:
        self.free, self.tree, self.gang = free, free.cluster.tree, gang
        self.parts = [gang.parts[i] for i in gang.open_parts]
        self.position = {part: k for k, part in enumerate(gang.open_parts)}
        self.target: Vector = tuple(part.target for part in self.parts)
        self.open_nodes = open_nodes
        self.work, self.is_late = work, is_late
        self._sums: dict[tuple[bytes, bytes], Reach] = {}
        self._nodes: dict[tuple[object, ...], Reach] = {}
        self._living: dict[tuple[int, int], Ints] = {}
        self.size = tuple(t + 1 for t in self.target)

    def place(self, target: Vector | None = None) -> list[Counts] | None:
        """Return where the pods of each open part go, None where the gang cannot be placed.

        Takes the innermost domain that can host the whole gang, the one with the least room. Raises SearchLimit.
        """
        target = target or self.target
        if np.prod(self.size, dtype=np.float64) > self.work:
            raise SearchLimit
        root = self._build(target)
        if not root.reach[target]:
            return None
        found: list[Counts] = [[] for _ in self.parts]
        self._trace(self._innermost(root, target), target, found)
        return found

    # -- building the sets -----------------------------------------------------------------------

    def _build(self, target: Vector) -> _Domain:
        room = [self.free.slots(part.shape, part.eligible) for part in self.parts]
        slots = np.minimum(np.stack(room), np.array(self.target)[:, None])
        if self.open_nodes is not None:
            slots = np.where(self.open_nodes, slots, 0)
        level: list[_Domain] = [
            _Domain(self._filter(self._node_set(n, slots[:, n]), self.tree.node_depth, n, target), [], n)
            for n in range(len(self.tree.names))
        ]
        for depth in range(self.tree.node_depth - 1, -1, -1):
            level = [
                self._domain(level[self.tree.children(depth, domain)], depth, domain, target)
                for domain in range(self.tree.num_domains(depth))
            ]
        return level[0]

    def _domain(self, children: list[_Domain], depth: int, domain: int, target: Vector) -> _Domain:
        total = self._origin()
        for child in children:
            total = self._sum(total, child.reach)
        return _Domain(self._filter(total, depth, domain, target), children)

    def _origin(self) -> Reach:
        origin = np.zeros(self.size, dtype=bool)
        origin[(0,) * len(self.size)] = True
        return origin

    def _sum(self, a: Reach, b: Reach) -> Reach:
        key = (a.tobytes(), b.tobytes())
        found = self._sums.get(key)
        if found is None:
            small, large = sorted((a, b), key=np.count_nonzero)
            vectors = np.argwhere(small)
            self._spend(len(vectors) * large.size)
            found = np.zeros(self.size, dtype=bool)
            for vector in vectors.tolist():
                into = tuple(slice(v, None) for v in vector)
                out_of = tuple(slice(None, s - v) for s, v in zip(self.size, vector, strict=True))
                found[into] |= large[out_of]
            self._sums[key] = found
        return found

    def _spend(self, amount: int) -> None:
        self.work -= amount
        if self.work < 0 or self.is_late():
            raise SearchLimit

    def _node_set(self, node: int, slots: Ints) -> Reach:
        free = self.free
        gpus = tuple(sorted(free.units[node].tolist())) if any(p.shape.has_share for p in self.parts) else ()
        key = (
            tuple(slots.tolist()),
            int(free.cluster.unit[node]) if gpus else 0,
            gpus,
            int(free.whole[node]),
            int(free.cpu[node]),
            int(free.memory[node]),
            int(free.pods[node]),
        )
        found = self._nodes.get(key)
        if found is None:
            found = np.zeros(self.size, dtype=bool)
            ranges = [range(s + 1) for s in slots.tolist()]
            self._spend(int(np.prod([len(r) for r in ranges])))
            for vector in product(*ranges):
                found[vector] = self._fits(node, vector)
            self._nodes[key] = found
        return found

    def _fits(self, node: int, vector: Vector) -> bool:
        free = self.free
        shapes = [part.shape for part in self.parts]
        if sum(v * s.cpu for v, s in zip(vector, shapes, strict=True)) > free.cpu[node]:
            return False
        if sum(v * s.memory for v, s in zip(vector, shapes, strict=True)) > free.memory[node]:
            return False
        if sum(vector) > free.pods[node]:
            return False
        whole = sum(v * s.gpus for v, s in zip(vector, shapes, strict=True))
        if whole > free.whole[node]:
            return False
        if not any(s.has_share for s in shapes):
            return True
        return self._assign(node, vector) is not None

    def _assign(self, node: int, vector: Vector) -> list[list[GpuIndices]] | None:
        """Return GPU indices per part and pod, None where the shares cannot be packed beside the whole GPUs."""
        free = self.free.units[node].tolist()
        unit = int(self.free.cluster.unit[node])
        found: list[list[GpuIndices]] = [[] for _ in self.parts]
        whole = [i for i, units in enumerate(free) if units == unit]
        shares: list[tuple[int, int]] = []
        for k, (count, part) in enumerate(zip(vector, self.parts, strict=True)):
            shape = part.shape
            if shape.gpus:
                for _ in range(count):
                    found[k].append(tuple(whole[: shape.gpus]))
                    del whole[: shape.gpus]
            elif shape.has_share:
                shares += [(shape.milli * unit // 1000 if shape.milli else 1000 * shape.mib, k)] * count
        for pod in (pod for pods in found for pod in pods):
            for i in pod:
                free[i] = 0
        return found if self._pack(sorted(shares, reverse=True), free, found) else None

    def _pack(self, shares: Sequence[tuple[int, int]], free: list[int], found: list[list[GpuIndices]]) -> bool:
        """Put the shares (largest first) on the GPUs, trying one GPU of each free size in turn."""
        if not shares:
            return True
        self._spend(1)
        size, k = shares[0]
        for units in sorted({f for f in free if f >= size}):
            gpu = free.index(units)
            free[gpu] -= size
            found[k].append((gpu,))
            if self._pack(shares[1:], free, found):
                return True
            found[k].pop()
            free[gpu] += size
        return False

    def with_gpus(self, found: list[Counts]) -> Iterator[tuple[int, int, int, tuple[GpuIndices, ...] | None]]:
        """Yield (node, part, pods, GPU indices per pod or None for any) of an answer of `place`."""
        counts: dict[int, list[int]] = {}
        for k, pods in enumerate(found):
            for node, count in pods:
                counts.setdefault(node, [0] * len(self.parts))[k] += count
        shares = any(part.shape.has_share for part in self.parts)
        for node, vector in counts.items():
            gpus = self._assign(node, tuple(vector)) if shares else None
            for k, count in enumerate(vector):
                if count:
                    yield node, k, count, tuple(gpus[k]) if gpus and self.parts[k].shape.uses_gpu else None

    # -- the rules of one level ------------------------------------------------------------------

    def _filter(self, reach: Reach, depth: int, domain: int, target: Vector) -> Reach:
        keep = reach
        for k, part in enumerate(self.parts):
            allowed = self._allowed_counts(part, k, depth, domain)
            if allowed is not None:
                shape = [1] * len(self.parts)
                shape[k] = -1
                keep = keep & allowed.reshape(shape)
        for scope_depth, members in self.gang.scopes:
            if scope_depth == depth:
                keep = keep & self._all_or_none(members, depth, domain, target)
        for apart_depth, sets in self.gang.apart:
            if apart_depth == depth:
                keep = keep & self._at_most_one(sets, depth, domain)
        return keep

    def _allowed_counts(self, part: Part, k: int, depth: int, domain: int) -> Mask | None:
        new = np.arange(self.target[k] + 1)
        allowed: Mask | None = None
        for level, size in part.slices:
            if level == depth:
                fits = (new + self._alive(part, depth)[domain]) % size == 0
                allowed = fits if allowed is None else allowed & fits
        for level, most in part.spread:
            if level == depth:
                fits = new + self._alive(part, depth)[domain] <= most
                allowed = fits if allowed is None else allowed & fits
        return allowed

    def _alive(self, part: Part, depth: int) -> Ints:
        key = (id(part), depth)
        if key not in self._living:
            self._living[key] = domain_counts(self.tree, part.living, depth)
        return self._living[key]

    def _grid(self, k: int) -> Ints:
        shape = [1] * len(self.parts)
        shape[k] = -1
        return np.arange(self.target[k] + 1).reshape(shape)

    def _all_or_none(self, members: frozenset[int], depth: int, domain: int, target: Vector) -> Mask:
        """Return where the members' pods, living and new, are all in this domain or all elsewhere."""
        everything, nothing = np.ones(self.size, dtype=bool), np.ones(self.size, dtype=bool)
        for i in sorted(members):
            part = self.gang.parts[i]
            alive, total = int(self._alive(part, depth)[domain]), sum(part.living.values())
            if i in self.position:
                k = self.position[i]
                everything &= self._grid(k) + alive == target[k] + total
                nothing &= self._grid(k) + alive == 0
            else:
                everything &= alive == total
                nothing &= alive == 0
        return everything | nothing

    def _at_most_one(self, sets: tuple[frozenset[int], ...], depth: int, domain: int) -> Mask:
        present = np.zeros(self.size, dtype=np.int64)
        new = np.zeros(self.size, dtype=bool)
        for members in sets:
            for i in members & self.position.keys():
                new |= self._grid(self.position[i]) > 0
            here = np.zeros(self.size, dtype=bool)
            for i in sorted(members):
                alive = int(self._alive(self.gang.parts[i], depth)[domain])
                here |= (self._grid(self.position[i]) + alive > 0) if i in self.position else alive > 0
            present += here
        keep: Mask = (present <= 1) | ~new  # what runs already is not ours to judge
        return keep

    # -- from the sets to a placement ------------------------------------------------------------

    def _innermost(self, root: _Domain, target: Vector) -> _Domain:
        current = root
        while True:
            inside = [c for c in current.children if c.reach[target]]
            if not inside or (inside[0].node >= 0 and self.tree.node_depth not in self._wished()):
                return current
            current = min(inside, key=lambda c: int(np.count_nonzero(c.reach)))

    def _wished(self) -> set[int]:
        return {p.preferred for p in self.parts} | {p.required for p in self.parts}

    def _trace(self, domain: _Domain, target: Vector, found: list[Counts]) -> None:
        if not any(target):
            return
        if domain.node >= 0:
            for k, count in enumerate(target):
                if count:
                    found[k].append((domain.node, count))
            return
        prefix = [self._origin()]
        for child in domain.children:
            prefix.append(self._sum(prefix[-1], child.reach))
        parts: list[tuple[_Domain, Vector]] = []
        for before, child in zip(reversed(prefix[:-1]), reversed(domain.children), strict=True):
            given = next(v for v in _fullest(child.reach) if _reachable(before, target, v))
            target = tuple(t - v for t, v in zip(target, given, strict=True))
            parts.append((child, given))
        for child, given in reversed(parts):
            self._trace(child, given, found)


def _fullest(reach: Reach) -> Iterator[Vector]:
    vectors = np.argwhere(reach)
    order = np.argsort(-vectors.sum(axis=1), kind="stable")
    for row in vectors[order]:
        yield tuple(row.tolist())


def _reachable(before: Reach, target: Vector, given: Vector) -> bool:
    rest = tuple(t - v for t, v in zip(target, given, strict=True))
    return min(rest) >= 0 and bool(before[rest])
