"""openb: the node and pod lists of Alibaba's cluster-trace-gpu-v2023, as the FGD simulator reads them.

Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC
2023.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.formats import FORMATS, Read
from kant_opt.schema import Job, Node, Request, parse
from kant_opt.units import MIB, MILLI

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_SUFFIXES = (".csv", ".csv.gz")


class OpenbFormat:
    """A folder with a node list and a pod list, or a pod list alone: its nodes are beside it or one folder up.

    Of several node lists the one in which every node has GPUs is taken (FGD's protocol) and noted.
    """

    name = "openb"
    looks_for = "an openb pod list (CSV: name,cpu_milli,memory_mib,num_gpu,gpu_milli,...) with a node list beside it"

    def sniff(self, source: Path) -> bool:
        """Return whether a header line is that of an openb list."""
        return any(_is_list(path, _POD_COLUMNS) or _is_list(path, _NODE_COLUMNS) for path in _tables(source))

    def read_with_notes(self, source: Path) -> Read:
        """Return the request. Costs one pass over the lists."""
        if source.is_dir():
            found = [p for p in _tables(source) if _is_list(p, _POD_COLUMNS)]
            if len(found) != 1:
                raise InputError(
                    f"{len(found)} pod lists in this folder ({_names(found)})",
                    place=source.name,
                    way_out="name one pod list instead of the folder",
                )
            pods = found[0]
        elif _is_list(source, _NODE_COLUMNS):
            raise InputError(
                "a node list", place=source.name, way_out="name the pod list; its nodes are found beside it"
            )
        else:
            pods = source
        nodes, notes = _choose(_node_lists(pods), pods)
        return read_pair(nodes, pods), notes


def read_pair(nodes: Path, pods: Path) -> Request:
    """Return a flat fabric of the nodes in one list, and each pod of the other as a job of one pod, in its order.

    `submit_s` is the pod's creation_time, its position where the list has no times; `walltime_s` is how long it ran,
    where told. A share is a pod of 1 GPU with gpu_milli below 1000. Raises InputError with the line.
    """
    jobs = tuple(_job(row, position) for position, row in enumerate(_rows(pods, _POD_COLUMNS)))
    return parse(
        Request,
        {"name": _stem(pods), "nodes": tuple(_node(row) for row in _rows(nodes, _NODE_COLUMNS)), "jobs": jobs},
        place=f"{nodes.name} with {pods.name}",
    )


class _Row:
    """One line of a list; cells are asked for by column."""

    def __init__(self, place: str, cells: dict[str, str]) -> None:
        self.place, self._cells = place, cells

    def text(self, column: str) -> str:
        return self._cells.get(column, "").strip()

    def number(self, column: str) -> int:
        value = self.optional(column)
        if value is None:
            raise InputError(f"column {column!r} is empty", place=self.place, way_out="write a whole number")
        return value

    def optional(self, column: str) -> int | None:
        text = self.text(column)
        if not text:
            return None
        digits = text.removesuffix(".0")  # times of some lists are written as floats
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
            raise InputError(
                f"column {column!r} is {text[:40]!r}", place=self.place, way_out="write a whole number, 0 or more"
            )
        return int(digits)


def _node(row: _Row) -> Node:
    gpus, model = row.number("gpu"), row.text("model")
    if gpus and not model:
        raise InputError(f"{gpus} GPUs without a model", place=row.place, way_out="fill column 'model'")
    return parse(
        Node,
        {
            "name": row.text("sn"),
            "gpus": gpus,
            "pools": (model or "default",),
            "cpu_milli": row.number("cpu_milli"),
            "memory_bytes": row.number("memory_mib") * MIB,
        },
        place=row.place,
    )


def _job(row: _Row, position: int) -> Job:
    podset: dict[str, object] = {
        "count": 1,
        "cpu_milli": row.number("cpu_milli"),
        "memory_bytes": row.number("memory_mib") * MIB,
        **_gpu_demand(row),
    }
    if models := row.text("gpu_spec"):
        podset["pools"] = tuple(models.split("|"))
    created, started, ended = (row.optional(f"{what}_time") for what in ("creation", "scheduled", "deletion"))
    if started is not None and ended is not None and ended < started:
        raise InputError(f"deleted at {ended}, before its start at {started}", place=row.place, way_out="correct it")
    return parse(
        Job,
        {
            "name": row.text("name"),
            "podsets": (podset,),
            "submit_s": position if created is None else created,
            "walltime_s": None if started is None or ended is None else ended - started,
        },
        place=row.place,
    )


def _gpu_demand(row: _Row) -> dict[str, int]:
    gpus, milli = row.number("num_gpu"), row.number("gpu_milli")
    if gpus == 0:
        return {}
    if milli == MILLI:
        return {"gpus": gpus}
    if gpus > 1 or not 0 < milli < MILLI:
        raise InputError(
            f"{gpus} GPUs of {milli} thousandths each",
            place=row.place,
            way_out="a share is 1 GPU of 1 to 999 thousandths; several GPUs have 1000 each",
        )
    return {"gpu_milli": milli}


def _rows(path: Path, wanted: tuple[str, ...]) -> Iterator[_Row]:
    """Yield the lines of a list. Raises InputError for missing columns and lines of another length."""
    reader = csv.reader(io.StringIO(read_text(path)), strict=True)
    try:
        header = [cell.strip() for cell in next(reader, [])]
        if missing := [column for column in wanted if column not in header]:
            raise InputError(
                f"column {missing[0]!r} is missing",
                place=f"{path.name}: line 1",
                way_out=f"needed: {', '.join(wanted)}",
            )
        first: dict[str, int] = {}
        for cells in reader:
            place = f"{path.name}: line {reader.line_num}"
            if not cells:
                continue
            if len(cells) != len(header):
                raise InputError(
                    f"{len(cells)} cells for {len(header)} columns", place=place, way_out="is the line cut or quoted?"
                )
            row = _Row(place, dict(zip(header, cells, strict=True)))
            name = row.text(wanted[0])
            if name in first:
                raise InputError(
                    f"{name!r} was there before, in line {first[name]}", place=place, way_out="keep one of the two"
                )
            first[name] = reader.line_num
            yield row
    except csv.Error as error:
        raise InputError(
            f"not CSV ({error})", place=f"{path.name}: line {reader.line_num}", way_out="check quotes and line ends"
        ) from None


def _choose(lists: list[Path], pods: Path) -> tuple[Path, tuple[str, ...]]:
    if not lists:
        raise InputError(
            "no openb node list beside it or one folder up",
            place=pods.name,
            way_out=f"add a CSV with the columns {','.join(_NODE_COLUMNS)}, or use kant_opt.io.openb.read_pair",
        )
    if len(lists) == 1:
        return lists[0], ()
    full = [p for p in lists if all(row.text("gpu") != "0" for row in _rows(p, _NODE_COLUMNS))]
    if len(full) != 1:
        raise InputError(
            f"{len(lists)} node lists are beside it ({_names(lists)})",
            place=pods.name,
            way_out="keep one, or use kant_opt.io.openb.read_pair",
        )
    others = _names([p for p in lists if p != full[0]])
    return full[0], (f"of several node lists the one where every node has GPUs is read: {full[0].name}, not {others}",)


def _node_lists(pods: Path) -> list[Path]:
    """Node lists beside the pod list, else one folder up (where the trace keeps its variants)."""
    here = [p for p in _tables(pods.parent) if _is_list(p, _NODE_COLUMNS)]
    return here or [p for p in _tables(pods.absolute().parent.parent) if _is_list(p, _NODE_COLUMNS)]


def _tables(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    return sorted(p for p in source.iterdir() if p.is_file() and p.name.lower().endswith(_SUFFIXES))


def _is_list(path: Path, columns: tuple[str, ...]) -> bool:
    header = read_head(path, size=4096).partition("\n")[0].strip().split(",")
    return len(set(header) & set(columns)) >= len(columns) - 1  # one column away: told as missing when read


def _names(paths: list[Path]) -> str:
    shown = [p.name for p in paths[:4]] + (["..."] if len(paths) > 4 else [])
    return ", ".join(shown) or "none"


def _stem(path: Path) -> str:
    return path.name.split(".csv")[0]


FORMATS.add("openb", OpenbFormat())
