"""topograph's models of fabrics (YAML): a tree of switches, blocks of nodes below its leaves, NVLink domains."""

from __future__ import annotations

from pathlib import Path

from kant_opt.io.files import read_head, read_text
from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.objects import Notes, Object
from kant_opt.io.plain import load_data, top_keys
from kant_opt.io.slurm.topology_conf import Lines, read_entries
from kant_opt.schema import Request, parse

_HBD = "hbd"


class TopographFormat:
    """A model file as topograph's simulator reads it."""

    name = "topograph"
    looks_for = "a model of topograph (keys switches, blocks)"

    def sniff(self, source: Path) -> bool:
        """Return whether the outermost keys are those of a model."""
        return source.is_file() and {"switches", "blocks"} <= set(top_keys(read_head(source)))

    def read_with_notes(self, source: Path) -> Read:
        """Return the fabric as a request whose nodes have no GPUs, as the model tells none."""
        notes = Notes()
        root = Object(load_data(read_text(source), source.name), None, source.name)
        blocks = list(root.children("blocks"))
        tree = read_entries("switch", _lines(root, blocks))
        domains = _domains(blocks, notes)
        levels = (*tree.levels, _HBD) if domains else tree.levels
        nodes = [
            {"name": node, "path": (*path, domains.get(node)) if domains else path} for node, path in tree.paths.items()
        ]
        for node in tree.paths:
            notes.add("nodes whose GPUs the model does not tell, read as without", node)
        data = {"fabric": {"levels": levels, "separate_roots": tree.separate_roots}, "nodes": nodes}
        return parse(Request, data, place=source.name), notes.sentences()


def _lines(root: Object, blocks: list[Object]) -> Lines:
    """Return the switches as lines of a topology.conf; a switch that is only named has no node below it."""
    switches = root.child("switches")
    lines: dict[str, tuple[str, dict[str, str]]] = {}
    named: list[str] = []
    for name in switches.keys():  # noqa: SIM118 - an Object is no mapping
        below = switches.child(name).words("switches")
        named += below
        lines[name] = (switches.child(name).place, {"switchname": name, "switches": ",".join(below)})
    for block in blocks:
        name = block.required("switch")
        where, entry = lines.setdefault(name, (block.place, {"switchname": name}))
        if "nodes" in entry:
            raise block.fault("switch", f"{name!r} has a block already", "join the two")
        lines[name] = (where, {k: v for k, v in entry.items() if v} | {"nodes": ",".join(block.words("nodes"))})
    for name in named:
        lines.setdefault(name, (switches.place, {"switchname": name}))
    return list(lines.values())


def _domains(blocks: list[Object], notes: Notes) -> dict[str, str]:
    """Return node -> its NVLink domain, the inner one where a block tells two."""
    found: dict[str, str] = {}
    for block in blocks:
        texts = block.texts("annotations")
        inner = next((v for k, v in texts.items() if k.endswith("/sub-domain")), "")
        outer = next((v for k, v in texts.items() if k.endswith("/domain")), "")
        if inner and outer:
            notes.add("outer accelerator domains are not read, of blocks", block.required("switch"))
        if domain := inner or outer:
            lines: Lines = [(block.place, {"switchname": "x", "nodes": ",".join(block.words("nodes"))})]
            found |= dict.fromkeys(read_entries("switch", lines).paths, domain)
    return found


FORMATS.add("topograph", TopographFormat())
