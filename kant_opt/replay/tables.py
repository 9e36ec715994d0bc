"""The tables of a replay as files: CSV always, Parquet where polars is installed."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.io.files import write_atomic
from kant_opt.replay.result import ReplayResult


def summary_json(result: ReplayResult) -> str:
    """Return all but jobs and series as JSON: what was replayed, the tables of policies, waits and stretch as rows."""
    tables = {name: table for name, table in result.tables().items() if name not in ("jobs", "series")}
    return (
        json.dumps(
            {
                "trace": result.trace,
                "seed": result.seed,
                "levels": result.levels,
                "nodes": len(result.nodes),
                "scaling": asdict(result.scaling),
                "window_s": result.window,
                "counts": result.counts,
                "notes": result.notes,
                **{
                    name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                    for name, table in tables.items()
                },
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def save_tables(result: ReplayResult, folder: str | Path) -> list[Path]:
    """Write every table of a result into a folder, made if need be; return the files, each whole or not at all.

    CSV: an empty cell is an unknown value. Raises InputError where the folder cannot be made or written.
    """
    home = Path(folder)
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"no folder can be made here: {(error.strerror or str(error)).lower()}",
            place=str(home),
            way_out="name another folder",
        ) from None
    written = []
    for name, table in result.tables().items():
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
        path = home / f"{name}.csv"
        write_atomic(path, text.getvalue())
        written.append(path)
        if find_spec("polars") is not None and table.rows:
            frame = import_module("polars").DataFrame(
                {c: [row[i] for row in table.rows] for i, c in enumerate(table.columns)}
            )
            frame.write_parquet(home / f"{name}.parquet")
            written.append(home / f"{name}.parquet")
    return written
