"""Hostlists: the same names as ClusterShell's own reader gives, in order, and counted before they are unfolded."""

from __future__ import annotations

import time

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.io.slurm.hostlist import MOST_HOSTS, expand


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[001-003,007]", ["n001", "n002", "n003", "n007"]),  # leading zeros stay
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("g3-129-[235,237],g3-130-[001,003]", ["g3-129-235", "g3-129-237", "g3-130-001", "g3-130-003"]),
        ("b2,b10,b1", ["b2", "b10", "b1"]),  # order is meaning for blocks
        ("n[5,3]", ["n5", "n3"]),
        ("a[1-2]b[1-2]x", ["a1b1x", "a1b2x", "a2b1x", "a2b2x"]),
        ("a,a,b", ["a", "b"]),
        ("(null)", []),
        ("", []),
    ],
)
def test_names_in_order(text: str, names: list[str]) -> None:
    assert list(expand(text)) == names


ranges = st.lists(
    st.tuples(st.integers(0, 999), st.integers(0, 15), st.sampled_from([0, 4])).map(
        lambda r: f"{r[0]:0{r[2]}}-{r[0] + r[1]:0{r[2]}}" if r[1] else f"{r[0]:0{r[2]}}"
    ),
    min_size=1,
    max_size=4,
).map(lambda pieces: "[" + ",".join(pieces) + "]")
groups = st.lists(st.tuples(ranges, st.sampled_from(["n", "-", "x1r"])), min_size=1, max_size=2).map(
    lambda parts: "h" + "".join(bracket + text for bracket, text in parts)
)  # ClusterShell, unlike Slurm, wants text between two brackets


@given(st.lists(groups, min_size=1, max_size=3).map(",".join))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_agrees_with_clustershell(text: str) -> None:
    assert set(expand(text)) == set(NodeSet(text, resolver=RESOLVER_NOGROUP))


def test_the_limit_itself_is_read_and_one_more_is_not() -> None:
    assert len(expand(f"n[1-{MOST_HOSTS}]")) == MOST_HOSTS
    with pytest.raises(InputError, match="more than 1,000,000 hosts"):
        expand(f"n[0-{MOST_HOSTS}]")


@pytest.mark.parametrize("text", ["n[0-9999999]", "n[0-999999999999999999]", "a[1-9999]b[1-9999]c[1-9999]"])
def test_huge_ranges_cost_nothing(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InputError, match="more than 1,000,000 hosts"):
        expand(text)
    assert time.perf_counter() - start < 0.05


@pytest.mark.parametrize("text", ["n[1-2", "n1-2]", "n[[1]]", "n[2-1]", "n[]", "n[1,]", "n[1-2-3]", "n 1", "n[-1]"])
def test_what_is_none_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InputError, match=r"^topology.conf: line 3: .*hostlist"):
        expand(text, "topology.conf: line 3")


def test_no_groups_and_no_set_operators_are_run() -> None:
    """ClusterShell would ask external programs about @group; Slurm knows neither groups nor set operators."""
    assert expand("@all") == ("@all",)
    assert expand("a!b") == ("a!b",)
