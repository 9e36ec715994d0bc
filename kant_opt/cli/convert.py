"""`kant-opt convert`: any readable source as kant_opt's own request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options

if TYPE_CHECKING:
    from kant_opt.schema import Request

_SUFFIXES = (".json", ".yaml", ".yml")


def convert(
    source: options.Source,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT", help="File to write: .json, .yaml or .yml, with .gz to pack it.", show_default=False
        ),
    ],
    format: options.Format = None,  # noqa: A002 - the option's name
    force: Annotated[bool, typer.Option("--force", help="Replace OUT where it exists.")] = False,
    everything: options.Everything = False,
) -> None:
    """Write a source in kant_opt's own form.

    Says what it left out. OUT is written whole or not at all.

    \b
    Examples:
      kant-opt convert cluster/ request.json.gz
      kant-opt convert openb/ request.yaml --format openb
    """
    from kant_opt.cli.page import Page
    from kant_opt.cli.text import many
    from kant_opt.errors import InputError
    from kant_opt.io import read_request

    target = Path(out)
    if not target.name.removesuffix(".gz").endswith(_SUFFIXES):
        raise InputError(
            f"no form ends in {target.suffix!r}", place=out, way_out="use .json, .yaml, .json.gz or .yaml.gz"
        )
    if target.exists() and not force:
        raise InputError("the file exists", place=out, way_out="give --force to replace it")
    request, notes = read_request(source, format=format)
    _write(request, target)
    page = Page(everything=everything)
    counts = (
        many(len(request.nodes), "node"),
        many(len(request.allocations), "running job"),
        many(len(request.jobs), "gang"),
    )
    page.line(f"{out}: {', '.join(counts)}")
    if notes:
        page.heading("Left out or odd")
        page.items(notes)


def _write(request: Request, target: Path) -> None:
    from kant_opt.io import save, write_atomic
    from kant_opt.schema import to_json

    if target.name.removesuffix(".gz").endswith(".json"):
        save(request, target)
        return
    import json

    import yaml

    data = json.loads(to_json(request))
    write_atomic(target, yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True))
