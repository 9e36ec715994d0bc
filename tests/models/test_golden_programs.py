"""Programs of a few cases as LP files: their diff shows what a change did to the mathematics."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kant_opt.cli.app import app

from .test_cases import ANSWERS, CASES

GOLDEN = sorted(path.stem for path in CASES.glob("*.lp"))


def export(name: str, cases: Path, out: Path) -> list[str]:
    """Return the call that writes the program of a case's last level, all levels before it kept at their optimum."""
    *before, (last, _) = ANSWERS[name]["optimum"].items()
    keep = [word for _, value in before for word in ("--keep", str(value))]
    return ["export", str(cases / f"{name}.json"), str(out), "--level", last, *keep]


def test_there_are_some() -> None:
    assert len(GOLDEN) >= 3


@pytest.mark.parametrize("name", GOLDEN)
def test_the_file_is_what_export_writes(name: str, tmp_path: Path) -> None:
    out = tmp_path / f"{name}.lp"
    assert CliRunner().invoke(app, export(name, CASES, out)).exit_code == 0
    here = Path("models/cases")
    renew = f"if the change is meant: kant-opt {' '.join(export(name, here, here / out.name))} --force"
    assert out.read_text() == (CASES / out.name).read_text(), renew
