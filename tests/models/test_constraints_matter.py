"""Each constraint of the per-node twin decides a case: without it some argued optimum is no longer the answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kant_opt.fabric import build_fabric
from kant_opt.formulation.minizinc import to_mzn

from .runner import needs_minizinc, solve
from .test_cases import ANSWERS, CASES, request_of

CONSTRAINT = re.compile(r"^constraint .*?;$(?=\n\n|\nconstraint|\nsolve|\n?\Z)", re.MULTILINE | re.DOTALL)
TEXT = "\n\n".join((CASES.parent / name).read_text(encoding="utf-8") for name in ("rules.mzn", "per_node.mzn"))

NOT_A_RULE = (
    "forall(j in JOB where nothing_to_place(j))",  # a convention: the answer does not list such jobs
    "forall(g in index_set(kept))",
    "broken_nodes =",
    "broken_leaves =",
)


@needs_minizinc
@pytest.mark.slow
@pytest.mark.parametrize(
    "constraint",
    [found for found in CONSTRAINT.findall(TEXT) if not found.removeprefix("constraint ").startswith(NOT_A_RULE)],
    ids=lambda text: " ".join(text.split())[11:70],
)
def test_without_it_a_case_has_another_optimum(constraint: str, tmp_path: Path) -> None:
    assert any(differs(name, constraint, tmp_path / "weaker.mzn") for name in ANSWERS)


def differs(name: str, constraint: str, path: Path) -> bool:
    """Return whether some level of the case, those before it kept, has another optimum without the constraint."""
    request, optimum = request_of(name), [*ANSWERS[name]["optimum"].values()]
    fabric = build_fabric(request.fabric, request.nodes)
    for goal, value in enumerate(optimum):
        text = to_mzn(request, fabric, goal=goal, kept=optimum[:goal])
        assert text.count(constraint) == 1
        if solve(text.replace(constraint, ""), path)["value"][goal] != value:
            return True
    return False
