"""Runs a MiniZinc twin with Gecode, one objective level after another."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kant_opt.fabric import build_fabric
from kant_opt.formulation.minizinc import Form, goals, to_mzn
from kant_opt.schema import Request

MINIZINC = shutil.which("minizinc")
needs_minizinc = pytest.mark.skipif(MINIZINC is None, reason="no `minizinc` on PATH (Debian: apt-get install minizinc)")

_SECONDS = 120  # a safety net, far above what any case takes
_ALL_SEEN = "=========="


def optimum(request: Request, folder: Path, form: Form = "per_node") -> dict[str, int]:
    """Return the optimum of every objective level by its name, each with those before it at their optimum."""
    fabric = build_fabric(request.fabric, request.nodes)
    values: list[int] = []
    solution: list[int] = []
    for goal, name in enumerate(names := goals(request)):
        # No term is below 0: a level to be small that is 0 already, with those before at their optimum, needs no run.
        if not solution or solution[goal] or name.startswith(("admitted", "weighted")):
            text = to_mzn(request, fabric, form=form, goal=goal, kept=values)
            solution = solve(text, folder / f"{form}-{goal}.mzn")["value"]
        values.append(solution[goal])
    return dict(zip(names, values, strict=True))


def solve(text: str, path: Path) -> dict[str, list[int]]:
    """Return the best solution. Fails unless the engine says that there is none better."""
    path.write_text(text, encoding="utf-8")
    command = [MINIZINC or "minizinc", "--solver", "gecode", "--output-mode", "json", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    assert run.returncode == 0, run.stderr
    solution, *rest = run.stdout.split("----------")
    assert [part.strip() for part in rest] == [_ALL_SEEN], run.stdout
    best: dict[str, list[int]] = json.loads(solution)
    return best
