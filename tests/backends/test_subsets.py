"""Which domains share a gang: against all subsets."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.backends.subsets import even_shares, fewest_inner, tightest_subset

CALM = settings(deadline=None, derandomize=True, max_examples=120)
ROOMS = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(sum)


def fewest(room: list[int], count: int) -> int:
    return next(k for k in range(1, len(room) + 1) if sum(sorted(room)[-k:]) >= count)


@CALM
@given(ROOMS, st.data())
def test_tightest_subset_is_the_best_of_all_subsets(room: list[int], data: st.DataObject) -> None:
    unit = data.draw(st.sampled_from((1, 2, 3)))
    room = [r * unit for r in room]
    count = data.draw(st.integers(1, sum(room) // unit)) * unit
    shares = dict(tightest_subset(room, count, unit))
    assert sum(shares.values()) == count
    assert all(0 < number <= room[i] and number % unit == 0 for i, number in shares.items())
    number = fewest(room, count)
    assert len(shares) == number
    least = min(s for chosen in combinations(room, number) if (s := sum(chosen)) >= count)
    assert sum(room[i] for i in shares) == least


@CALM
@given(ROOMS, st.data())
def test_even_shares_are_few_and_as_even_as_rooms_allow(room: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, sum(room)))
    shares = dict(even_shares(room, count))
    assert sum(shares.values()) == count
    assert all(0 < number <= room[i] for i, number in shares.items())
    number = fewest(room, count)
    assert len(shares) == number
    best = (
        max(
            min(split)
            for chosen in combinations(room, number)
            for split in product(*(range(1, r + 1) for r in chosen))
            if sum(split) == count
        )
        if number < 4
        else min(shares.values())
    )
    assert min(shares.values()) == best


@CALM
@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=4), st.data())
def test_fewest_inner_needs_no_more_inner_domains_than_any_choice(
    children: list[list[int]], data: st.DataObject
) -> None:
    room = [sum(c) for c in children]
    if not sum(room):
        return
    count = data.draw(st.integers(1, sum(room)))
    inner = [np.array(sorted(c, reverse=True)) if sum(c) else None for c in children]
    shares = dict(fewest_inner(room, inner, count))
    assert sum(shares.values()) == count
    assert all(0 < number <= room[i] for i, number in shares.items())
    number = fewest(room, count)
    assert len(shares) == number

    def needed(i: int, pods: int) -> int:
        return fewest(children[i], pods)

    used = sum(needed(i, pods) for i, pods in shares.items())
    best = min(
        sum(sizes)
        for chosen in combinations(range(len(room)), number)
        for sizes in product(*(range(1, len(children[i]) + 1) for i in chosen))
        if sum(sum(sorted(children[i])[-k:]) for i, k in zip(chosen, sizes, strict=True)) >= count
    )
    assert used == best
