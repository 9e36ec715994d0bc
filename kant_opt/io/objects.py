"""Objects as they stand in files, plain data: each value asked for with its type and known by its place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from kant_opt.errors import InputError
from kant_opt.io.notes import LeftOutNote


class Object:
    """A JSON object and where it stands. An absent field and null are the same."""

    __slots__ = ("_data", "_key", "_parent")

    def __init__(self, data: object, parent: Object | None, key: str) -> None:
        self._parent, self._key = parent, key
        if not isinstance(data, dict):
            raise InputError(f"{_told(data)} where an object was expected", place=self.place, way_out="correct it")
        self._data: dict[str, Any] = data

    @property
    def place(self) -> str:
        """The file and the path in it: "nodes.json: items.3.status"."""
        if self._parent is None:
            return self._key
        outer = self._parent.place
        return f"{outer}.{self._key}" if self._parent._parent is not None else f"{outer}: {self._key}"

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def keys(self) -> tuple[str, ...]:
        """Return the names of its fields."""
        return tuple(self._data)

    def is_false(self, key: str) -> bool:
        """Return whether a field is there and false."""
        return self._data.get(key) is False

    def text(self, key: str, default: str = "") -> str:
        """Return a text field."""
        value = self._data.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.fault(key, f"{_told(value)} where text was expected", "put it in quotes")
        return value

    def required(self, key: str) -> str:
        """Return a text field that must be there."""
        if not (value := self.text(key)):
            raise self.fault(key, "missing or empty", f"give the {key}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean field, False where absent."""
        value = self._data.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.fault(key, f"{_told(value)} where true or false was expected", "write true or false")
        return bool(value)

    def integer(self, key: str) -> int | None:
        """Return a whole number, None where absent."""
        value = self._data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.fault(key, f"{_told(value)} where a whole number was expected", "write a whole number")
        return value

    def number(self, key: str) -> float | int | None:
        """Return a number, whole or not, None where absent."""
        value = self._data.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self.fault(key, f"{_told(value)} where a number was expected", "write a number")
        if isinstance(value, float) and not isfinite(value):
            raise self.fault(key, f"{value} is not finite", "write a finite number")
        return value

    def seconds(self, key: str) -> int | None:
        """Return an RFC 3339 time as whole seconds since 1970 (UTC), None where absent."""
        text = self.text(key)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise self.fault(key, f"{text[:40]!r} is not a time", "write e.g. 2026-01-31T12:00:00Z") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() // 1)

    def child(self, key: str) -> Object:
        """Return the object in a field, an empty one where absent."""
        value = self._data.get(key)
        return Object({} if value is None else value, self, key)

    def children(self, key: str) -> Iterator[Object]:
        """Yield the objects of a list field, none where absent."""
        for i, value in enumerate(self._list(key)):
            yield Object(value, self, f"{key}.{i}")

    def one_or_more(self, key: str) -> Iterator[Object]:
        """Yield the objects of a field that holds a list of them or just one."""
        value = self._data.get(key)
        if isinstance(value, dict):
            yield Object(value, self, key)
        else:
            yield from self.children(key)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list field of texts."""
        values = self._list(key)
        for i, value in enumerate(values):
            if not isinstance(value, str):
                raise self.fault(f"{key}.{i}", f"{_told(value)} where text was expected", "put it in quotes")
        return tuple(values)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list field of whole numbers."""
        values = self._list(key)
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int):
                raise self.fault(f"{key}.{i}", f"{_told(value)} where a whole number was expected", "write one")
        return tuple(values)

    def texts(self, key: str) -> dict[str, str]:
        """Return a field that maps names to texts: labels, annotations, a node selector."""
        fields = self.child(key)
        return {name: fields.text(name) for name in fields._data}

    def amounts(self, key: str) -> dict[str, str]:
        """Return a field that maps resources to quantities; numbers become their text."""
        fields = self.child(key)
        return {name: fields.amount(name) for name in fields._data}

    def amount(self, key: str) -> str:
        """Return the text of a quantity, also of one that stands there as a number. The field must be there."""
        value = self._data.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fault(key, f"{_told(value)} where a quantity was expected", "write e.g. '8' or '64Gi'")
        return str(value)

    def fault(self, key: str, problem: str, way_out: str) -> InputError:
        """Return the error that tells a problem of one field."""
        joint = "." if self._parent is not None else ": "
        return InputError(problem, place=f"{self.place}{joint}{key}", way_out=way_out)

    def _list(self, key: str) -> list[Any]:
        value = self._data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(key, f"{_told(value)} where a list was expected", "write a list")
        return value


class Notes:
    """Sentences about what is left out or odd, one for each kind, with how often and a few names."""

    _SHOWN = 3

    def __init__(self) -> None:
        self._subjects: dict[str, list[str]] = {}

    def add(self, text: str, subject: str) -> None:
        """Note `text` about `subject`."""
        self._subjects.setdefault(text, []).append(subject)

    def sentences(self) -> tuple[str, ...]:
        """Return the notes in the order of their first subject."""
        told: list[str] = []
        for text, subjects in self._subjects.items():
            names = ", ".join(subjects[: self._SHOWN]) + (", ..." if len(subjects) > self._SHOWN else "")
            sentence = f"{text}: {len(subjects)} ({names})"
            told.append(LeftOutNote.about(subjects, sentence) if "left out" in text else sentence)
        return tuple(told)


def _told(value: object) -> str:
    if value is None or isinstance(value, bool | int | float | str):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return "an object" if isinstance(value, dict) else "a list"
