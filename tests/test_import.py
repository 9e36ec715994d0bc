"""`import kant_opt` is light, and every public name is there when asked."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import kant_opt

HEAVY = ("numpy", "networkx", "pydantic", "ortools", "pulp", "highspy", "yaml", "ClusterShell", "rich")


def _loaded_by(statement: str) -> set[str]:
    """Return the modules that a fresh interpreter holds after a statement."""
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = _loaded_by("import kant_opt")
    assert not loaded.intersection((*HEAVY, "typer"))
    assert {name for name in loaded if name.startswith("kant_opt")} == {"kant_opt"}
    assert "numpy" in _loaded_by("from kant_opt import place"), "else this test cannot see what is loaded"


def test_the_program_loads_nothing_heavy_before_a_command_runs() -> None:
    assert not _loaded_by("import kant_opt.cli.app").intersection(HEAVY)


@pytest.mark.parametrize("name", sorted(kant_opt.__all__))
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(kant_opt, name) is not None
    assert name in dir(kant_opt)


def test_a_name_of_another_kind_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plaice'"):
        _ = kant_opt.plaice


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING, the table of homes and __all__ say the same, home by home."""
    tree = ast.parse(Path(kant_opt.__file__).read_text())
    block = next(part for part in tree.body if isinstance(part, ast.If))
    seen = {
        alias.asname or alias.name: str(part.module).split(".")[1]
        for part in block.body
        if isinstance(part, ast.ImportFrom)
        for alias in part.names
    }
    assert seen == kant_opt._HOME
    assert sorted({*seen, "__version__"}) == sorted(kant_opt.__all__)


def test_no_public_name_is_a_submodule_too() -> None:
    """Else it would be the function or the module, by which was imported last."""
    assert not [name for name in kant_opt.__all__ if name != "__version__" and find_spec(f"kant_opt.{name}")]


def test_every_type_of_the_schema_is_public_here() -> None:
    from kant_opt import schema

    inside = {"DOCUMENTS", "NODE_LEVEL", "SCHEMA_VERSION", "Frozen", "ReasonKind", "Status", "TermName"}
    assert set(schema.__all__) - inside == {name for name, home in kant_opt._HOME.items() if home == "schema"}
