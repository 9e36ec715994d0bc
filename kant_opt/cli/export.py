"""`kant-opt export`: the exact program of a request, for a solver of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options

if TYPE_CHECKING:
    from kant_opt.fabric import Fabric
    from kant_opt.schema import Request

_FORMS = (".lp", ".mps", ".pbtxt", ".mzn")


@dataclass(frozen=True)
class _Writing:
    """A way to write a request down: its objective levels, and the text that optimises one of them."""

    levels: Sequence[str]
    text: Callable[[int, Sequence[int]], str]
    """From the level's position and the values to keep."""
    size: str


def export(
    source: options.Source,
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT",
            help="File to write: .lp, .mps, .pbtxt (CP-SAT) or .mzn, with .gz to pack it.",
            show_default=False,
        ),
    ],
    level: Annotated[
        str | None, typer.Option(help="Objective level to optimise, by its name.", show_default="the first")
    ] = None,
    keep: Annotated[
        list[int] | None,
        typer.Option(metavar="VALUE", help="Value that a level before it may not fall behind, first to last; repeat."),
    ] = None,
    classes: Annotated[
        bool,
        typer.Option("--classes", help="Count alike nodes as one class: smaller. In a .mzn only where that is exact."),
    ] = False,
    format: options.Format = None,  # noqa: A002 - the option's name
    force: Annotated[bool, typer.Option("--force", help="Replace OUT where it exists.")] = False,
) -> None:
    """Write the exact program of a request, for a solver of your own; as .mzn, its MiniZinc twin.

    Without --classes it has a variable per podset and node, with them one per class of alike nodes, as kant_opt solves.

    Levels are optimised one after another: the first, then the next with the value reached kept, and so on.
    Names of variables tell podset and node. `kant-opt verify` judges the placement that you make of the answer.
    The twin is written independently of the programs that kant_opt solves, to judge them by.

    \b
    Examples:
      kant-opt export request.json first.lp
      kant-opt export request.json traffic.mps.gz --level traffic --keep 528000
      kant-opt export request.json first.pbtxt     for OR-Tools: CpModel().proto.parse_text_format
      kant-opt export request.json twin.mzn && minizinc twin.mzn
    """
    from kant_opt.cli.page import Page
    from kant_opt.errors import InputError, UnknownName
    from kant_opt.fabric import build_fabric, check_levels
    from kant_opt.io import read_request, write_atomic

    target = Path(out)
    form = next((f for f in _FORMS if target.name.removesuffix(".gz").endswith(f)), None)
    if form is None:
        raise InputError(
            f"no form ends in {target.suffix!r}", place=out, way_out=f"use {', '.join(_FORMS)}, or one of them with .gz"
        )
    if target.exists() and not force:
        raise InputError("the file exists", place=out, way_out="give --force to replace it")
    request, _ = read_request(source, format=format)
    fabric = build_fabric(request.fabric, request.nodes)
    check_levels(request, fabric)
    writing = _twin(request, fabric, classes) if form == ".mzn" else _program(request, fabric, form, classes)
    names = writing.levels
    if level is not None and level not in names:
        raise UnknownName("objective level", level, names)
    position = names.index(level) if level else 0
    kept = keep or []
    if len(kept) > position:
        raise InputError(
            f"{len(kept)} values to keep, but {position} levels come before {names[position]!r}",
            way_out=f"give one --keep per level, in the order {', '.join(names[:position]) or '(none)'}",
        )
    write_atomic(target, writing.text(position, kept))
    Page().line(f"{out}: level {names[position]!r} of {', '.join(names)}; {writing.size}")


def _program(request: Request, fabric: Fabric, form: str, classes: bool) -> _Writing:
    from kant_opt.formulation.classes import fold
    from kant_opt.formulation.export import to_cp_sat, to_lp, to_mps
    from kant_opt.formulation.per_node import PerNode
    from kant_opt.formulation.written import Written
    from kant_opt.view import Cluster, Free, compile_gangs

    cluster = Cluster(request, fabric)
    free, gangs = Free(cluster), compile_gangs(cluster)
    written = Written(cluster, free, gangs, fold(cluster, free, gangs)) if classes else PerNode(cluster, free, gangs)
    program = written.program
    write, size = {".lp": to_lp, ".mps": to_mps, ".pbtxt": to_cp_sat}[form], program.stats()
    return _Writing(
        levels=[level.name for level in program.levels],
        text=lambda position, kept: write(program, position, kept),
        size=f"{size.variables:,} variables, {size.rows:,} rows, {size.nonzeros:,} coefficients",
    )


def _twin(request: Request, fabric: Fabric, classes: bool) -> _Writing:
    from kant_opt.formulation.minizinc import Form, goals, to_mzn

    form: Form = "classes" if classes else "per_node"
    return _Writing(
        levels=goals(request),
        text=lambda position, kept: to_mzn(request, fabric, form=form, goal=position, kept=kept),
        size=f"MiniZinc, form {form!r}",
    )
