"""Names and numbers for people."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.cli.text import fold, gpus, many, percent, safe, some

NAMES = st.builds(
    lambda prefix, number, width, suffix: f"{prefix}{number:0{width}}{suffix}",
    st.sampled_from(["n", "rack1-n", "gpu-"]),
    st.integers(0, 120),
    st.sampled_from([0, 2, 3]),
    st.sampled_from(["", "-ib"]),
)


@given(st.sets(NAMES | st.sampled_from(["login", "head"]), min_size=1, max_size=40))
@settings(deadline=None, derandomize=True)
def test_folded_names_are_the_names(names: set[str]) -> None:
    """ClusterShell, an unfolder of other people's, gets the same names back."""
    assert set(NodeSet(fold(names), resolver=RESOLVER_NOGROUP)) == names


def test_fold_reads_well() -> None:
    assert fold(f"n{i}" for i in range(8, 13)) == "n[8-12]"
    assert fold(["n08", "n09", "n10"]) == "n[08-10]"
    assert fold(["a", "b1", "b3"]) == "a,b[1,3]"
    assert fold([]) == ""


def test_fold_survives_any_name() -> None:
    assert fold(["", "9" * 40, "a[1-2]", "x\n1"])


@pytest.mark.parametrize("text", ["\x1b[0m", "a\nb", "a\rb", "\x00", "\u202e", "\u200b", "\ud800", "\x9b1m"])
def test_safe_text_is_printable_and_tells_apart(text: str) -> None:
    assert safe(text).isprintable()
    assert safe(text) != text


def test_safe_leaves_readable_text_alone() -> None:
    assert safe("Grüße, 東京 [bold] \\n") == "Grüße, 東京 [bold] \\n"


def test_numbers() -> None:
    assert [gpus(m) for m in (0, 500, 256_000, 1_234_567)] == ["0", "0.5", "256", "1,234.567"]
    assert [percent(s) for s in (None, 0, 1, 0.5, 0.99999, 0.000001)] == [
        "-", "0.00 %", "100.00 %", "50.00 %", "99.99 %", "< 0.01 %",
    ]  # fmt: skip
    assert [many(1, "leaf"), many(2, "leaf"), many(3000, "node"), many(0, "class", "classes")] == [
        "1 leaf", "2 leaves", "3,000 nodes", "0 classes",
    ]  # fmt: skip


def test_some_never_hides_one_alone() -> None:
    assert some(["a", "b", "c"], 2) == "a, b, c", "'and 1 more' is longer than the one"
    assert some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
