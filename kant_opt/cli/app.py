"""The program `kant-opt` and its commands; each imports what it needs when it runs, so that --help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from kant_opt import __version__
from kant_opt.cli.backends import backends
from kant_opt.cli.convert import convert
from kant_opt.cli.explain import explain
from kant_opt.cli.export import export
from kant_opt.cli.fabric import fabric_app
from kant_opt.cli.gap import gap
from kant_opt.cli.guard import GuardedGroup
from kant_opt.cli.instances import instances_app
from kant_opt.cli.place import place
from kant_opt.cli.plan import plan
from kant_opt.cli.replay import replay
from kant_opt.cli.schema import schema
from kant_opt.cli.verify import verify

app = typer.Typer(
    cls=GuardedGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for _command in (place, plan, replay, gap, explain, verify, convert, export, schema, backends):
    app.command()(_command)
app.add_typer(fabric_app, name="fabric")
app.add_typer(instances_app, name="instances")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kant-opt {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def kant_opt(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Decide where GPU jobs run: verified gang placement on real fabrics, with a proven bound on every answer.

    \b
    Exit codes:
      0    an answer, and every gang placed or the placement valid
      1    an answer, and some gang not placed or a rule broken
      2    a mistake in the call or in a file; one sentence on stderr says which
      3    a bug in kant_opt; the sentence says what to report
      130  interrupted; where a search was under way, the best answer until then is shown and written

    \b
    Examples:
      kant-opt place cluster/          place what waits on a Slurm cluster
      kant-opt plan cluster/           when each of them starts
      kant-opt explain cluster/ 654    why job 654 is not placed
      kant-opt fabric show uneven-64   draw a fabric that ships with kant_opt
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
