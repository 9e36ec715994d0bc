"""On random small requests the twins find the value of every objective level that CP-SAT proves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings

from kant_opt import place
from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.formulation.minizinc import to_dzn
from kant_opt.schema import Objective, Request
from kant_opt.testing.strategies import requests

from .runner import needs_minizinc, optimum

pytestmark = needs_minizinc

PER_NODE_ONLY = {"shares", "mib", "counted"}
"""Families that the class form never takes; node levels and sizes like 2 and 3 it refuses one by one."""


def drawn(examples: int) -> settings:
    """Return settings for so many draws, the same in every run. A failing request is shown as it was drawn."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def proven(request: Request) -> dict[str, int]:
    """Return the values that CP-SAT proves optimal."""
    levels = place(request, backend="cp-sat").levels
    assert all(level.proven for level in levels)
    return {level.name: level.value for level in levels}


@drawn(8)
@given(request=requests())
def test_a_few_requests(request: Request, tmp_path: Path) -> None:
    assert optimum(request, tmp_path) == proven(request)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@drawn(320)
@given(request=requests())
def test_many_requests(request: Request, tmp_path: Path) -> None:
    assert optimum(request, tmp_path) == proven(request)


def check_classes(request: Request, folder: Path) -> None:
    try:
        to_dzn(request, build_fabric(request.fabric, request.nodes), form="classes")
    except InputError:
        reject()
    assert optimum(request, folder, "classes") == proven(request)


@drawn(5)
@given(request=requests(max_nodes=6, without=PER_NODE_ONLY))
def test_a_few_requests_in_classes(request: Request, tmp_path: Path) -> None:
    check_classes(request, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@drawn(150)
@given(request=requests(max_nodes=6, without=PER_NODE_ONLY))
def test_many_requests_in_classes(request: Request, tmp_path: Path) -> None:
    check_classes(request, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@drawn(60)
@given(request=requests())
def test_many_weighted_sums(request: Request, tmp_path: Path) -> None:
    """A GPU is worth 1000, so that some crossings and broken nodes are worth less than a gang and some more."""
    weights = Objective(weights={"admitted": 1, "traffic": 700, "broken_nodes": 1300, "broken_leaves": 400})
    request = request.model_copy(update={"objective": weights})
    assert optimum(request, tmp_path) == proven(request)
