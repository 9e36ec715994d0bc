"""The three settings of Arnold's table 1, idle and loaded: the least weighted spread for every affinity.

As rows are equal, sorting tells the optimum: with whole rows a minipod of c free nodes takes c // size of them.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from .arnold import SETTINGS, Setting, fewest_minipods

AFFINITIES = [Fraction(tenths, 10) for tenths in range(11)]


def fewest(rooms: list[int], wanted: int) -> int | None:
    """Return how many of the largest rooms hold `wanted`; None where all do not."""
    total = 0
    for used, room in enumerate(sorted(rooms, reverse=True), start=1):
        total += room
        if total >= wanted:
            return used
    return None


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_the_job_has_the_nodes_of_its_degrees(setting: Setting) -> None:
    """GPUs = DP x TP x PP, eight to a node."""
    assert setting.rows * setting.pp * 8 == setting.dp * setting.tp * setting.pp
    assert sum(setting.rooms) == setting.nodes
    assert len(setting.rooms) == setting.minipods


LARGEST = pytest.param(SETTINGS[2], marks=pytest.mark.slow, id="(iii)")


@pytest.mark.parametrize("setting", [*SETTINGS[:2], LARGEST], ids=lambda s: s.name)
def test_the_least_weighted_spread_is_proven_for_every_affinity(setting: Setting) -> None:
    """Rows whole: 2, 2 and 5 minipods (11 rows fit into one of 93 nodes, four take 44 of 46). Rows cut: 2, 2 and 4."""
    rooms, size = setting.rooms, setting.pp
    whole = fewest_minipods(rooms, setting.rows, size, cut=False, backend="cp-sat", folded=True)
    cut = fewest_minipods(rooms, setting.rows, size, cut=True)
    assert whole
    assert cut
    assert (whole.proven, cut.proven) == (True, True)
    assert (whole.minipods, cut.minipods) == {"(i)": (2, 2), "(ii)": (2, 2), "(iii)": (5, 4)}[setting.name]
    assert (whole.row_spread, cut.row_spread) == (1, 1 if setting.name == "(i)" else 2)
    fewest_whole = fewest([room // size for room in rooms], setting.rows)
    fewest_cut = fewest(list(rooms), setting.rows * size)
    assert fewest_whole
    assert fewest_cut
    for alpha in AFFINITIES:
        least = min(alpha * fewest_whole + (1 - alpha), alpha * fewest_cut + 2 * (1 - alpha))
        assert min(whole.cost(alpha), cut.cost(alpha)) == least


@pytest.mark.parametrize("setting", [*SETTINGS[:2], LARGEST], ids=lambda s: s.name)
def test_on_all_nodes_the_default_finds_the_same(setting: Setting) -> None:
    found = fewest_minipods(setting.rooms, setting.rows, setting.pp, cut=False)
    assert found
    assert (found.minipods, found.row_spread) == (fewest([c // setting.pp for c in setting.rooms], setting.rows), 1)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_on_a_loaded_cluster_too(seed: int) -> None:
    """Other jobs leave 20 to 90 nodes of each minipod; whole rows then waste up to seven nodes in each."""
    setting, draw = SETTINGS[2], Random(seed)
    rooms = [draw.randint(20, room) for room in setting.rooms]
    whole = fewest_minipods(rooms, setting.rows, setting.pp, cut=False, backend="milp", folded=True)
    least = fewest([room // setting.pp for room in rooms], setting.rows)
    assert (whole and whole.minipods, whole is None or whole.proven) == (least, True)
    cut = fewest_minipods(rooms, setting.rows, setting.pp, cut=True, folded=True)
    assert (cut and cut.minipods, cut is None or cut.proven) == (fewest(rooms, setting.rows * setting.pp), True)
