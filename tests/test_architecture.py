"""Layers: a package imports from lower ones only, third-party packages stay in their rooms, the library is silent."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

RANK = {
    "errors": 0, "units": 0, "registry": 0, "shipped": 0, "words": 0,
    "schema": 1,
    "fabric": 2, "io": 2,
    "view": 3, "verify": 3, "metrics": 3,
    "formulation": 4, "reasons": 4, "bounds": 4,
    "backends": 5,
    "engine": 6,
    "planning": 7,
    "replay": 8,
    "study": 9,
    "testing": 9.5,
    "cli": 10,
}  # fmt: skip
"""Package -> layer. `testing` may use everything below `cli`."""

LEAVES_ALONE = {0}
"""Layers whose members may use each other: the smallest parts."""

ONLY = {"verify": {"errors", "units", "registry", "schema", "fabric"}}
"""What a package may import of ours where that is less than all lower layers: the judge knows no other part."""

ROOMS = {
    "networkx": {"fabric"},
    "numpy": {
        "view",
        "metrics",
        "formulation",
        "bounds",
        "reasons",
        "backends",
        "engine",
        "planning",
        "replay",
        "testing",
    },
    "pydantic": {"schema"},
    "typer": {"cli"},
    "rich": {"cli"},
    "ClusterShell": {"io", "fabric", "cli"},
    "yaml": {"io", "cli"},  # cli: `convert` writes YAML
    "hypothesis": {"testing"},
    "ortools": {"backends"},
    "pulp": {"backends"},
    "highspy": {"backends"},
    "altair": {"io", "replay", "cli"},  # io: the page that charts are in
    "vl_convert": {"io"},
    "gymnasium": {"replay"},
}
"""Third-party package -> the packages of ours that may import it."""


def faults(package: Path) -> Iterator[str]:
    """Yield one sentence for each breach of the rules in the package folder."""
    for path in sorted(package.rglob("*.py")):
        here = path.relative_to(package)
        yield from (f"{here}: {fault}" for fault in _faults_of(path, here, package.name))


def _faults_of(path: Path, here: Path, package: str) -> Iterator[str]:
    tree = ast.parse(path.read_text(), filename=str(here))
    home = here.parts[0].removesuffix(".py")
    if ast.get_docstring(tree) is None:
        yield "has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print" and home != "cli":
            yield f"line {node.lineno} prints"
        if home != "__init__":  # the public names come from everywhere, lazily; tests/test_import.py looks at that
            for module in _imported(node, here, package):
                if fault := _fault(home, module, package):
                    yield f"line {getattr(node, 'lineno', 0)} {fault}"


def _imported(node: ast.AST, here: Path, package: str) -> Iterator[str]:
    """Yield the full names that an import statement brings in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            folder = [package, *here.parent.parts]
            base = ".".join([*folder[: len(folder) - node.level + 1], *([base] if base else [])])
        # `from kant_opt import x` may mean the package x.
        yield from (f"{base}.{alias.name}" for alias in node.names) if base == package else (base,)


def _fault(home: str, module: str, package: str) -> str:
    """Return what is wrong with `home` importing `module`, empty where nothing is."""
    top, _, rest = module.partition(".")
    if top != package:
        if top in sys.stdlib_module_names or home in ROOMS.get(top, ()):
            return ""
        return f"imports {top}, which belongs in {', '.join(sorted(ROOMS.get(top, ()))) or 'no package'}"
    target = rest.partition(".")[0]
    if target in (home, "__version__"):
        return ""
    if home not in RANK or target not in RANK:
        return f"imports {target or package} into {home}: one of them is in no layer"
    if home in ONLY and target not in ONLY[home]:
        return f"imports {target}, which {home} may not know"
    if RANK[target] > RANK[home]:
        return f"imports {target}, a higher layer"
    if RANK[target] == RANK[home] and RANK[home] not in LEAVES_ALONE:
        return f"imports {target}, a sibling"
    return ""


def test_the_house_is_in_order(root: Path) -> None:
    assert list(faults(root / "kant_opt")) == []


PLANTED = {
    "upwards": ("schema/a.py", "from kant_opt.io import save", "imports io, a higher layer"),
    "sibling": ("fabric/a.py", "import kant_opt.io.files", "imports io, a sibling"),
    "through the front": ("metrics/a.py", "from kant_opt import engine", "imports engine, a higher layer"),
    "relative": ("view/a.py", "from ..metrics import measure", "imports metrics, a sibling"),
    "hidden in a function": ("io/a.py", "def f():\n    from kant_opt.view import Free", "imports view, a higher layer"),
    "the judge": ("verify/a.py", "from kant_opt.io import save", "imports io, which verify may not know"),
    "wrong room": ("io/a.py", "import numpy as np", "imports numpy, which belongs in backends,"),
    "no room": ("io/a.py", "from requests import get", "imports requests, which belongs in no package"),
    "new package": ("magic/a.py", "from kant_opt.schema import Job", "one of them is in no layer"),
    "prints": ("engine/a.py", "print('here')", "line 2 prints"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(tmp_path: Path, name: str) -> None:
    file, code, told = PLANTED[name]
    path = tmp_path / "kant_opt" / file
    path.parent.mkdir(parents=True)
    path.write_text(f'"""A module."""\n{code}\n')
    (found,) = faults(tmp_path / "kant_opt")
    assert found.startswith(file)
    assert told in found


def test_a_missing_docstring_is_found(tmp_path: Path) -> None:
    path = tmp_path / "kant_opt" / "io" / "a.py"
    path.parent.mkdir(parents=True)
    path.write_text("import json\n")
    assert list(faults(tmp_path / "kant_opt")) == ["io/a.py: has no docstring"]


def test_what_is_allowed_is_not_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "kant_opt" / "cli" / "a.py"
    path.parent.mkdir(parents=True)
    lines = (
        '"""A module."""', "import json", "import typer", "from kant_opt import __version__", "from . import b",
        "from kant_opt.cli.b import c", "from kant_opt.engine import place", "print(1)",
    )  # fmt: skip
    path.write_text("\n".join(lines))
    assert list(faults(tmp_path / "kant_opt")) == []
