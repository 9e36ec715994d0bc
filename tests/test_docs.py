"""What the pages show is what runs: Python blocks are executed, output blocks that follow them compared."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kant_opt.backends import BACKENDS
from kant_opt.errors import BackendUnavailable
from kant_opt.planning import POLICIES

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)[^)]*\)")


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """Return the page's Python blocks, each with the output shown after it."""
    return [(match[1], match[2]) for match in BLOCK.finditer(page.read_text())]


def test_the_readme_has_a_block_to_run() -> None:
    assert any(shown for _, shown in blocks(ROOT / "README.md"))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_code_runs_and_prints_what_the_page_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block may use what those before it on its page have made. Pages that need an extra are skipped without it."""
    for registry in (POLICIES, BACKENDS):  # a page's own policies and backends are no one else's
        monkeypatch.setattr(registry, "_parts", dict(registry.items()))
    names: dict[str, Any] = {}
    for n, (code, shown) in enumerate(blocks(page)):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(code, f"{page.relative_to(ROOT)}-{n}", "exec"), names)
            except BackendUnavailable as missing:
                pytest.skip(str(missing))
        if shown is not None:
            assert out.getvalue() == shown, f"block {n}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_demo_answer_in_the_readme_is_the_one_the_command_gives() -> None:
    """Every line of the shortened answer stands in the real one, in the same order."""
    command = [
        sys.executable,
        "-c",
        "from kant_opt.cli import main; main()",
        "place",
        str(ROOT / "instances" / "slurm-2048.json.gz"),
    ]
    real = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"}).stdout
    lines = iter([line.rstrip() for line in real.splitlines()])
    shown = (ROOT / "README.md").read_text().split("```\nslurm-2048\n")[1].split("```")[0]
    for line in filter(None, shown.splitlines()):
        assert line.rstrip() in lines, line
