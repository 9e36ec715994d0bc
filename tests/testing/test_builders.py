"""The builders' examples run, and what they build is what their words say."""

from __future__ import annotations

import doctest

from kant_opt.schema import Slice
from kant_opt.testing import builders
from kant_opt.testing.builders import gang, racks, running


def test_examples() -> None:
    result = doctest.testmod(builders)
    assert result.attempted > 0
    assert result.failed == 0


def test_blocks_number_racks_through() -> None:
    request = racks("1,1|2/3")
    assert request.fabric.levels == ("block", "rack")
    assert [(n.name, n.path, n.gpus) for n in request.nodes] == [
        ("r1n1", ("b1", "r1"), 1),
        ("r1n2", ("b1", "r1"), 1),
        ("r2n1", ("b1", "r2"), 2),
        ("r3n1", ("b2", "r3"), 3),
    ]


def test_what_is_not_free_is_held_beside_other_running_jobs() -> None:
    request = racks("1,2", gpus_total=2, allocations=(running("x", {"r1n2": 1}),))
    assert [(a.job, h.node, h.gpus) for a in request.allocations for h in a.holds] == [
        ("old", "r1n1", 1),
        ("x", "r1n2", 1),
    ]


def test_rules_go_where_they_belong() -> None:
    job = gang("a", 2, 1, exclusive_level="node", slices=(Slice(level="node", size=2),))
    assert job.exclusive_level == "node"
    assert job.podsets[0].slices[0].size == 2
