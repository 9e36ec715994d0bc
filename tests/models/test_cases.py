"""Small requests whose optimum is argued in `models/cases/answers.toml`: the twins and the engine both reach it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest

from kant_opt import place
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.formulation.minizinc import to_dzn
from kant_opt.io import read_request
from kant_opt.schema import Request, TermName
from kant_opt.verify import RULES

from .runner import needs_minizinc, optimum

CASES = Path(__file__).resolve().parents[2] / "models" / "cases"
ANSWERS: dict[str, dict[str, Any]] = tomllib.loads((CASES / "answers.toml").read_text(encoding="utf-8"))


def request_of(name: str) -> Request:
    request, _ = read_request(str(CASES / f"{name}.json"))
    return request


def folds(name: str) -> bool:
    """Return whether the class form takes the case and has fewer cells than nodes for it."""
    request = request_of(name)
    try:
        data = to_dzn(request, build_fabric(request.fabric, request.nodes), form="classes")
    except InputError:
        return False
    return data.count("% cell") < len(request.nodes)


def test_every_case_has_an_answer_and_every_rule_and_term_a_case() -> None:
    assert {path.stem for path in CASES.glob("*.json")} == set(ANSWERS)
    shown = {name for answer in ANSWERS.values() for name in answer["shows"]}
    assert shown == {*RULES, *get_args(TermName)} - {"moves"}
    assert all(answer["why"] for answer in ANSWERS.values())


@pytest.mark.parametrize("name", ANSWERS)
def test_the_engine_proves_the_argued_optimum(name: str) -> None:
    levels = place(request_of(name), backend="cp-sat").levels
    assert {level.name: level.value for level in levels} == ANSWERS[name]["optimum"]
    assert all(level.proven for level in levels)


@needs_minizinc
@pytest.mark.parametrize("name", ANSWERS)
def test_the_twin_finds_the_argued_optimum(name: str, tmp_path: Path) -> None:
    assert optimum(request_of(name), tmp_path) == ANSWERS[name]["optimum"]


@needs_minizinc
@pytest.mark.parametrize("name", [name for name in ANSWERS if folds(name)])
def test_the_twin_of_classes_finds_it_too(name: str, tmp_path: Path) -> None:
    assert optimum(request_of(name), tmp_path, "classes") == ANSWERS[name]["optimum"]
