"""`kant-opt place`: where do these gangs go, now?"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import INTERRUPTED, UNPLACED


def place(
    source: options.Source,
    format: options.Format = None,  # noqa: A002 - the option's name
    backend: options.BackendName = "auto",
    order: options.OrderName = "batch",
    seed: options.Seed = None,
    deadline_ms: options.DeadlineMs = None,
    search_states: options.SearchStates = None,
    rounds: options.Rounds = None,
    memory_mb: options.MemoryMb = None,
    json: Annotated[
        str | None,
        typer.Option("--json", "-o", metavar="OUT", help="Write the outcome as JSON to this file; - is stdout."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing; the exit code tells.")] = False,
    everything: options.Everything = False,
) -> None:
    """Place the waiting gangs and say how good the answer is.

    Every answer is verified by code that did not produce it. Gangs that are not placed have their reason.
    Exit code 0: all placed; 1: some gang is not. Ctrl-C ends a long search: the best answer until then is shown and
    written as any other, with exit code 130; a second Ctrl-C ends the program.

    \b
    Examples:
      kant-opt place cluster/                      a folder of Slurm's outputs
      kant-opt place request.json --json out.json  keep the outcome
      kant-opt place nodes.yaml -q --json - | jq .placement
    """
    from kant_opt.cli import answer
    from kant_opt.cli.page import Page, emit, joined
    from kant_opt.cli.text import many
    from kant_opt.cli.watch import watched
    from kant_opt.engine import place as place_gangs
    from kant_opt.errors import InputError
    from kant_opt.io import read_request, save
    from kant_opt.metrics import Placed
    from kant_opt.schema import to_json

    if json and json != "-" and Path(json).exists() and Path(source).exists() and Path(json).samefile(source):
        raise InputError("--json would overwrite the source", place=json, way_out="name another file")
    page = Page(stderr=json == "-", quiet=quiet, everything=everything)
    started = perf_counter()
    request, notes = read_request(source, format=format)
    read_s = perf_counter() - started
    limits = options.limits_of(
        request,
        seed=seed,
        deadline_ms=deadline_ms,
        search_states=search_states,
        rounds=rounds,
        memory_mb=memory_mb,
    )
    with watched(shown=not quiet) as watch:
        outcome = place_gangs(
            request, backend=backend, order=order, limits=limits, on_event=watch.on_event, stop=watch.stop
        )
    if json == "-":
        emit(to_json(outcome, indent=1) + "\n")
    elif json is not None:
        save(outcome, json)
    num_placed = len(outcome.placement.jobs) if outcome.placement else 0
    if not quiet:
        placed = Placed(request, outcome.placement)
        answer.show_cluster(page, placed, Path(source).resolve().name)
        page.say()
        if request.jobs:
            done = f"{num_placed:,} of {many(len(request.jobs), 'gang')} placed"
            idle = len(request.jobs) - num_placed - len(outcome.reasons)
            done += f", {idle:,} without pods to place" if idle else ""
            page.say(f"{done}; {answer.status_words(outcome)}", "bold")
        else:
            page.say("No gang waits.", "bold")
        answer.show_placed(page, placed)
        answer.show_objective(page, outcome.levels)
        answer.show_measures(page, placed)
        answer.show_reasons(page, outcome.reasons)
        answer.show_notes(page, notes, outcome)
        page.say()
        drawn = f"seed {outcome.run.seed}" if outcome.run.seed else ""
        took = f"read in {read_s:.2f} s, placed and verified in {outcome.run.seconds:.2f} s"
        page.say(joined([took, outcome.run.backend, order, drawn]), "dim")
    if outcome.run.limit_hit == "stopped":
        raise typer.Exit(INTERRUPTED)
    if outcome.reasons:
        raise typer.Exit(UNPLACED)
