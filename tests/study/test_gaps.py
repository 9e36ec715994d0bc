"""Gaps by hand, what may be compared, tables, and what became worse between two studies."""

from __future__ import annotations

import csv
import doctest
from typing import Any

import pytest

from kant_opt.errors import InputError
from kant_opt.schema import LevelValue, Limits
from kant_opt.study import GapRow, Record, Row, as_csv, as_latex, compare, gap_rows, tables


def levels(*values: tuple[int, int | None]) -> tuple[LevelValue, ...]:
    """Return admitted[1], admitted[0], traffic from (value, bound); fewer values: from the last."""
    names = ("admitted[1]", "admitted[0]", "traffic")[3 - len(values) :]
    return tuple(
        LevelValue(name=name, sense="max" if name.startswith("a") else "min", value=value, bound=bound)
        for name, (value, bound) in zip(names, values, strict=True)
    )


def row(instance: str, backend: str, *values: tuple[int, int | None], **fields: Any) -> Row:
    status = "FEASIBLE" if values else "FAILED"
    given = {"instance": instance, "digest": instance, "backend": backend, "status": status, "levels": levels(*values)}
    return Row.model_validate({**given, **fields})


def by_term(rows: list[GapRow], backend: str) -> dict[str, GapRow]:
    return {row.term: row for row in rows if row.backend == backend}


def test_means_and_worst_are_those_by_hand() -> None:
    """Traffic gaps 0, 1/4 and 1: mean 5/12; geometric (1 x 5/4 x 2)^(1/3) - 1."""
    runs = [
        row("a", "h", (8, 8), (3, 3)),
        row("b", "h", (8, 8), (4, 3)),
        row("c", "h", (8, 8), (2, 0)),
    ]
    found = by_term(gap_rows(runs), "h")
    assert found["admitted"] == GapRow("h", "default", "admitted", 3, 0, 3, 3, 0.0, 0.0, 0.0, "", 1.0)
    traffic = found["traffic"]
    assert traffic.mean == pytest.approx(5 / 12)
    assert traffic.geometric == pytest.approx(2.5 ** (1 / 3) - 1)
    assert (traffic.worst, traffic.worst_instance) == (1.0, "c")
    assert traffic.proven == pytest.approx(1 / 3)


def test_a_level_is_compared_only_where_those_before_are_as_good_as_the_best_known() -> None:
    """`h` admits 6 of 8 and has less traffic than `s` for it: no merit."""
    runs = [row("a", "h", (6, 8), (0, 0)), row("a", "s", (8, 8), (5, 5))]
    found = by_term(gap_rows(runs), "h")
    assert found["admitted"].worst == pytest.approx(2 / 6)
    assert found["admitted"].proven == 0
    assert (found["traffic"].compared, found["traffic"].mean, found["traffic"].proven) == (0, None, None)
    assert by_term(gap_rows(runs), "s")["traffic"].compared == 1


def test_of_several_classes_the_widest_gap_counts_up_to_the_first_that_differs() -> None:
    runs = [row("a", "h", (10, 10), (4, 9), (1, 1)), row("a", "s", (10, 10), (8, 8), (1, 1))]
    assert by_term(gap_rows(runs), "h")["admitted"].worst == 1.0  # 4 of 8, the bound that `s` has
    runs = [row("a", "h", (5, 10), (9, 9), (1, 1)), row("a", "s", (10, 10), (8, 8), (1, 1))]
    assert by_term(gap_rows(runs), "h")["admitted"].worst == 1.0  # 5 of 10; the second class is not looked at


def test_the_best_bound_of_all_runs_and_records_counts() -> None:
    runs = [row("a", "h", (8, None), (4, 0)), row("a", "s", (8, 8), (6, 2))]
    found = by_term(gap_rows(runs), "h")
    assert found["admitted"].proven == 1
    assert found["traffic"].mean == pytest.approx(2 / 4)
    record = Record(instance="a", digest="a", levels=levels((8, 8), (4, 4)), backend="b")
    assert by_term(gap_rows(runs, [record]), "h")["traffic"].mean == 0
    other = record.model_copy(update={"digest": "another request"})
    assert gap_rows(runs, [other]) == gap_rows(runs)


def test_without_a_bound_there_is_no_gap() -> None:
    found = by_term(gap_rows([row("a", "h", (8, 8), (4, None)), row("b", "h", (8, 8), (4, 4))]), "h")["traffic"]
    assert (found.compared, found.bounded, found.mean, found.proven) == (2, 1, 0.0, 0.5)


def test_failed_runs_are_counted_and_no_more() -> None:
    found = by_term(gap_rows([row("a", "h", (8, 8), (4, 4)), row("b", "h")]), "h")
    assert [(r.runs, r.failed, r.compared, r.mean) for r in found.values()] == [(2, 1, 1, 0.0)] * 2
    assert gap_rows([row("b", "h")]) == []


def test_a_bound_that_another_run_beats_is_a_bug_and_said() -> None:
    with pytest.raises(InputError, match=r"a: the bound 5 of traffic .* is beaten by a verified solution of 4"):
        gap_rows([row("a", "h", (8, 8), (5, 5)), row("a", "s", (8, 8), (4, 0))])


def test_limits_make_groups_seeds_do_not() -> None:
    runs = [row("a", "h", (8, 8), (4, 4), limits=Limits(rounds=r, seed=s)) for r in (1, 2) for s in (0, 1)]
    assert [(r.limits, r.term, r.runs) for r in gap_rows(runs)] == [
        (f"rounds {r}", term, 2) for r in (1, 2) for term in ("admitted", "traffic")
    ]


def test_the_csv_has_all_fields_and_the_latex_one_line_a_row_with_special_characters_escaped() -> None:
    found = gap_rows([row("toy/a_b", "h&h", (6, 8), (4, 0)), row("toy/a_b", "s", (8, 8), (9, 9))])
    first, *others = csv.DictReader(as_csv(found).splitlines())
    assert (first["backend"], float(first["mean"]), first["worst_instance"]) == ("h&h", 2 / 6, "toy/a_b")
    assert others[0]["mean"] == ""
    text = as_latex(found)
    assert r"h\&h & default & admitted & 1 & 0 & 1 & 33.33\% & 33.33\% & 33.33\% & toy/a\_b & 0\% \\" in text
    assert text.count(r"\\") == 1 + len(found)
    assert text.count(r"\addlinespace") == 1


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(tables)
    assert result.attempted > 0
    assert result.failed == 0


# -- two studies -----------------------------------------------------------------------------------

GOOD = row("a", "h", (8, 8), (4, 4))
CHANGES = {
    "traffic 4 -> 5": row("a", "h", (8, 8), (5, 4)),
    "admitted[0] 8 -> 7": row("a", "h", (7, 8), (0, 0)),  # less traffic of a worse answer is no gain
    "traffic no longer proven": row("a", "h", (8, 8), (4, 3)),
    "failed, time: ended after 1 s": row("a", "h", reason="time: ended after 1 s"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_regression_is_named_and_the_other_way_round_it_is_an_improvement(what: str) -> None:
    found = compare([GOOD], [CHANGES[what]])
    assert [str(change) for change in found.regressions] == [f"a, h, default, seed 0: {what}"]
    assert (found.improvements, found.equal) == ((), 0)
    back = compare([CHANGES[what]], [GOOD])
    assert (back.regressions, len(back.improvements), back.equal) == ((), 1, 0)


def test_equal_runs_are_equal_and_only_common_ones_are_compared() -> None:
    slower = GOOD.model_copy(update={"seconds": 100.0})
    found = compare([GOOD, row("b", "h", (8, 8), (4, 4))], [slower, row("c", "h", (1, 1), (1, 1))])
    assert (found.regressions, found.improvements, found.equal, found.only_old, found.only_new) == ((), (), 1, 1, 1)
