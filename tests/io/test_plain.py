"""JSON and YAML texts: equal to what the standard parsers say on what both accept."""

from __future__ import annotations

import doctest
import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.io import plain
from kant_opt.io.plain import load_data, load_documents, load_json, load_yaml, top_keys

LEAVES = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.text(max_size=6).filter(lambda key: key != "<<")  # refused on purpose
TREES = st.recursive(
    LEAVES | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(TREES, st.sampled_from([None, 1]))
def test_json_is_read_as_json_reads_it(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert load_json(text, "t") == value


@settings(deadline=None, derandomize=True, max_examples=150)
@given(TREES, st.booleans())
def test_yaml_gives_back_what_was_dumped(value: Any, flow: bool) -> None:
    """PyYAML quotes whatever its YAML 1.1 would take for another type, which is more than 1.2 does."""
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=False)
    assert load_yaml(text, "t") == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),  # YAML 1.1: False
        ("12:30", "12:30"),  # YAML 1.1: 750
        ("2026-01-01", "2026-01-01"),  # YAML 1.1: a date
        ("010", 10),  # YAML 1.1: 8
        ("1e3", 1000.0),  # YAML 1.1: text
        ("0x1f", "0x1f"),
        ("'8'", "8"),
        ("!!str 8", "8"),
        ("! 8", "8"),
        ("null", None),
        ("True", True),
        ("-7", -7),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    (document,) = load_yaml(f"a: {text}\n", "t")
    assert document == {"a": value}
    assert type(document["a"]) is type(value)


def test_an_alias_is_the_value_it_names() -> None:
    assert load_yaml("a: &x {k: [1]}\nb: *x\nc: &y 5\nd: *y\n", "t") == [
        {"a": {"k": [1]}, "b": {"k": [1]}, "c": 5, "d": 5}
    ]


def test_anchors_end_with_their_document() -> None:
    with pytest.raises(InputError, match=r"line 3 column 4: alias \*x"):
        load_yaml("a: &x 1\n---\nb: *x\n", "t")


@pytest.mark.parametrize("text", ["? [a]\n: 1\n", "? {a: 1}\n: 1\n", "? &k [a]\n: 1\n"])
def test_keys_are_text(text: str) -> None:
    with pytest.raises(InputError, match="use text as keys"):
        load_yaml(text, "t")


def test_a_key_that_is_a_number_is_its_text() -> None:
    assert load_yaml("8: a\n", "t") == [{"8": "a"}]


@pytest.mark.parametrize(
    "text", ['{"a": {"b": 1, "b": 2}}', '{"a": [NaN]}', '{"a": -Infinity}', '{"n": ' + "7" * 5000 + "}"]
)
def test_json_faults_are_placed(text: str) -> None:
    with pytest.raises(InputError, match=r"^t: line 1 column \d+: "):
        load_json(text, "t")


def test_a_text_in_a_string_is_no_fault() -> None:
    """The scanner that places faults must not see keys, brackets or NaN inside strings."""
    text = '{"a": "NaN, {\\"b\\": [[[", "c": {"a": 1}, "d": [{"a": 1}, {"a": 1}],\n "c": 2}'
    with pytest.raises(InputError, match=r"line 2 column 2: key 'c' occurs twice"):
        load_json(text, "t")
    with pytest.raises(InputError, match=r"key 'a' occurs twice"):  # a long fraction is no long integer
        load_json('{"a": 1.000000000000000000000001, "a": 1}', "t")


def test_half_characters_are_refused() -> None:
    """A pair of escapes is one character, an escaped backslash is none, half a pair cannot be written to any file."""
    assert load_json('["\\ud83d\\ude00", "\\\\ud800"]', "t") == ["😀", "\\ud800"]
    for half in ("\\ud800", "\\uDC00", "\\ude00\\ud83d", "\\ud83d\\ud83d\\ude00"):
        with pytest.raises(InputError, match=r"^t: line 2 column 3: \\u[dD]... is half a character"):
            load_json(f'[1,\n "{half}"]', "t")
    with pytest.raises(InputError, match="not YAML"):
        load_yaml('a: "\\ud800"', "t")


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "a: " + "[" * 100_000, "- " * 50_000])
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(InputError, match=r"deeper|depth"):
        load_documents(text, "t")


def test_one_document_is_wanted() -> None:
    assert load_data("a: 1", "t") == {"a": 1}
    for text in ("", "a: 1\n---\nb: 2\n", "# nothing\n"):
        with pytest.raises(InputError, match=r"empty|2 documents"):
            load_data(text, "t")


def test_top_keys_of_a_beginning() -> None:
    whole = json.dumps({"a": {"x": [1, {"y": 2}]}, 'b"c': "d: {", "e": [{"f": 1}]}, indent=1)
    assert top_keys(whole) == ("a", 'b\\"c', "e")
    assert top_keys(whole[: whole.index('"e"')]) == ("a", 'b\\"c')
    assert top_keys("[{}]") == ()
    assert top_keys("# c\nkind: Node\n'k': 1\nspec:\n  deep: 1\n- x: 1\n") == ("kind", "k", "spec")


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(plain).failed == 0
