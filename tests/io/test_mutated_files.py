"""Damaged files give a request or an InputError of one sentence, never another exception and never a hang."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.io import FORMATS, read_request
from kant_opt.io.openb import read_pair
from kant_opt.schema import Request

ROOT = Path(__file__).resolve().parents[1] / "data"
TEXTS = [
    "native/good.json",
    "native/good.yaml",
    "kubernetes/good.json",
    "kubernetes/good.yaml",
    "kubernetes/good-schedulers.json",
]
LISTS = ["openb/good-nodes.csv", "openb/good-pods.csv"]
FUZZ = settings(
    deadline=None, derandomize=True, max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

PIECES = st.sampled_from(
    [
        *(
            "",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "\n",
            " ",
            "\t",
            "-",
            "---\n",
            "&a ",
            "*a",
            "!!x ",
            "|",
            "#",
            "? ",
            "~",
        ),
        *("null", "1e999", "-1", "0", "9" * 25, "NaN", ".inf", "<<: ", "\\u0000", "\\ud800"),
        *("\x00", "\ud7ff", "\u2028", "é"),
    ]
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """The text with up to three spans cut out, doubled or replaced by a piece that means something to a parser."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(st.one_of(PIECES, st.just(text[start:end] * 2), st.text(max_size=3)))
        text = text[:start] + middle + text[end:]
    return text


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(
        ["", "x", "8", "-1", "64Gi", "1e18", "Always", "Exists", "2026-13-01", "٣", "0001-01-01T00:00:00+23:00"]
    )
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """The JSON text with one or two of its values, anywhere, replaced by another JSON value or left out."""
    data = json.loads(text)
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(_slots(data)))
        if isinstance(holder, dict) and draw(st.booleans()) and draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = draw(VALUES)
    return json.dumps(data)


@pytest.mark.parametrize("name", TEXTS)
def test_damaged_text(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text()

    @FUZZ
    @given(damaged(text))
    def check(broken: str) -> None:
        _read_or_refuse(_file(tmp_path, broken), FORMATS[name.partition("/")[0]].read_with_notes)

    check()


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(".json")])
def test_changed_values(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text()

    @settings(FUZZ, max_examples=400)
    @given(changed(text))
    def check(broken: str) -> None:
        _read_or_refuse(_file(tmp_path, broken), FORMATS[name.partition("/")[0]].read_with_notes)

    check()


@pytest.mark.parametrize("name", LISTS)
def test_damaged_lists(name: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text()
    nodes, pods = (ROOT / other for other in LISTS)

    @FUZZ
    @given(damaged(text))
    def check(broken: str) -> None:
        path = _file(tmp_path, broken)
        pair = (path, pods) if "nodes" in name else (nodes, path)
        _read_or_refuse(path, lambda _: (read_pair(*pair), ()))

    check()


@FUZZ
@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: b"\x1f\x8b\x08" + tail))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    _read_or_refuse(path, read_request)


def test_mutation_reaches_both_ends(tmp_path: Path) -> None:
    """Some damage leaves a readable file and some does not, else the tests above show little."""
    seen: set[bool] = set()
    text = (ROOT / "kubernetes/good.json").read_text()

    @FUZZ
    @given(changed(text))
    def check(broken: str) -> None:
        seen.add(_read_or_refuse(_file(tmp_path, broken), FORMATS["kubernetes"].read_with_notes))

    check()
    assert seen == {True, False}


def _read_or_refuse(path: Path, read: Callable[[Path], tuple[Request, tuple[str, ...]]]) -> bool:
    sentence = ""
    try:
        request, notes = read(path)
    except InputError as error:
        sentence = str(error)
    if sentence:
        assert sentence.strip()
        return False
    assert isinstance(request, Request)
    assert all(isinstance(note, str) for note in notes)
    return True


def _file(folder: Path, text: str) -> Path:
    path = folder / "file"
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    return path


def _slots(data: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in a tree of dicts and lists."""
    found: list[tuple[Any, Any]] = []
    stack = [data]
    while stack:
        holder = stack.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                stack.append(holder[key])
    return found
