"""The texts say what the program says: HiGHS, reading them, finds the optima that are known."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.formulation.export import to_cp_sat, to_lp, to_mps
from kant_opt.formulation.per_node import PerNode
from kant_opt.formulation.program import Program, Sense
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, compile_gangs

# Two racks of three: 3 + 2 + 2 do not fit into 6 nodes, so a class of its own decides: the two of class 1 come first
# (4 nodes), no room for the three. Both twos in one rack each: no traffic; 1 + 1 in each rack stays: 2 broken leaves.
REQUEST = racks(
    "1,1,1|1,1,1", jobs=[gang("a", 2, priority=1), gang("b", 2, priority=1), gang("c", 3)], name="three gangs"
)
OPTIMA = (4000, 0, 0, 0, 2)

_READ = """
import sys, highspy
h = highspy.Highs()
h.setOptionValue("output_flag", False)
assert h.readModel(sys.argv[1]) == highspy.HighsStatus.kOk
h.run()
print(round(h.getInfo().objective_function_value), h.getLp().num_col_, h.getLp().num_row_)
"""


def read(text: str, path: Path) -> tuple[int, int, int]:
    """Return (optimum, columns, rows) of what HiGHS reads, in a process of its own."""
    path.write_text(text)
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True)
    optimum, columns, rows = map(int, done.stdout.split())
    return optimum, columns, rows


_PARSE = """
import sys
from ortools.sat.python import cp_model
model = cp_model.CpModel()
assert model.proto.parse_text_format(open(sys.argv[1], encoding="utf-8").read())
assert model.validate() == "", model.validate()
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
assert solver.solve(model).name == "OPTIMAL"
print(round(solver.objective_value), len(model.proto.variables), len(model.proto.constraints))
"""


def parse(text: str, path: Path) -> tuple[int, int, int]:
    """Return (optimum, variables, rows) of what CP-SAT reads, in a process of its own."""
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", _PARSE, str(path)], capture_output=True, text=True, check=True)
    optimum, variables, rows = map(int, done.stdout.split())
    return optimum, variables, rows


def program() -> Program:
    cluster = Cluster(REQUEST, build_fabric(REQUEST.fabric, REQUEST.nodes))
    return PerNode(cluster, Free(cluster), compile_gangs(cluster)).program


@pytest.mark.parametrize("level", range(5))
def test_lp_text_has_the_optimum_of_every_level(level: int, tmp_path: Path) -> None:
    optimum, columns, rows = read(to_lp(program(), level, OPTIMA[:level]), tmp_path / "a.lp")
    assert optimum == OPTIMA[level]
    assert columns == program().stats().variables + 1, "and the variable that is always 1"
    assert rows == program().stats().rows + level


@pytest.mark.parametrize("level", range(5))
def test_mps_text_has_the_optimum_of_every_level(level: int, tmp_path: Path) -> None:
    optimum, columns, rows = read(to_mps(program(), level, OPTIMA[:level]), tmp_path / "a.mps")
    assert optimum == OPTIMA[level]
    assert (columns, rows) == (program().stats().variables, program().stats().rows + level)


@pytest.mark.parametrize("level", [0, 1, 4])
def test_cp_sat_text_has_the_optimum_of_a_level(level: int, tmp_path: Path) -> None:
    optimum, variables, rows = parse(to_cp_sat(program(), level, OPTIMA[:level]), tmp_path / "a.pbtxt")
    assert optimum == OPTIMA[level]
    assert (variables, rows) == (program().stats().variables, program().stats().rows + level)


def test_odd_names_constants_and_negative_bounds_survive(tmp_path: Path) -> None:
    odd = Program()
    x, y = odd.var("2 e[1]", -3, 4), odd.var("2 e(1)", -5, -1, integer=False)
    odd.row("", {x: 1, y: 1}, Sense.LE, 2)
    odd.row("", {x: 0}, Sense.LE, 0)
    odd.level("most", {x: 2, y: 1}, 100, "max")
    # x + y <= 2 with y <= -1: x = 3 and y = -1 give 5; x = 4 needs y <= -2: 8 - 2 = 6
    assert read(to_lp(odd), tmp_path / "odd.lp")[0] == 106
    assert read(to_mps(odd), tmp_path / "odd.mps")[0] == 106


def test_cp_sat_text_keeps_names_and_takes_no_continuous_variable(tmp_path: Path) -> None:
    odd = Program()
    x, y = odd.var('a "b" \\ é\n', -3, 4), odd.var("", -5, -1)
    odd.row("x\\", {x: 1, y: 1}, Sense.LE, 2)
    odd.row("", {x: 0}, Sense.LE, 0)
    odd.row("at least", {y: 1}, Sense.GE, -2)
    odd.level("most", {x: 2, y: 1}, 100, "max")
    assert parse(to_cp_sat(odd), tmp_path / "odd.pbtxt")[0] == 106, "x = 4, y = -2, as above"
    odd.var("part", 0, 1, integer=False)
    with pytest.raises(InputError, match="'part' is continuous"):
        to_cp_sat(odd)


def test_the_same_program_gives_the_same_text() -> None:
    assert to_lp(program()) == to_lp(program())
    assert to_mps(program()) == to_mps(program())
    assert to_cp_sat(program()) == to_cp_sat(program())
