"""The stored coupled instances are what their recipes make, read, and are what their names say."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from kant_opt.io import read_request
from kant_opt.schema import Placement, Request, to_json
from kant_opt.testing.coupled import GPUS, Recipe, coupled, write
from kant_opt.testing.coupled_recipes import RECIPES
from kant_opt.verify import verify

BY_NAME = {recipe.name: recipe for recipe in RECIPES}


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "instances" / "coupled"


@cache
def _read(path: Path) -> Request:
    request, notes = read_request(path)
    assert notes == ()
    return request


@pytest.fixture(params=RECIPES, ids=lambda recipe: recipe.name)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    found = request.param
    assert isinstance(found, Recipe)
    return found


def test_every_recipe_has_a_file_a_seed_of_its_own_and_a_line_in_the_readme(folder: Path) -> None:
    assert {path.name for path in folder.glob("*.json.gz")} == {f"{name}.json.gz" for name in BY_NAME}
    assert len({recipe.seed for recipe in RECIPES}) == len(RECIPES) == len(BY_NAME) >= 30
    text = (folder / "README.md").read_text()
    for recipe in RECIPES:
        assert f"| `{recipe.name}` | {recipe.seed} | {recipe.why} |" in text
    assert sum(path.stat().st_size for path in folder.iterdir()) < 3_000_000


@pytest.mark.parametrize("name", ["2k-churn-tight", "2k-core-all-over"])
def test_a_recipe_makes_the_stored_request_again_byte_by_byte(name: str, folder: Path, tmp_path: Path) -> None:
    write((BY_NAME[name],), tmp_path)
    assert (tmp_path / f"{name}.json.gz").read_bytes() == (folder / f"{name}.json.gz").read_bytes()


def test_another_seed_makes_another_request() -> None:
    fields = {**BY_NAME["2k-odd-tight"].__dict__, "seed": 1234}
    assert to_json(coupled(Recipe(**fields))) != to_json(coupled(BY_NAME["2k-odd-tight"]))


def test_a_file_reads_and_is_what_its_recipe_says(recipe: Recipe, folder: Path) -> None:
    request = _read(folder / f"{recipe.name}.json.gz")
    assert request.name == recipe.name
    assert len(request.nodes) == recipe.num_nodes == {"2k": 2048, "8k": 8192}[recipe.name[:2]]
    assert request.fabric.levels == ("core", "spine", "leaf")[-len(recipe.fabric) + 1 :]
    assert ("core" in request.fabric.levels) == ("core" in recipe.name)
    assert 50 <= sum(not job.name.startswith("pod-") for job in request.jobs) <= 400
    assert verify(request, Placement(jobs=())) == ()  # what runs fits what is there
    used = {hold.node for alloc in request.allocations for hold in alloc.holds}
    free = sum(node.gpus for node in request.nodes if node.schedulable and node.name not in used)
    asked = sum(podset.count * podset.gpus for job in request.jobs for podset in job.podsets)
    assert free * recipe.fill // 100 - GPUS * recipe.pools <= asked <= free * recipe.fill // 100
    assert {job.priority for job in request.jobs} == set(range(recipe.classes))
    assert len({pool for node in request.nodes for pool in node.pools}) == recipe.pools
    assert bool(request.allocations) == bool(recipe.churn)
    assert any(not node.schedulable for node in request.nodes) == bool(recipe.closed)
    assert any(podset.required_level for job in request.jobs for podset in job.podsets) == bool(recipe.required)
    gangs = [job.podsets[0] for job in request.jobs if not job.name.startswith("pod-")]
    assert any(podset.gpus < GPUS for podset in gangs) == bool(recipe.part_node)


def test_what_runs_in_a_churned_cluster_overlaps_nowhere_and_leaves_broken_nodes(folder: Path) -> None:
    for recipe in (recipe for recipe in RECIPES if recipe.churn and recipe.num_nodes < 4096):
        request = _read(folder / f"{recipe.name}.json.gz")
        used: dict[str, int] = {}
        for hold in (hold for alloc in request.allocations for hold in alloc.holds):
            used[hold.node] = used.get(hold.node, 0) + hold.gpus
        assert max(used.values()) <= GPUS
        open_gpus = sum(node.gpus for node in request.nodes if node.schedulable)
        assert recipe.churn - 8 <= 100 * sum(used.values()) / open_gpus <= recipe.churn
        assert sum(0 < gpus < GPUS for gpus in used.values()) > 10
