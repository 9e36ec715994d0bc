"""Fixtures that every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of data that is not part of the project: real files and recorded results.

    Looked for in $KANT_OPT_SHARED, then in ../shared/data; where it is missing, tests that need it skip with a reason.
    """
    folder = Path(os.environ.get("KANT_OPT_SHARED", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data folder {folder.name!r} is not beside the checkout")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
