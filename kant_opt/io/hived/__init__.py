"""HiveD's configuration: physical cells to nodes and levels, virtual clusters to queues with quotas."""

from __future__ import annotations

from pathlib import Path

from kant_opt.io.files import read_head, read_text
from kant_opt.io.formats import FORMATS, Read
from kant_opt.io.hived.cells import CellTypes, PhysicalCells
from kant_opt.io.objects import Notes, Object
from kant_opt.io.plain import load_data, top_keys
from kant_opt.schema import Request, parse


class HivedFormat:
    """hivedscheduler.yaml."""

    name = "hived"
    looks_for = "HiveD's configuration (key physicalCluster)"

    def sniff(self, source: Path) -> bool:
        """Return whether physicalCluster is among the outermost keys."""
        return source.is_file() and "physicalCluster" in top_keys(read_head(source))

    def read_with_notes(self, source: Path) -> Read:
        """Return the cluster as a request. A quota is what the cells of a virtual cluster hold, in GPUs by model."""
        notes = Notes()
        root = Object(load_data(read_text(source), source.name), None, source.name)
        physical = root.child("physicalCluster")
        types = CellTypes(physical.child("cellTypes"))
        cells = PhysicalCells(physical, types, notes)
        data = {
            "fabric": {"levels": cells.levels},
            "nodes": cells.nodes,
            "queues": [_queue(name, root, types, cells) for name in root.child("virtualClusters").keys()],  # noqa: SIM118
        }
        return parse(Request, data, place=source.name), notes.sentences()


def _queue(name: str, root: Object, types: CellTypes, cells: PhysicalCells) -> dict[str, object]:
    spec = root.child("virtualClusters").child(name)
    gpus: dict[str, int] = {}
    for cell in spec.children("virtualCells"):
        kind = cell.required("cellType").rpartition(".")[2]
        number = cell.integer("cellNumber") or 0
        model, size = types.leaves(kind, cell)
        gpus[model] = gpus.get(model, 0) + number * size
    for pin in spec.children("pinnedCells"):
        kind = cells.pinned.get(pin.required("pinnedCellId"), "")
        if not kind:
            raise pin.fault("pinnedCellId", "no physical cell has this id", "correct it")
        model, size = types.leaves(kind, pin)
        gpus[model] = gpus.get(model, 0) + size
    quotas = [{"resource": "gpu", "pool": model, "guaranteed": number} for model, number in gpus.items()]
    return {"name": name, "quotas": quotas}


FORMATS.add("hived", HivedFormat())
