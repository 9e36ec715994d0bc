"""The file formats kant_opt reads, and the one door to all of them: `read_request`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kant_opt.errors import InputError
from kant_opt.registry import Registry
from kant_opt.schema import Request

Read = tuple[Request, tuple[str, ...]]
"""A request, and a sentence for everything in the source that it leaves out or that looked odd."""


class Format(Protocol):
    """One way in which clusters write down their state."""

    name: str
    looks_for: str
    """What `sniff` wants to see, as the user would say it: "a Kubernetes NodeList, as JSON or YAML"."""

    def sniff(self, source: Path) -> bool:
        """Return whether `source`, a file or a folder, looks like this format.

        Content decides. Reads a bounded part of it and raises InputError only where it cannot be read at all.
        """
        ...

    def read_with_notes(self, source: Path) -> Read:
        """Return the request in `source` with notes. Raises InputError naming place, value and way out."""
        ...


FORMATS: Registry[Format] = Registry("format")
_LAST = "native"


def read_request(source: str | Path, *, format: str | None = None) -> Read:  # noqa: A002 - what users call it
    """Return the request in a file or folder, with notes on what was left out.

    Without `format` the one format that knows the content reads it; the native one, which is the least particular, only
    where no other does. Raises InputError where none or several know it, UnknownName for a `format` not in FORMATS.
    """
    path = Path(source)
    chosen = FORMATS[format] if format is not None else None
    if not path.exists():
        raise InputError("no such file or folder", place=str(path), way_out="check the path")
    if chosen:
        return chosen.read_with_notes(path)
    found = [name for name in FORMATS if name != _LAST and FORMATS[name].sniff(path)]
    if not found and _LAST in FORMATS and FORMATS[_LAST].sniff(path):
        found = [_LAST]
    if len(found) == 1:
        return FORMATS[found[0]].read_with_notes(path)
    what = "folder" if path.is_dir() else "file"
    if found:
        raise InputError(
            f"this {what} could be read as {' or '.join(found)}", place=path.name, way_out="name the format"
        )
    wanted = "; ".join(f"{name}: {part.looks_for}" for name, part in FORMATS.items())
    raise InputError(
        f"no known format in this {what}",
        place=path.name,
        way_out=f"looked for {wanted}; name the format if it is one of these",
    )
