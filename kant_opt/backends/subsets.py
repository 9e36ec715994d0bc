"""Which domains share a gang that no single one holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from kant_opt.view import Ints

Shares = list[tuple[int, int]]
"""(position, amount)."""
_WORK = 200_000  # big-integer shifts or array cells; beyond it the largest are taken in order


def tightest_subset(room: Sequence[int], count: int, unit: int = 1) -> Shares:
    """Return the fewest entries that hold `count` together, of these the set with the least room left over.

    `count` and all rooms are multiples of `unit`; sum(room) >= count. The largest entry chosen carries what is left
    over. Exact by subset sums of a given cardinality up to a work limit, else the largest and the tightest last.

    >>> tightest_subset([7, 6, 4, 3], 10)
    [(1, 6), (2, 4)]
    >>> tightest_subset([8, 8, 8], 10)
    [(0, 2), (1, 8)]
    """
    order = sorted(range(len(room)), key=lambda i: (-room[i], i))
    number = _fewest([room[i] for i in order], count)
    if number == 1:
        return _largest(room, order, number, count)
    order = _no_more_of_each(room, order, number)
    if number * len(order) > _WORK:
        return _largest(room, order, number, count)
    return _less([(i, room[i]) for i in _exact(room, order, number, count, unit)], count)


def even_shares(room: Sequence[int], count: int, unit: int = 1, used: Collection[int] = ()) -> Shares:
    """Return the fewest entries that hold `count` (those `used` already, then the largest), and give each as equal a
    share as their rooms and multiples of `unit` allow.

    >>> even_shares([15, 13, 10], 23)
    [(0, 12), (1, 11)]
    >>> even_shares([5, 9, 9], 20, 2)
    [(0, 4), (1, 8), (2, 8)]
    """
    order = sorted((i for i in range(len(room)) if room[i] >= unit), key=lambda i: (i not in used, -room[i], i))
    chosen = order[: _fewest([room[i] // unit for i in order], count // unit)]
    left, shares = count // unit, []
    for n, i in enumerate(
        sorted(chosen, key=lambda i: (room[i], -i))
    ):  # the smallest first: what it lacks, others take
        share = min(room[i] // unit, left // (len(chosen) - n))
        shares.append((i, share * unit))
        left -= share
    return sorted(shares)


def _fewest(sizes: Sequence[int], count: int) -> int:
    total = 0
    for number, size in enumerate(sizes, 1):
        total += size
        if total >= count:
            return number
    raise ValueError(f"no room for {count} in {total}")


def _no_more_of_each(room: Sequence[int], order: list[int], number: int) -> list[int]:
    """Return `order` with at most `number` entries of equal room: more are never chosen together."""
    seen: dict[int, int] = {}
    kept = []
    for i in order:
        seen[room[i]] = seen.get(room[i], 0) + 1
        if seen[room[i]] <= number:
            kept.append(i)
    return kept


def _largest(room: Sequence[int], order: list[int], number: int, count: int) -> Shares:
    chosen = [(i, room[i]) for i in order[: number - 1]]
    rest = count - sum(amount for _, amount in chosen)
    last = min((i for i in order[number - 1 :] if room[i] >= rest), key=lambda i: (room[i], i))
    return [*chosen, (last, rest)]


def _exact(room: Sequence[int], order: list[int], number: int, count: int, unit: int) -> list[int]:
    """Return `number` positions whose rooms have the least sum >= count; bit s of sums[k] = k entries can sum to s."""
    useful = [i for i in order if room[i]]
    layers: list[list[int]] = [[1] + [0] * number]
    for i in useful:
        sums = layers[-1]
        layers.append([sums[0], *(sums[k] | sums[k - 1] << room[i] // unit for k in range(1, number + 1))])
    reachable = layers[-1][number] >> count // unit
    total = count // unit + (reachable & -reachable).bit_length() - 1
    chosen: list[int] = []
    left = number
    for layer, i in zip(reversed(layers[:-1]), reversed(useful), strict=True):
        if layer[left] >> total & 1:
            continue  # reachable without it
        chosen.append(i)
        total -= room[i] // unit
        left -= 1
    return sorted(chosen)


def fewest_inner(room: Sequence[int], inner: Sequence[Ints | None], count: int, unit: int = 1) -> Shares:
    """Return the fewest entries that hold `count`, of these the set that needs the fewest inner domains in all.

    `inner[i]` are the rooms of entry i's own children, largest first (None where it has no room); amounts are
    multiples of `unit`. Exact by dynamic programming over (entries, inner domains) -> most pods, up to a work limit.
    """
    order = sorted((i for i in range(len(room)) if room[i]), key=lambda i: (-room[i], i))
    number = _fewest([room[i] for i in order], count)
    plain = _largest(room, order, number, count)
    reach = {i: _most_by_children(inner[i], room[i], unit) for i in order}
    most = sum(int(np.searchsorted(reach[i], amount)) + 1 for i, amount in plain)
    if sum(map(len, reach.values())) * (number + 1) * (most + 1) > 100 * _WORK:
        return plain
    start = np.full((number + 1, most + 1), -1, dtype=np.int64)
    start[0] = 0
    layers = [start]
    for pods_by_children in reach.values():
        before, after = layers[-1], layers[-1].copy()
        for k, pods in enumerate(pods_by_children[:most].tolist(), 1):
            gain = np.where(before[:-1, :-k] >= 0, before[:-1, :-k] + pods, -1)
            np.maximum(after[1:, k:], gain, out=after[1:, k:])
        layers.append(after)
    left = int(np.flatnonzero(layers[-1][number] >= count)[0])
    return _less(_trace(layers, reach, number, left), count)


def _most_by_children(inner: Ints | None, room: int, unit: int) -> Ints:
    """Return the most pods that the k largest children take, k = 1, 2, ...; up to the first k that takes all."""
    assert inner is not None
    pods = np.minimum(np.cumsum(inner), room) // unit * unit
    return pods[: int(np.searchsorted(pods, pods[-1])) + 1]


def _trace(layers: list[Ints], reach: dict[int, Ints], entries: int, left: int) -> Shares:
    chosen: Shares = []
    for n, i in reversed(list(enumerate(reach))):
        value, before = layers[n + 1][entries, left], layers[n]
        if before[entries, left] == value:
            continue  # as many pods without it
        for k, pods in enumerate(reach[i][:left].tolist(), 1):
            if before[entries - 1, left - k] >= 0 and before[entries - 1, left - k] + pods == value:
                chosen.append((i, pods))
                entries, left = entries - 1, left - k
                break
    return chosen


def _less(chosen: Shares, count: int) -> Shares:
    """Return the shares with what is more than `count` taken off the largest."""
    over = sum(amount for _, amount in chosen) - count
    largest = max(chosen, key=lambda share: (share[1], -share[0]))
    return sorted((i, amount - over * (i == largest[0])) for i, amount in chosen)
