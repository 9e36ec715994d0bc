"""Named parts that users may choose from: backends, constraints, terms, formats, policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from kant_opt.errors import UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """A name -> part map in order of registration; a second part of the same name is refused.

    >>> colours: Registry[int] = Registry("colour")
    >>> colours.add("red", 1)
    >>> colours["red"], list(colours)
    (1, ['red'])
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, T] = {}

    def add(self, name: str, part: T) -> None:
        if name in self._parts:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._parts[name] = part

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds what it decorates under `name`."""

        def add(part: T) -> T:
            self.add(name, part)
            return part

        return add

    def __getitem__(self, name: str) -> T:
        """Return the part called `name`; raises UnknownName with the known names."""
        try:
            return self._parts[name]
        except KeyError:
            raise UnknownName(self.kind, name, self._parts) from None

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def items(self) -> Iterator[tuple[str, T]]:
        return iter(self._parts.items())
