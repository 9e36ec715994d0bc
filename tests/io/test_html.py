"""The page that plans and replays are shown on: text stays text, data stays data, and nothing else may run."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest

from kant_opt.errors import BackendUnavailable
from kant_opt.io import html

HOSTILE = "</td><script>alert(1)</script>\u202e\x00"


def test_text_shows_what_it_is_and_hides_nothing() -> None:
    """The turn-around character and the null are told by their numbers."""
    assert html.text(HOSTILE) == "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x00"
    assert "<script" not in html.table([HOSTILE], [[HOSTILE]]) + html.items(HOSTILE, [HOSTILE])


def test_numbers_are_aligned_in_their_column_only() -> None:
    shown = html.table(["a", "b"], [["x", "1"]], numbers=[1])
    assert shown == '<table>\n<tr><th>a</th><th class="number">b</th></tr>\n<tr><td>x</td><td class="number">1</td></tr>\n</table>\n'  # fmt: skip # noqa: E501
    with pytest.raises(ValueError, match="shorter"):
        html.table(["a", "b"], [["x"]])


def test_long_lists_say_how_much_is_left_out() -> None:
    assert html.items("None", []) == ""
    assert "more" not in html.items("All", ["x"] * html.MOST_ITEMS)
    shown = html.items("Many", ["x"] * (html.MOST_ITEMS + 1234))
    assert shown.count("<li>") == html.MOST_ITEMS
    assert "... and 1,234 more" in shown


def test_a_page_without_charts_has_no_script_and_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None)
    page = html.html_page("<t>", "<p>body</p>", {})
    assert "<title>&lt;t&gt;</title>" in page
    assert "<script" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize(("missing", "told"), [({"altair"}, "altair"), ({"altair", "vl_convert"}, "and vl_convert")])
def test_charts_name_the_extra_that_they_need(monkeypatch: pytest.MonkeyPatch, missing: set[str], told: str) -> None:
    monkeypatch.setattr(html, "find_spec", lambda name: None if name in missing else importlib.util.find_spec(name))
    with pytest.raises(BackendUnavailable, match=rf"{told}.*kant-opt\[report\]"):
        html.check_charts()


def test_data_cannot_end_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `<` of the data is written as its number, and JSON that browsers do not read is refused here."""
    monkeypatch.setattr(html, "_library", lambda: "library")
    page = html.html_page("t", html.chart("one"), {"one": {"name": HOSTILE}})
    data = re.search(r'id="specs">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert page.count("<script") == 3
    wrong: dict[str, Any] = {"one": {"value": float("nan")}}
    with pytest.raises(ValueError, match="JSON"):
        html.html_page("t", "", wrong)
