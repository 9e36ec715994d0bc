"""The program run in this process, and small requests in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kant_opt.cli.app import app
from kant_opt.io import save
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PodSet, Request

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Run `kant-opt` with arguments on a terminal of 100 columns."""

    def invoke(*args: object, columns: int = 100) -> Result:
        return CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": str(columns)}, prog_name="kant-opt")

    return invoke


@pytest.fixture
def two_by_two() -> Request:
    """Two spines of two leaves of two nodes of 8 GPUs: n0, n1 on leaf a/a0, ... n6, n7 on b/b1.

    Job `run` holds all of n7. Waiting: `three` (3 whole nodes), `pair` (2 pods of 2 GPUs), `huge` (9 whole nodes).
    """
    paths = [("a", "a0"), ("a", "a1"), ("b", "b0"), ("b", "b1")]
    nodes = tuple(Node(name=f"n{i}", path=paths[i // 2], gpus=8) for i in range(8))
    return Request(
        fabric=FabricSpec(levels=("spine", "leaf")),
        nodes=nodes,
        allocations=(Allocation(job="run", holds=(Hold(node="n7", gpus=8),)),),
        jobs=(
            Job(name="three", podsets=(PodSet(count=3, gpus=8),)),
            Job(name="pair", podsets=(PodSet(count=2, gpus=2),)),
            Job(name="huge", podsets=(PodSet(count=9, gpus=8),)),
        ),
    )


@pytest.fixture
def request_file(tmp_path: Path, two_by_two: Request) -> Path:
    """`two_by_two` as a file."""
    path = tmp_path / "request.json"
    save(two_by_two, path)
    return path


@pytest.fixture
def easy_file(tmp_path: Path, two_by_two: Request) -> Path:
    """The same without `huge`: everything fits."""
    path = tmp_path / "easy.json"
    save(two_by_two.model_copy(update={"jobs": two_by_two.jobs[:2]}), path)
    return path
