"""No case is forgotten: each id of CASES.md has a test named by it, or stands here with what it waits for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EVICTION = "evictions and moves are planned by a later part"
SOLVERS = "solvers come with the exact backends"

WAITS = {
    "A22": "its table is of balanced and greedy splits by rule, for the named strategies of Kueue to come",
    "B10": EVICTION,
    "C1": EVICTION,
    "C5": EVICTION,
    "C8": EVICTION,
    "C11": "a trace of thousands of pods: the openb benchmark measures it",
    **{f"D{i}": EVICTION for i in (1, 2, 3, 4, 7, 8, 10, 11, 12, 15, 16, 17, 19, 20, 21)},
    "G8": "an outcome lists nodes; counts per domain are not a form of it yet",
    "G10": SOLVERS,
    "G12": SOLVERS,
    "H9": "a node's grace time needs a clock",
}


def ids_with_a_test() -> set[str]:
    """Return the ids that tests of this folder are named by."""
    here = Path(__file__).parent
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(here.glob("test_*_cases.py")))
    return {found.upper() for found in re.findall(r"^def test_([a-i]\d+)_", text, re.M)}


@pytest.fixture
def asked(shared: Path) -> set[str]:
    """Ids of the cases, as their file names them in the first column of its tables."""
    path = shared.parent / "CASES.md"
    if not path.is_file():
        pytest.skip("CASES.md is not beside the data folder")
    text = path.read_text(encoding="utf-8")
    found = set(re.findall(r"^\| ([A-I]\d+)(?: ★)? \|", text, re.M))
    return found | set(re.findall(r"^## Table for ([A-I]\d+)", text, re.M))


def test_every_case_is_tested_or_waits(asked: set[str]) -> None:
    assert len(asked) > 100
    assert asked - ids_with_a_test() - set(WAITS) == set()


def test_nothing_is_listed_that_is_not_a_case(asked: set[str]) -> None:
    assert (ids_with_a_test() | set(WAITS)) - asked == set()


def test_what_is_tested_does_not_wait() -> None:
    assert ids_with_a_test() & set(WAITS) == set()
