"""`kant-opt instances`: what is stored, what is known of it, and how to add to that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options

if TYPE_CHECKING:
    from kant_opt.schema import LevelValue, Outcome, Placement
    from kant_opt.study import Record

instances_app = typer.Typer(
    help="List the stored instances, check what is known of them, submit something better.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
Pattern = Annotated[str, typer.Argument(metavar="[PATTERN]", help="Names, as a shell pattern such as 'coupled/2k-*'.")]
Folder = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of instances.", show_default="those that ship with kant_opt"),
]


@instances_app.command("list")
def list_instances(pattern: Pattern = "*", folder: Folder = None, everything: options.Everything = False) -> None:
    """List instances with the best values known, per level of the objective, most important first.

    By default: GPUs admitted per priority class, traffic, broken nodes, broken leaves. A bound that is not met stands
    in brackets.

    \b
    Examples:
      kant-opt instances list
      kant-opt instances list 'coupled/8k-*'
    """
    from kant_opt.cli.page import Column, Page
    from kant_opt.cli.text import many
    from kant_opt.study import Instances, read_records

    stored = Instances(folder)
    records = read_records(stored.best_known)
    names = stored.names(pattern)
    page = Page(everything=everything)
    page.table(
        [Column("instance"), Column("best known (bound)", wrap=True), Column("found by", wrap=True), Column("date")],
        [_row(name, records.get(name)) for name in names],
    )
    proven = sum(all(level.proven for level in records[name].levels) for name in names if name in records)
    page.say(f"{many(len(names), 'instance')}, {proven} proven optimal")


@instances_app.command("check")
def check_instances(pattern: Pattern = "*", folder: Folder = None) -> None:
    """Verify again the solution of every record, and that it has the values that the record says.

    Exit code 0: all records hold; 1: some does not.

    \b
    Examples:
      kant-opt instances check
      kant-opt instances check 'toy/*'
    """
    from fnmatch import fnmatchcase

    from kant_opt.cli.guard import UNPLACED
    from kant_opt.cli.page import Page
    from kant_opt.cli.text import many
    from kant_opt.study import Instances, check, read_records

    stored = Instances(folder)
    page = Page(everything=True)
    records = [record for name, record in read_records(stored.best_known).items() if fnmatchcase(name, pattern)]
    faulty = 0
    for record in records:
        faults = list(check(stored, record))
        faulty += bool(faults)
        for fault in faults:
            page.line(f"{record.instance}: {fault}")
    page.line(f"{many(len(records), 'record')} checked, {faulty} wrong", "bold red" if faulty else "bold green")
    if faulty:
        raise typer.Exit(UNPLACED)


@instances_app.command("submit")
def submit_answer(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="Its name; see `list`.", show_default=False)],
    answer: Annotated[
        str | None,
        typer.Argument(metavar="[ANSWER]", help="File with a placement or an outcome; without it a backend is run."),
    ] = None,
    folder: Folder = None,
    backend: Annotated[
        str | None,
        typer.Option("--backend", "-b", help="Who is run; with ANSWER, who made it.", show_default="auto"),
    ] = None,
    deadline_ms: options.DeadlineMs = None,
    seed: options.Seed = None,
    take_bounds: Annotated[
        bool,
        typer.Option("--take-bounds", help="Believe the bounds in ANSWER: for outcomes of your own runs of kant_opt."),
    ] = False,
) -> None:
    """Add an answer to what is known: a better solution or bound updates the record.

    The placement is verified and measured here. Bounds come from runs of kant_opt alone, since no file proves them.

    \b
    Examples:
      kant-opt instances submit coupled/2k-odd-full placement.json -b my-heuristic
      kant-opt instances submit toy/cut-gang --backend cp-sat --deadline-ms 60000
    """
    from kant_opt.cli.page import Page
    from kant_opt.engine import place
    from kant_opt.study import Instances, submit
    from kant_opt.study.records import outcome_or_placement

    stored = Instances(folder)
    found: Outcome | Placement
    if answer is None:
        request = stored.load(instance)
        limits = options.limits_of(request, deadline_ms=deadline_ms, seed=seed)
        found = place(request, backend=backend or "auto", limits=limits)
    else:
        found = outcome_or_placement(answer)
    by = (backend or "") if answer else ""
    limit = f"{deadline_ms} ms" if deadline_ms else ""
    record, changed = submit(
        stored, instance, found, backend=by, limit=limit, take_bounds=take_bounds or answer is None
    )
    page = Page()
    page.say(f"{instance}: {'record updated' if changed else 'nothing better; record kept'}", "bold")
    page.line(_shown(record.levels))


def _row(name: str, record: Record | None) -> list[str]:
    if record is None:
        return [name, "", "", ""]
    return [name, " / ".join(map(_value, record.levels)), record.backend, record.date]


def _shown(levels: tuple[LevelValue, ...]) -> str:
    """Return values by name, and in brackets the bounds that they do not meet."""
    return ", ".join(f"{level.name.replace('_', ' ')} {_value(level)}" for level in levels)


def _value(level: LevelValue) -> str:
    """Return a value, GPUs as such, and in brackets the bound unless they meet."""
    unit = 1000 if level.name.startswith("admitted[") else 1
    value = f"{level.value / unit:,.15g}"
    if level.proven:
        return value
    return f"{value} ({'no bound' if level.bound is None else format(level.bound / unit, ',.15g')})"
