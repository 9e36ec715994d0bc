"""`kant-opt export`: what it writes is the program, and another reader of it finds the same optimum."""

from __future__ import annotations

from pathlib import Path

import highspy
import pytest
from typer.testing import CliRunner

from kant_opt.cli.app import app
from kant_opt.io import save
from kant_opt.testing.builders import gang, racks


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    """Two racks of two whole nodes, gangs of 3 and 1: one of the racks is crossed once."""
    path = tmp_path / "request.json"
    save(racks("8,8|8,8", jobs=[gang("a", 3, 8), gang("b", 1, 8)]), path)
    return path


def optimum(path: Path) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    return round(float(highs.getInfo().objective_function_value), 6)


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_levels_one_after_another(request_file: Path, tmp_path: Path, form: str) -> None:
    """All 32 GPUs are admitted; with these kept the least traffic is 1, without them 0: nothing need be placed."""
    first, second, free = (tmp_path / f"{name}.{form}" for name in ("first", "second", "free"))
    run = CliRunner().invoke
    assert run(app, ["export", str(request_file), str(first)]).exit_code == 0
    assert optimum(first) == 32_000
    assert run(app, ["export", str(request_file), str(second), "--level", "traffic", "--keep", "32000"]).exit_code == 0
    assert optimum(second) == 1
    assert run(app, ["export", str(request_file), str(free), "--level", "traffic"]).exit_code == 0
    assert optimum(free) == 0


def test_cp_sat_text_is_of_the_level_asked_for(request_file: Path, tmp_path: Path) -> None:
    """tests/formulation/test_export.py lets CP-SAT read such texts; here it is which one is written."""
    out = tmp_path / "traffic.pbtxt"
    arguments = ["export", str(request_file), str(out), "--level", "traffic", "--keep", "32000"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    text = out.read_text()
    assert text.startswith('name: "kant_opt: traffic"\nvariables { name: ')
    assert 'constraints { name: "level_0_admitted_0_"' in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["out.txt"], "no form ends in '.txt'"),
        (["out.lp", "--level", "trafic"], "did you mean 'traffic'"),
        (["out.lp", "--keep", "1"], "1 values to keep, but 0 levels come before"),
        (["request.json.lp", "--level", ""], "unknown objective level ''"),
        (["out.mzn", "--level", "trafic"], "did you mean 'traffic'"),
    ],
    ids=["form", "level", "keep", "empty", "level of a twin"],
)
def test_mistakes_get_a_sentence(request_file: Path, tmp_path: Path, arguments: list[str], told: str) -> None:
    out, *options = arguments
    result = CliRunner().invoke(app, ["export", str(request_file), str(tmp_path / out), *options])
    assert result.exit_code == 2
    assert told in result.stderr
    assert not (tmp_path / out).exists()


def test_an_existing_file_is_kept(request_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.lp"
    out.write_text("mine")
    assert CliRunner().invoke(app, ["export", str(request_file), str(out)]).exit_code == 2
    assert out.read_text() == "mine"
    assert CliRunner().invoke(app, ["export", str(request_file), str(out), "--force"]).exit_code == 0
    assert out.read_text() != "mine"


def test_a_twin_is_one_file_with_its_data(request_file: Path, tmp_path: Path) -> None:
    """Gangs of 3 and 1 nodes, and 4 nodes: one cell each, or in classes the two racks of 2 alike nodes."""
    for options, cells in (([], 4), (["--classes"], 2)):
        out = tmp_path / f"{cells}.mzn"
        arguments = ["export", str(request_file), str(out), "--level", "traffic", "--keep", "32000", *options]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.stderr
        lines = out.read_text().splitlines()
        assert not any(line.startswith("include") for line in lines)
        assert {f"num_cells = {cells};", "goal = 2;", "kept = [32000];"} <= set(lines)


def test_classes_that_would_not_be_exact_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "request.json"
    save(racks("8,8", jobs=[gang("a", 1, 2), gang("b", 1, 3)]), source)
    result = CliRunner().invoke(app, ["export", str(source), str(tmp_path / "x.mzn"), "--classes"])
    assert result.exit_code == 2
    assert "pods of 2 and of 3 GPUs meet" in result.stderr
    assert not (tmp_path / "x.mzn").exists()


def test_classes_make_the_program_smaller(tmp_path: Path) -> None:
    """Two racks of twenty alike nodes: forty variables for the pods of a gang, or one per rack."""
    source = tmp_path / "request.json"
    save(racks("|".join([",".join(["8"] * 20)] * 2), jobs=[gang("a", 25, 8)]), source)
    said = []
    for options in ([], ["--classes"]):
        out = tmp_path / f"out{len(options)}.lp"
        result = CliRunner().invoke(app, ["export", str(source), str(out), *options])
        assert result.exit_code == 0, result.output
        said.append(int(result.output.split(";")[1].split()[0].replace(",", "")))
    assert said[1] * 3 < said[0]
