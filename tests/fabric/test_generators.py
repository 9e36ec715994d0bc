"""Generated fabrics: counts by formula, names that sort, sizes that are refused."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise

import pytest

from kant_opt.errors import InputError
from kant_opt.fabric import (
    GENERATORS,
    build_fabric,
    describe,
    fat_tree,
    irregular,
    leaf_spine,
    nvl72_racks,
    rail_optimised,
)

CASES = {
    "leaf-spine": (leaf_spine(spines=3, leaves=4, nodes_per_leaf=5), {"spine": 3, "leaf": 12}, 60),
    "fat-tree": (fat_tree(cores=2, spines=3, leaves=4, nodes_per_leaf=5), {"core": 2, "spine": 6, "leaf": 24}, 120),
    "nvl72-racks": (nvl72_racks(racks=11), {"block": 2, "hbd": 11}, 198),
    "irregular": (irregular(leaf_sizes=range(1, 12)), {"spine": 1, "leaf": 11}, 66),
    "rail-optimised": (rail_optimised(units=11, nodes_per_unit=2, spines=3), {"spine": 1, "leaf": 11}, 22),
}


@pytest.mark.parametrize("name", GENERATORS)
def test_counts_are_products(name: str) -> None:
    (spec, nodes), domains, num_nodes = CASES[name]
    found = describe(build_fabric(spec, nodes), nodes)
    assert found.domains == domains
    assert found.nodes == num_nodes
    assert found.gpus == num_nodes * (4 if name == "nvl72-racks" else 8)


@pytest.mark.parametrize("name", GENERATORS)
def test_names_sort_as_they_count(name: str) -> None:
    (spec, nodes), _, _ = CASES[name]
    assert [node.name for node in nodes] == list(build_fabric(spec, nodes).nodes)
    assert all(a.name < b.name for a, b in pairwise(nodes))


def test_equal_leaves_are_a_leaf_spine() -> None:
    assert irregular(leaf_sizes=[4, 4, 4]) == leaf_spine(leaves=3, nodes_per_leaf=4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: leaf_spine(leaves=0, nodes_per_leaf=4), "leaves is 0"),
        (lambda: leaf_spine(leaves=2, nodes_per_leaf=-1), "nodes_per_leaf is -1"),
        (lambda: irregular(leaf_sizes=[3, 0]), "leaf_sizes is 0"),
        (lambda: irregular(leaf_sizes=[]), "leaf_sizes is 0"),
        (lambda: rail_optimised(units=1, nodes_per_unit=1, spines=1, gbps=0), "gbps is 0"),
        (lambda: leaf_spine(leaves=1, nodes_per_leaf=1, gpus=-8), "gpus is -8"),
        (lambda: fat_tree(cores=10**4, spines=10**4, leaves=1, nodes_per_leaf=1), "more than 1000000"),
    ],
)
def test_sizes_that_cannot_be_meant_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_describe_of_nothing_counts_nothing() -> None:
    spec, _ = leaf_spine(leaves=1, nodes_per_leaf=1)
    found = describe(build_fabric(spec, []), [])
    assert (found.nodes, found.gpus, found.domains["leaf"], found.nodes_per_domain["leaf"]) == (0, 0, 0, (0, 0))


@pytest.mark.parametrize("module", ["build", "describe", "generators", "links", "topologies"])
def test_examples_in_docstrings_run(module: str) -> None:
    result = doctest.testmod(import_module(f"kant_opt.fabric.{module}"))
    assert result.attempted
    assert not result.failed
