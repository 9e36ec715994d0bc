"""Documents in and out: JSON text or plain data to checked types, errors as one sentence with its place."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kant_opt.errors import InputError
from kant_opt.schema.outcome import Outcome
from kant_opt.schema.placement import Placement
from kant_opt.schema.plan import Plan
from kant_opt.schema.request import Request

M = TypeVar("M", bound=BaseModel)
_SHOWN = 3

DOCUMENTS: dict[str, type[BaseModel]] = {
    "request": Request,
    "placement": Placement,
    "outcome": Outcome,
    "plan": Plan,
}
"""The types that are files of their own."""


def parse(kind: type[M], data: object, *, place: str = "") -> M:
    """Return `data` (plain dicts and lists) as a `kind`.

    Raises InputError naming the place inside the document, the value and the way out; of many faults the first
    three are told and the rest counted. `place` is put in front, e.g. the file's name.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise _as_input_error(error, place) from None
    except InputError as error:
        raise (error.within(place) if place else error) from None


def to_json(document: BaseModel, *, indent: int | None = None) -> str:
    """Return the document as JSON without fields left at their defaults, always naming its schema."""
    data = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if "schema_version" in type(document).model_fields:
        data = {"schema": 1, **data}
    return json.dumps(data, indent=indent, ensure_ascii=False, separators=None if indent else (",", ":"))


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a document type named in DOCUMENTS."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **DOCUMENTS[kind].model_json_schema(by_alias=True),
    }


def _as_input_error(error: ValidationError, place: str) -> InputError:
    faults = error.errors(include_url=False)
    told = [_located(dict(f)) for f in faults[:_SHOWN]]
    where, text = told[0]
    text = "; ".join([text, *(f"{w}: {t}" if w else t for w, t in told[1:])])
    if len(faults) > _SHOWN:
        text += f"; and {len(faults) - _SHOWN} more faults"
    inner = InputError(text, place=where)
    return inner.within(place) if place else inner


def _located(fault: dict[str, Any]) -> tuple[str, str]:
    """Return where a fault lies and the sentence that tells it."""
    where = [str(part) for part in fault["loc"]]
    cause = fault.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        text = f"{cause.problem}: {cause.way_out}" if cause.way_out else cause.problem
        return ".".join([*where, cause.place] if cause.place else where), text
    return ".".join(where), _sentence(fault)


def _sentence(fault: dict[str, Any]) -> str:
    kind, value = fault["type"], fault.get("input")
    message = str(fault["msg"]).removeprefix("Value error, ")
    name = fault["loc"][-1] if fault["loc"] else "document"
    if kind == "extra_forbidden":
        return f"unknown field {name!r}; remove it or correct its spelling"
    if kind == "missing":
        return f"field {name!r} is missing; add it"
    if kind == "value_error":
        return message
    shown = repr(value)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    return f"{name} is {shown}: {message[0].lower()}{message[1:]}"
