"""`kant-opt gap` and `kant-opt instances`, as a user calls them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import Result

from kant_opt.backends import BACKENDS
from kant_opt.backends.outside import Outside
from kant_opt.io import save
from kant_opt.schema import Request
from kant_opt.study import read_rows, run_study
from kant_opt.testing.builders import gang, placement, racks

Run = Callable[..., Result]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """E-Binpack and first-fit on a toy that each greedy falls into and one that only first-fit does."""
    path = tmp_path / "runs.jsonl"
    run_study(("toy/fill-the-gap", "toy/greedy-trap"), ("e-binpack", "first-fit"), out=path, apart=False)
    return path


def test_a_studys_table_says_how_far_each_backend_is(run: Run, study: Path, tmp_path: Path) -> None:
    """E-Binpack: traffic 0 and 1 where 0 is best, a gap of 0 and of 100 %."""
    result = run("gap", "--out", study, "--csv", tmp_path / "t.csv", "--latex", tmp_path / "t.tex")
    assert result.exit_code == 0, result.output
    assert "e-binpack, limits default: 2 runs, 0 failed" in result.stdout
    traffic = next(line for line in result.stdout.splitlines() if line.strip().startswith("traffic"))
    assert traffic.split() == ["traffic", "2", "50.00%", "41.42%", "100.00%", "toy/greedy-trap", "50%"]
    assert (tmp_path / "t.csv").read_text().count("\n") == 9
    assert (tmp_path / "t.tex").read_text().startswith(r"\begin{tabular}")


def test_runs_are_made_shown_and_kept(run: Run, tmp_path: Path, two_by_two: Request) -> None:
    source, out = tmp_path / "mine.json", tmp_path / "o.jsonl"
    save(two_by_two, source)
    result = run("gap", source, "-b", "first-fit", "--rounds", 3, "--out", out)
    assert result.exit_code == 0, result.output
    assert "1/1" in result.stderr
    assert "first-fit, limits rounds 3: 1 runs" in result.stdout
    again = run("gap", source, "-b", "first-fit", "--rounds", 3, "--out", out)
    assert (again.stdout, again.stderr) == (result.stdout, "")
    assert len(read_rows(out)) == 1


def test_a_failed_run_is_told_with_its_reason(run: Run, tmp_path: Path) -> None:
    result = run("gap", "toy/cut-gang", "-b", "first-fit", "--memory-mb", 1, "--out", tmp_path / "o")
    assert result.exit_code == 1
    assert "Failed (1)" in result.stdout
    assert "toy/cut-gang, first-fit, seed 0: memory: needs more than 1 MiB" in result.stdout


def test_what_became_worse_is_named(run: Run, study: Path, tmp_path: Path) -> None:
    """The new study's e-binpack answers are those of first-fit: it cuts the large gang of fill-the-gap."""
    new = tmp_path / "new.jsonl"
    lines = [line for line in study.read_text().splitlines() if '"first-fit"' in line]
    new.write_text("".join(line.replace("first-fit", "e-binpack") + "\n" for line in lines))
    result = run("gap", "--compare", study, new)
    assert result.exit_code == 1
    assert "toy/fill-the-gap, e-binpack, default, seed 0: traffic 0 -> 1" in result.stdout
    assert "1 run worse, 0 better, 1 as good; runs in one alone: 2 old, 0 new" in result.stdout
    assert run("gap", "--compare", new, study).exit_code == 0


def test_mistakes(run: Run, tmp_path: Path) -> None:
    for args, told in (
        (("gap", "toy/*"), "no file for the runs: name it with --out"),
        (("gap", "toi/*", "--out", tmp_path / "o"), "unknown instance 'toi/*'"),
        (("gap", "toy/none", "--out", tmp_path / "o"), "unknown instance 'toy/none'"),
        (("gap", "--out", tmp_path / "none"), "cannot be read"),
        (("instances", "submit", "toy/none"), "unknown instance 'toy/none'"),
        (("instances", "list", "--folder", tmp_path / "none"), "is no folder"),
    ):
        result = run(*args)
        assert result.exit_code == 2, result.output
        assert told in result.stderr


def test_a_backend_of_another_package_is_listed_with_its_origin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BACKENDS, "_parts", dict(BACKENDS.items()))
    BACKENDS.add("theirs", Outside(EntryPoint("theirs", "plug:place", "kant_opt.backends")))
    (line,) = (line for line in run("backends").stdout.splitlines() if "theirs" in line)
    assert line.split(maxsplit=1)[1].strip() == "from plug:place"


def test_the_shipped_instances_are_listed_and_checked(run: Run) -> None:
    listed = run("instances", "list", "toy/*", columns=80)
    assert "10 instances, 10 proven optimal" in listed.stdout
    (line,) = (line for line in listed.stdout.splitlines() if "toy/two-levels" in line)
    assert "64 / 6 / 0 / 0" in line
    checked = run("instances", "check", "toy/*")
    assert (checked.exit_code, checked.stdout.strip()) == (0, "10 records checked, 0 wrong")


def test_a_better_answer_is_submitted_and_a_spoiled_solution_is_found(run: Run, tmp_path: Path) -> None:
    folder, answer = tmp_path / "own", tmp_path / "answer.json"
    folder.mkdir()
    save(racks("8,8,8|8,8", jobs=[gang("a", 2, 8)]), folder / "one.json")
    save(placement(a={"r1n1": 1, "r2n1": 1}), answer)
    first = run("instances", "submit", "one", answer, "--folder", folder, "-b", "mine")
    assert "record updated" in first.stdout
    assert "traffic 1 (no bound)" in first.stdout
    better = run("instances", "submit", "one", "--folder", folder)
    assert "admitted[0] 16, traffic 0, broken nodes 0, broken leaves 0" in better.stdout
    assert "nothing better" in run("instances", "submit", "one", answer, "--folder", folder).stdout
    assert run("instances", "check", "--folder", folder).exit_code == 0
    save(placement(a={"r1n1": 1, "r2n1": 1}), folder / "solutions" / "one.json.gz")
    spoiled = run("instances", "check", "--folder", folder)
    assert spoiled.exit_code == 1
    assert "one: traffic is 0, of the solution 1" in spoiled.stdout
