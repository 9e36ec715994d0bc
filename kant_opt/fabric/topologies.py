"""Fabrics that ship with the project, and fabrics in files of the same kind: one TOML file each.

A file holds either `[generator]` (a name and its numbers) or `levels` with `[[domain]]` entries (path, nodes such as
"n[01-16]", and any field of a node), optionally `separate_roots` and `[[uplink]]` entries (path, links, gbps of one
cable), and `[expect]`, the counts that a test holds against it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric.generators import GENERATORS, MOST_NODES, Generated
from kant_opt.schema import FabricSpec, Node, parse
from kant_opt.shipped import shipped

_LARGEST_FILE = 4 << 20  # bytes; far more than a fabric needs to be written down
_FIELDS = {"generator", "levels", "separate_roots", "domain", "uplink", "expect"}


def list_topologies() -> tuple[str, ...]:
    """Return the names of the topologies that ship with the project, sorted."""
    return tuple(sorted(path.stem for path in shipped("topologies").glob("*.toml")))


def load_topology(name_or_path: str | Path) -> Generated:
    """Return the fabric and the nodes of a shipped topology (by name) or of a TOML file (by path).

    Raises UnknownName for a name that does not ship, InputError for a file that cannot be read or meant.

    >>> spec, nodes = load_topology("uneven-64")
    >>> spec.levels, len(nodes)
    (('superpod', 'leaf'), 64)
    """
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and path.suffix != ".toml" and len(path.parts) == 1:
        known = list_topologies()
        if name_or_path not in known:
            raise UnknownName("topology", name_or_path, known)
        path = shipped("topologies") / f"{name_or_path}.toml"
    try:
        return _fabric(_read(path))
    except InputError as error:
        raise error.within(path.name) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_FILE + 1)
        if len(text) > _LARGEST_FILE:
            raise InputError(f"the file is larger than {_LARGEST_FILE} bytes", way_out="is it a topology?")
        return tomllib.loads(text.decode())
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", way_out="check the path") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", way_out="is it a topology?") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"is not TOML ({error})") from None


def _fabric(data: Mapping[str, Any]) -> Generated:
    for field in data:
        if field not in _FIELDS:
            raise UnknownName("field", field, _FIELDS)
    if ("generator" in data) == ("domain" in data):
        raise InputError("a topology has either a [generator] or [[domain]] entries")
    uplinks = [_uplink(entry, f"uplink.{i}") for i, entry in enumerate(_tables(data, "uplink"))]
    if "generator" in data:
        if extra := sorted({"levels", "separate_roots"} & set(data)):
            raise InputError(f"{extra[0]!r} follows from the generator", way_out="leave it out")
        spec, nodes = _generated(data["generator"])
        if uplinks and spec.is_graph:
            raise InputError("[[uplink]] entries name paths, but this generator makes a graph", place="uplink.0")
        return spec.model_copy(update={"links": (*spec.links, *parse(FabricSpec, {"links": uplinks}).links)}), nodes
    fields = {field: data[field] for field in ("levels", "separate_roots") if field in data}
    spec = parse(FabricSpec, {**fields, "links": uplinks})
    nodes = tuple(n for i, entry in enumerate(_tables(data, "domain")) for n in _nodes(entry, f"domain.{i}"))
    if len(nodes) > MOST_NODES:
        raise InputError(f"{len(nodes)} nodes are more than {MOST_NODES}")
    return spec, nodes


def _generated(entry: object) -> Generated:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise InputError("needs a name", place="generator", way_out=f"known: {', '.join(GENERATORS)}")
    numbers = {key: value for key, value in entry.items() if key != "name"}
    generate = GENERATORS[entry["name"]]
    try:
        return generate(**numbers)
    except InputError as error:
        raise error.within("generator") from None
    except (TypeError, ValueError) as error:  # a parameter that is missing, unknown or of the wrong type
        raise InputError(f"{entry['name']}: {error}".splitlines()[0], place="generator") from None


def _tables(data: Mapping[str, Any], field: str) -> Iterator[dict[str, Any]]:
    entries = data.get(field, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("is not a list of tables", place=field, way_out=f"write [[{field}]]")
    yield from entries


def _uplink(entry: Mapping[str, Any], place: str) -> dict[str, Any]:
    return {"a": "/".join(_path(entry, place)), **{key: value for key, value in entry.items() if key != "path"}}


def _path(entry: Mapping[str, Any], place: str) -> list[str]:
    path = entry.get("path")
    if not isinstance(path, list) or not all(isinstance(name, str) and name for name in path):
        raise InputError(f"path is {path!r}", place=place, way_out="list the name of the domain on each level")
    return path


def _nodes(entry: Mapping[str, Any], place: str) -> Iterator[Node]:
    fields = {key: value for key, value in entry.items() if key != "nodes"}
    path = _path(entry, place)
    for name in _hosts(entry.get("nodes"), f"{place}.nodes"):
        yield parse(Node, {**fields, "path": path, "name": name}, place=place)


def _hosts(text: object, place: str) -> list[str]:
    """Return the names that a host list such as "n[01-16],login" stands for, sorted."""
    # Sets, groups and steps of the full notation are not needed here, and groups could run commands.
    if not isinstance(text, str) or not re.fullmatch(r"[A-Za-z0-9_.\-\[\],]+", text) or re.search(r"\d{16}", text):
        raise InputError(f"{text!r} is not a list of hosts", place=place, way_out='write e.g. "n[01-16]"')
    if sum(map(_num_hosts, re.findall(r"(?:\[[^\]]*\]|[^,\[])+", text))) > MOST_NODES:
        raise InputError(f"{text!r} stands for more than {MOST_NODES} hosts", place=place)
    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise InputError(f"{text!r} is not a list of hosts ({error})", place=place) from None


def _num_hosts(pattern: str) -> int:
    """Return at most how many hosts one pattern stands for, before anything is expanded."""
    return prod(
        sum(1 + max(0, int(high or low) - int(low)) for low, high in re.findall(r"(\d+)(?:-(\d+))?", ranges))
        for ranges in re.findall(r"\[([^\]]*)\]", pattern)
    )
