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
    placement: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Write this placement or outcome instead, in the form --to.", show_default=False
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="FORM",
            help="With --placement: slurm, kueue, kueue-v1beta1, csv. Without: node-link, the fabric as NetworkX JSON.",
            show_default=False,
        ),
    ] = None,
    everything: options.Everything = False,
) -> None:
    """Write a source in kant_opt's own form, its fabric as a graph, or a placement for those who carry it out.

    Says what it left out. OUT is written whole or not at all.

    \b
    Examples:
      kant-opt convert cluster/ request.json.gz
      kant-opt convert openb/ request.yaml --format openb
      kant-opt convert cluster/ nodes.tsv --placement out.json --to slurm
      kant-opt convert fabric.out fabric.json --to node-link
    """
    from kant_opt.cli.page import Page
    from kant_opt.cli.text import many
    from kant_opt.errors import InputError
    from kant_opt.io import read_request

    target = Path(out)
    if to is None and placement is not None:
        raise InputError("no form for the placement", place="--to", way_out="give slurm, kueue, kueue-v1beta1 or csv")
    if to is None and not target.name.removesuffix(".gz").endswith(_SUFFIXES):
        raise InputError(
            f"no form ends in {target.suffix!r}", place=out, way_out="use .json, .yaml, .json.gz or .yaml.gz"
        )
    if target.exists() and not force:
        raise InputError("the file exists", place=out, way_out="give --force to replace it")
    request, notes = read_request(source, format=format)
    if to is None:
        _write(request, target)
    elif placement is not None:
        notes += _write_placement(request, placement, to, target)
    else:
        _write_fabric(request, to, target)
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


def _write_placement(request: Request, placement: str, form: str, target: Path) -> tuple[str, ...]:
    from kant_opt.io import load_placement, write_atomic, write_placement

    text, notes = write_placement(request, load_placement(placement), form)
    write_atomic(target, text)
    return notes


def _write_fabric(request: Request, form: str, target: Path) -> None:
    import json

    from kant_opt.errors import InputError
    from kant_opt.fabric import build_fabric, node_link
    from kant_opt.io import write_atomic
    from kant_opt.io.writers import WRITERS

    if form != "node-link":
        known = form in WRITERS
        raise InputError(
            f"form {form!r} is of placements" if known else f"no form {form!r}",
            place="--to",
            way_out="give --placement" if known else f"known are node-link, {', '.join(WRITERS)}",
        )
    fabric = build_fabric(request.fabric, request.nodes)
    write_atomic(target, json.dumps(node_link(fabric), indent=1) + "\n")


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
