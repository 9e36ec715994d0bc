"""`kant-opt fabric`: the shipped fabrics, and any fabric drawn with what is free on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options

if TYPE_CHECKING:
    from kant_opt.schema import Request

fabric_app = typer.Typer(help="List and draw fabrics.")


@fabric_app.callback(invoke_without_command=True)
def _fabric(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@fabric_app.command("list")
def list_fabrics() -> None:
    """List the fabrics that ship with kant_opt.

    \b
    Examples:
      kant-opt fabric list
    """
    from kant_opt.cli.page import Column, Page
    from kant_opt.cli.text import many
    from kant_opt.fabric import build_fabric, describe, list_topologies, load_topology

    rows = []
    for name in list_topologies():
        spec, nodes = load_topology(name)
        size = describe(build_fabric(spec, nodes), nodes)
        levels = " > ".join(many(number, level) for level, number in size.domains.items())
        rows.append([name, f"{size.nodes:,}", f"{size.gpus:,}", levels])
    columns = [Column("topology"), Column("nodes", right=True), Column("GPUs", right=True), Column("levels", wrap=True)]
    Page(everything=True).table(columns, rows)


@fabric_app.command("show")
def show_fabric(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Any source that `place` reads, a topology file (.toml), or the name of a shipped topology.",
            show_default=False,
        ),
    ],
    format: options.Format = None,  # noqa: A002 - the option's name
    levels: Annotated[
        int | None,
        typer.Option(min=1, help="Draw this many levels from the top.", show_default="as many as fit into 50 lines"),
    ] = None,
    everything: options.Everything = False,
) -> None:
    """Draw a fabric and what is free on it.

    Each domain with its nodes and GPUs, and with what is broken (nodes used in part), closed, uneven or degraded.
    Domains that look alike in everything, down to the last level drawn, share a line.

    \b
    Examples:
      kant-opt fabric show cluster/
      kant-opt fabric show cluster/ --levels 2
      kant-opt fabric show degraded-leaves-64
    """
    from kant_opt.cli.page import Page
    from kant_opt.cli.tree import show_tree
    from kant_opt.metrics import Placed

    show_tree(Page(everything=everything), Placed(_request(source, format)), levels)


def _request(source: str, form: str | None) -> Request:
    from kant_opt.fabric import load_topology
    from kant_opt.io import read_request
    from kant_opt.schema import Request

    path = Path(source)
    is_name = not path.exists() and path.suffix == "" and len(path.parts) == 1
    if form is None and (is_name or path.suffix == ".toml"):
        spec, nodes = load_topology(source)
        return Request(name=path.stem, fabric=spec, nodes=nodes)
    request, _ = read_request(source, format=form)
    return request if request.name else request.model_copy(update={"name": path.resolve().name})
