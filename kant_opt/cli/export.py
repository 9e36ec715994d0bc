"""`kant-opt export`: the exact program of a request, for a solver of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kant_opt.cli import options

_FORMS = (".lp", ".mps")


def export(
    source: options.Source,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="File to write: .lp or .mps, with .gz to pack it.", show_default=False)
    ],
    level: Annotated[
        str | None, typer.Option(help="Objective level to optimise, by its name.", show_default="the first")
    ] = None,
    keep: Annotated[
        list[int] | None,
        typer.Option(metavar="VALUE", help="Value that a level before it may not fall behind, first to last; repeat."),
    ] = None,
    format: options.Format = None,  # noqa: A002 - the option's name
    force: Annotated[bool, typer.Option("--force", help="Replace OUT where it exists.")] = False,
) -> None:
    """Write the per-node program, exact for every request, for a solver of your own.

    Levels are optimised one after another: the first, then the next with the value reached kept, and so on.
    Names of variables tell podset and node. `kant-opt verify` judges the placement that you make of the answer.

    \b
    Examples:
      kant-opt export request.json first.lp
      kant-opt export request.json traffic.mps.gz --level traffic --keep 528000
    """
    from kant_opt.cli.page import Page
    from kant_opt.errors import InputError, UnknownName
    from kant_opt.fabric import build_fabric, check_levels
    from kant_opt.formulation.export import to_lp, to_mps
    from kant_opt.formulation.per_node import PerNode
    from kant_opt.io import read_request, write_atomic
    from kant_opt.view import Cluster, Free, compile_gangs

    target = Path(out)
    form = next((f for f in _FORMS if target.name.removesuffix(".gz").endswith(f)), None)
    if form is None:
        raise InputError(f"no form ends in {target.suffix!r}", place=out, way_out="use .lp, .mps, .lp.gz or .mps.gz")
    if target.exists() and not force:
        raise InputError("the file exists", place=out, way_out="give --force to replace it")
    request, _ = read_request(source, format=format)
    fabric = build_fabric(request.fabric, request.nodes)
    check_levels(request, fabric)
    cluster = Cluster(request, fabric)
    program = PerNode(cluster, Free(cluster), compile_gangs(cluster)).program
    names = [found.name for found in program.levels]
    if level is not None and level not in names:
        raise UnknownName("objective level", level, names)
    position = names.index(level) if level else 0
    kept = keep or []
    if len(kept) > position:
        raise InputError(
            f"{len(kept)} values to keep, but {position} levels come before {names[position]!r}",
            way_out=f"give one --keep per level, in the order {', '.join(names[:position]) or '(none)'}",
        )
    write_atomic(target, (to_lp if form == ".lp" else to_mps)(program, position, kept))
    size = program.stats()
    Page().line(
        f"{out}: level {names[position]!r} of {', '.join(names)}; {size.variables:,} variables, {size.rows:,} rows, "
        f"{size.nonzeros:,} coefficients"
    )
