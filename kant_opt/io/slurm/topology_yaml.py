"""`topology.yaml` (Slurm 25.05 and later): several named topologies, of which the default one is read."""

from __future__ import annotations

import re
from collections.abc import Callable

from kant_opt.errors import InputError
from kant_opt.io.objects import Object
from kant_opt.io.plain import load_data
from kant_opt.io.slurm.hostlist import expand
from kant_opt.io.slurm.topology_conf import Lines, Topology, read_entries

YAML_SIGNATURE = re.compile(r"^[ \t]*-?[ \t]*topology[ \t]*:", re.MULTILINE)
"""Finds one line of a topology.yaml in a text."""

_LARGEST_RING = 16


def read_topology_yaml(text: str, place: str) -> Topology:
    """Return the topology marked `cluster_default`, else the first; the others are checked and named in a note.

    Raises InputError with the path of the fault for what Slurm refuses too.
    """
    data = load_data(text, place)
    root = Object({"topologies": data if isinstance(data, list) else [data]}, None, place)
    found = []
    for item in root.children("topologies"):
        name = item.required("topology")
        found.append((name, item.flag("cluster_default"), _read(item)))
    if not found:
        raise InputError("no topology in it", place=place, way_out="add one")
    chosen = next((f for f in found if f[1]), found[0])
    others = [name for name, _, _ in found if name != chosen[0]]
    notes = (f"{place}: topology {chosen[0]!r} is read, not {', '.join(others[:5])}",) if others else ()
    return chosen[2].with_notes(notes)


def _read(item: Object) -> Topology:
    _known(item, ("topology", "cluster_default", *_KINDS, "flat"))
    kinds = [kind for kind in (*_KINDS, "flat") if kind in item]
    if kinds[-1:] == ["flat"] and item.is_false("flat"):
        kinds.remove("flat")
    if len(kinds) != 1:
        told = " and ".join(kinds) or "no kind"
        raise item.fault(kinds[-1] if kinds else "topology", f"{told} in one topology", "give one kind each")
    if kinds == ["flat"]:
        return Topology()
    return _KINDS[kinds[0]](item.child(kinds[0]))


def _tree(tree: Object) -> Topology:
    _known(tree, ("switches",))
    lines: Lines = []
    for switch in tree.one_or_more("switches"):
        _known(switch, ("switch", "children", "nodes", "link_speed"))
        entry = {"switchname": switch.required("switch")}
        entry |= {
            key: value for key, field in (("switches", "children"), ("nodes", "nodes")) if (value := switch.text(field))
        }
        lines.append((switch.place, entry))
    return read_entries("switch", lines)


def _block(block: Object) -> Topology:
    _known(block, ("block_sizes", "blocks"))
    lines: Lines = []
    for item in block.one_or_more("blocks"):
        _known(item, ("block", "nodes"))
        lines.append((item.place, {"blockname": item.required("block"), "nodes": item.text("nodes")}))
    if sizes := block.integers("block_sizes"):
        lines.append((f"{block.place}.block_sizes", {"blocksizes": ",".join(map(str, sizes))}))
    return read_entries("block", lines)


def _ring(ring: Object) -> Topology:
    _known(ring, ("rings",))
    lines: Lines = []
    for item in ring.one_or_more("rings"):
        _known(item, ("ring", "nodes"))
        nodes = item.text("nodes")
        if (num := len(expand(nodes, item.place))) > _LARGEST_RING:
            raise item.fault("nodes", f"{num} nodes on a ring", f"a ring has at most {_LARGEST_RING}")
        lines.append((item.place, {"ringname": item.required("ring"), "nodes": nodes}))
    return read_entries("ring", lines)


def _torus(torus: Object) -> Topology:
    """Read tori as domains; where a node lies in its torus is not kept."""
    _known(torus, ("toruses",))
    lines: Lines = []
    for item in torus.one_or_more("toruses"):
        _known(item, ("name", "dims", "nodes", "placements", "regions"))
        cells = 1
        for axis in ("x", "y", "z"):
            size = item.child("dims").integer(axis)
            if size is None or size < 1:
                raise item.fault(f"dims.{axis}", "missing or below 1", "give the size")
            cells *= size
        nodes = [item.text("nodes"), *(r.text("nodes") for r in item.one_or_more("regions"))]
        listed = ",".join(filter(None, nodes))
        for placement in item.one_or_more("placements"):
            _known(placement, ("dims", "anchors"))
        if (num := len(expand(listed, item.place))) != cells:
            raise item.fault("nodes", f"{num} nodes for {cells} places", "list a node for each place")
        lines.append((item.place, {"ringname": item.required("name"), "nodes": listed}))
    found = read_entries("ring", lines)
    return Topology(("torus",), found.paths, kind="torus3d", notes=("the places of nodes in their torus are not kept",))


_KINDS: dict[str, Callable[[Object], Topology]] = {"block": _block, "ring": _ring, "torus3d": _torus, "tree": _tree}


def _known(item: Object, keys: tuple[str, ...]) -> None:
    for key in item.keys():  # noqa: SIM118 - an Object is no mapping
        if key not in keys:
            raise item.fault(key, "unknown option", f"known are {', '.join(keys)}")
