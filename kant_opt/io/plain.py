"""JSON and YAML text to plain dicts and lists: strict, bounded, every fault with its line and column.

Refused: a key that occurs twice, NaN and Infinity, integers of more than 19 digits, nesting too deep (100 levels of
YAML, in JSON what the parser can hold), YAML tags, aliases that unfold to more than a million values. YAML follows the
1.2 core schema, so that `no`, `12:30` and dates stay text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from kant_opt.errors import InputError

DEEPEST = 100
MOST_DIGITS = 19  # as many as 64 bits need
_MOST_ALIASED = 1_000_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a PyYAML built without libyaml has only the slow one

Scalar = str | int | float | bool | None


def load_data(text: str, place: str) -> Any:
    """Return the one document in `text`, JSON or YAML by its look. `place` names the file in errors."""
    documents = load_documents(text, place)
    if not documents:
        raise InputError("the file is empty", place=place, way_out="name a file with a document")
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", place=place, way_out="one is read; keep one per file")
    return documents[0]


def load_documents(text: str, place: str) -> list[Any]:
    """Return all documents in `text`: one in JSON, any number (separated by ---) in YAML."""
    return [load_json(text, place)] if looks_like_json(text) else load_yaml(text, place)


def looks_like_json(text: str) -> bool:
    """Return whether `text` starts as a JSON object or list (a YAML file that starts so is JSON in practice)."""
    return text[:4096].lstrip()[:1] in ("{", "[")


def load_json(text: str, place: str) -> Any:
    """Return the value in a JSON text. Raises InputError with line and column."""
    _no_half_characters(text, place)
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        what = error.msg[0].lower() + error.msg[1:]
        raise InputError(
            f"not JSON: {what}", place=_at(place, error.lineno, error.colno), way_out="check for a cut or edited file"
        ) from None
    except (_FaultInside, RecursionError):
        _tell_json_fault(text, place)


_ESCAPE = re.compile(r"\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})")


def _no_half_characters(text: str, place: str) -> None:
    """Refuse an escape such as \\ud800 without its other half: Python would take it, and no file could hold it."""
    if "\\ud" not in text and "\\uD" not in text:
        return
    for match in _ESCAPE.finditer(text):
        if match[1]:
            raise InputError(
                f"{match[1]} is half a character",
                place=_at(place, *_position(text, match.start())),
                way_out="correct it",
            )


class _FaultInside(ValueError):
    """The text parses but holds something refused; where, `_tell_json_fault` finds out."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _FaultInside
    return result


def _refuse(_: str) -> NoReturn:
    raise _FaultInside


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS + 1:  # with its sign
        raise _FaultInside
    return int(digits)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|-?[A-Za-z]+|-?\d[^\s,\]}]*', re.DOTALL)


def _tell_json_fault(text: str, place: str) -> NoReturn:
    """Raise InputError for the first fault that the hooks cannot place. Only run once a fault is known: it is slow."""
    keys: list[set[str] | None] = []  # one entry per open bracket; a set for objects
    before = ""
    for match in _TOKEN.finditer(text):
        piece = match[0]
        fault = ""
        if piece in "{[":
            keys.append(set() if piece == "{" else None)
            if len(keys) > DEEPEST:
                fault = f"nested deeper than {DEEPEST} levels"
        elif piece in "}]":
            if keys:
                keys.pop()
        elif piece[0] == '"':
            seen = keys[-1] if keys else None
            if seen is not None and before in ("{", ","):
                key = json.loads(piece, strict=False)
                fault = f"key {_short(key)} occurs twice in one object" if key in seen else ""
                seen.add(key)
        elif piece.lstrip("-") in ("NaN", "Infinity"):
            fault = f"{piece} is no JSON number"
        elif piece.lstrip("-").isdigit() and len(piece.lstrip("-")) > MOST_DIGITS:
            fault = f"integer of {len(piece.lstrip('-'))} digits ({piece[:12]}...)"
        if fault:
            where = _at(place, *_position(text, match.start()))
            raise InputError(fault, place=where, way_out="correct it there")
        before = piece
    raise InputError(f"nested deeper than {DEEPEST} levels", place=place, way_out="flatten it")


def load_yaml(text: str, place: str) -> list[Any]:
    """Return the documents in a YAML text. Raises InputError with line and column."""
    try:
        return [document for document in _documents(text, place) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = _at(place, mark.line + 1, mark.column + 1) if mark else place
        problem = (error.problem or "not readable").strip()
        raise InputError(f"not YAML: {problem}", place=where, way_out="check indentation and quotes") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise InputError(f"not YAML: {str(error).splitlines()[0]}", place=place, way_out="save it as text") from None


class _Open:
    """A list or mapping under construction; a mapping's key waits in `key` for its value."""

    def __init__(self, value: list[Any] | dict[Any, Any], anchor: str | None) -> None:
        self.value, self.anchor = value, anchor
        self.key: Scalar = None
        self.has_key = False
        self.size = 1


def _documents(text: str, place: str) -> Iterator[Any]:
    """Build values from the parser's events without recursion, so that depth and size are bounded on the way."""
    anchors: dict[str, tuple[Any, int]] = {}
    aliased = 0
    stack: list[_Open] = []
    root: Any = None
    for event in yaml.parse(text, Loader=_LOADER):
        size = 1
        if isinstance(event, yaml.DocumentStartEvent):
            anchors, stack, root = {}, [], None
            continue
        if isinstance(event, yaml.DocumentEndEvent):
            yield root
            continue
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            _plain_tag(event, place)
            if stack and isinstance(stack[-1].value, dict) and not stack[-1].has_key:
                _refuse_yaml("a key is a list or mapping", event, place, "use text as keys")
            stack.append(_Open([] if isinstance(event, yaml.SequenceStartEvent) else {}, event.anchor))
            if len(stack) > DEEPEST:
                _refuse_yaml(f"nested deeper than {DEEPEST} levels", event, place, "flatten it")
            continue
        if isinstance(event, yaml.ScalarEvent):
            value: Any = _scalar(event, place)
            if event.anchor:
                anchors[event.anchor] = (value, 1)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                _refuse_yaml(f"alias *{event.anchor} names no finished anchor", event, place, "write the value out")
            value, size = anchors[event.anchor]
            aliased += size
            if aliased > _MOST_ALIASED:
                _refuse_yaml(f"aliases unfold to over {_MOST_ALIASED} values", event, place, "write the values out")
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            done = stack.pop()
            value, size = done.value, done.size
            if done.anchor:
                anchors[done.anchor] = (value, size)
        else:
            continue
        if not stack:
            root = value
            continue
        _put(stack[-1], value, size, event, place)


def _put(holder: _Open, value: Any, size: int, event: yaml.Event, place: str) -> None:
    holder.size += size
    if isinstance(holder.value, list):
        holder.value.append(value)
    elif holder.has_key:
        holder.value[holder.key] = value
        holder.has_key = False
    else:
        if isinstance(value, list | dict):
            _refuse_yaml("a key is a list or mapping", event, place, "use text as keys")
        key = value if isinstance(value, str) else str(event.value) if isinstance(event, yaml.ScalarEvent) else value
        if key == "<<":
            _refuse_yaml("merge keys (<<) are not read", event, place, "write the fields out")
        if key in holder.value:
            _refuse_yaml(f"key {_short(key)} occurs twice", event, place, "keep one of them")
        holder.key, holder.has_key = key, True


_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?\Z", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")


def _scalar(event: yaml.ScalarEvent, place: str) -> Scalar:
    text = str(event.value)
    if _plain_tag(event, place) or not event.implicit[0]:
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.match(text):
        if len(text.lstrip("+-")) > MOST_DIGITS:
            _refuse_yaml(f"integer of {len(text.lstrip('+-'))} digits ({text[:12]}...)", event, place, "correct it")
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if _NOT_FINITE.match(text):
        _refuse_yaml(f"{text} is no number here", event, place, "write a finite number, or quote it")
    return text


def _plain_tag(event: Any, place: str) -> bool:
    """Return whether the value is marked as text; refuse every other tag."""
    tag = event.tag
    if tag in (None, "!") and not (tag == "!" and isinstance(event, yaml.ScalarEvent)):
        return False
    if tag in ("!", "tag:yaml.org,2002:str") and isinstance(event, yaml.ScalarEvent):
        return True
    return _refuse_yaml(f"tag {_short(tag)} is not read", event, place, "remove it")


def _refuse_yaml(problem: str, event: yaml.Event, place: str, way_out: str) -> NoReturn:
    mark = event.start_mark
    raise InputError(problem, place=_at(place, mark.line + 1, mark.column + 1) if mark else place, way_out=way_out)


def _position(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _at(place: str, line: int, column: int) -> str:
    return f"{place}: line {line} column {column}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_JSON_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(:)?|[\[\]{}]', re.DOTALL)
_YAML_KEY = re.compile(r"^([A-Za-z_][\w.-]*|\"[^\"\n]*\"|'[^'\n]*'):(?:\s|$)", re.MULTILINE)


def top_keys(head: str) -> tuple[str, ...]:
    """Return the keys of the outermost mapping as far as the beginning of a JSON or YAML text shows them.

    >>> top_keys('{"kind": "List", "items": [{"kind": "No'), top_keys("kind: Node\\nspec:\\n  a: 1\\n")
    (('kind', 'items'), ('kind', 'spec'))
    """
    if not looks_like_json(head):
        return tuple(dict.fromkeys(key.strip("\"'") for key in _YAML_KEY.findall(head)))
    depth, keys = 0, []
    for match in _JSON_KEY.finditer(head):
        if match[0] in ("{", "["):
            depth += 1
        elif match[0] in ("}", "]"):
            depth -= 1
        elif depth == 1 and match[2]:
            keys.append(match[1])
    return tuple(dict.fromkeys(keys))
