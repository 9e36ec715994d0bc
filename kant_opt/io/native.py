"""kant_opt's own request file: lossless, JSON or YAML, packed or not."""

from __future__ import annotations

from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.plain import load_data, top_keys
from kant_opt.schema import Request, parse

_FIELDS = frozenset(field.alias or name for name, field in Request.model_fields.items())
_TELLING = frozenset(("schema", "nodes", "jobs", "fabric"))


class NativeFormat:
    """A `Request` as it stands in the schema, written by `kant_opt.io.save`."""

    name = "native"
    looks_for = "a request in kant_opt's own form (keys schema, fabric, nodes, jobs), as JSON or YAML"

    def sniff(self, source: Path) -> bool:
        """Return whether the outermost keys are those of a request: "schema", or nothing but fields of it."""
        if source.is_dir():
            return False
        keys = set(top_keys(read_head(source)))
        return "schema" in keys or (bool(keys & _TELLING) and keys <= _FIELDS)

    def read_with_notes(self, source: Path) -> Read:
        """Return the request; nothing is left out, so there are no notes."""
        data = load_data(read_text(source), source.name)
        if not isinstance(data, dict):
            raise InputError(
                f"the document is a {type(data).__name__}",
                place=source.name,
                way_out="a request is a mapping with at least 'nodes'",
            )
        return parse(Request, data, place=source.name), ()


FORMATS.add("native", NativeFormat())
