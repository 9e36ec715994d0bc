"""The neutral program: rows, parts, levels, and the files that other solvers read."""

from __future__ import annotations

import pytest

from kant_opt.formulation.program import Program, Sense


def small() -> Program:
    program = Program()
    x, y = program.var("x", 0, 3), program.var("y", -1, 5)
    with program.part("outer"):
        program.row("sum", {x: 1, y: 2}, Sense.LE, 7)
        with program.part("inner"):
            program.row("least", {x: 1, y: -1}, Sense.GE, -2)
        program.row("even", {x: 2}, Sense.EQ, 4)
    program.level("value", {x: 3, y: 1}, 10, "max")
    program.level("cost", {y: 1}, 0, "min")
    return program


@pytest.mark.parametrize(
    ("values", "broken"),
    [
        ([2, 2], set()),
        ([2, 3], {"outer"}),  # 2 + 6 > 7
        ([2, 5], {"outer", "inner"}),  # 2 + 10 > 7 and 2 - 5 < -2
        ([1, 3], {"outer"}),  # 2 x 1 is not 4, the other rows hold with equality
        ([2, -2], {""}),  # only the bound of y, which belongs to no part
    ],
)
def test_broken_parts_are_those_whose_rows_do_not_hold(values: list[int], broken: set[str]) -> None:
    assert small().broken_parts(values) == broken


def test_levels_have_values_with_their_constants() -> None:
    assert small().cost([2, -1]) == {"value": 3 * 2 - 1 + 10, "cost": -1}


def test_stats_count_what_was_added() -> None:
    assert small().stats() == (2, 3, 5)


def test_numbers_beyond_64_bits_are_refused_at_once() -> None:
    program = Program()
    with pytest.raises(OverflowError):
        program.var("x", 0, 1 << 64)
