"""`kant-opt plan`: when and where does each queued job start?"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import UNPLACED

if TYPE_CHECKING:
    from kant_opt.schema import Plan

_SECONDS = 1_000_000_000
"""The longest time that an option takes, some 30 years."""


def plan(
    source: options.Source,
    format: options.Format = None,  # noqa: A002 - the option's name
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            help="Who starts when room is free: fifo, best-effort, easy, easy-sjbf, conservative, depth-8, slack, "
            "slack-80, delay, delay-300, optimal, optimal-makespan, optimal-slowdown, optimal-batch.",
            show_default="conservative",
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(help="Who is ahead in the queue: priority, fifo, fair-share, shortest-first, srpt."),
    ] = "priority",
    horizon_s: Annotated[
        int | None,
        typer.Option(min=1, max=_SECONDS, help="Start nobody that many seconds from now or later."),
    ] = None,
    head_timeout_s: Annotated[
        int | None,
        typer.Option(
            min=0, max=_SECONDS, help="Evict preemptible jobs for a head of the queue that has waited that long."
        ),
    ] = None,
    patience_s: Annotated[
        int | None,
        typer.Option(min=0, max=_SECONDS, help="Let a job wait up to that long for a place with less traffic."),
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN", help="Plan again: keep what this plan promised as far as can be, and show what changed."
        ),
    ] = None,
    seed: options.Seed = None,
    deadline_ms: options.DeadlineMs = None,
    search_states: options.SearchStates = None,
    memory_mb: options.MemoryMb = None,
    json: Annotated[
        str | None,
        typer.Option("--json", "-o", metavar="OUT", help="Write the plan as JSON to this file; - is stdout."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write a page with a Gantt chart to this file; it needs no network."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing; the exit code tells.")] = False,
    everything: options.Everything = False,
) -> None:
    """Plan when and where each queued gang starts, and say how good the plan is.

    Running jobs are taken to run as long as they may. Every plan is verified by code that did not produce it. A gang
    that waits, or has no start at all, has its reason. Exit code 0: all have a start; 1: some gang has none.

    \b
    Examples:
      kant-opt plan cluster/                       a folder of Slurm's outputs
      kant-opt plan cluster/ -p easy --html p.html   a Gantt chart to look at
      kant-opt plan cluster/ --json plan.json; kant-opt plan cluster/ --previous plan.json
      kant-opt plan request.json -p optimal --deadline-ms 30000
    """
    from kant_opt.cli import answer
    from kant_opt.cli.page import Page, emit, joined
    from kant_opt.cli.plan import show
    from kant_opt.cli.plan.words import PlanWords
    from kant_opt.cli.watch import waiting
    from kant_opt.errors import InputError
    from kant_opt.io import read_request, write_atomic
    from kant_opt.io.html import check_charts
    from kant_opt.metrics import Placed
    from kant_opt.planning import Patience, plan_diff, replan
    from kant_opt.planning import plan as make_plan
    from kant_opt.schema import to_json

    for option, out in (("--json", json), ("--html", html)):
        for kept in (source, previous):
            _keep_apart(option, out, kept)
    _keep_apart("--html", html, json)
    if html is not None:
        check_charts()
    chosen = {"--policy": policy, "--horizon-s": horizon_s, "--head-timeout-s": head_timeout_s}
    given = [option for option, value in {**chosen, "--patience-s": patience_s}.items() if value is not None]
    if previous is not None and given:
        raise InputError(
            f"{given[0]} has no meaning when planning again, which keeps promises", way_out=f"leave out {given[0]}"
        )
    page = Page(stderr=json == "-", quiet=quiet, everything=everything)
    started = perf_counter()
    request, notes = read_request(source, format=format)
    before = None if previous is None else _read_plan(Path(previous))
    read_s = perf_counter() - started
    limits = options.limits_of(
        request, seed=seed, deadline_ms=deadline_ms, search_states=search_states, memory_mb=memory_mb
    )
    with waiting(shown=not quiet):
        if before is not None:
            found = replan(before, request, order=order, limits=limits)
        else:
            found = make_plan(
                request,
                policy=policy or "conservative",
                order=order,
                horizon_s=horizon_s,
                head_timeout_s=head_timeout_s,
                patience=None if patience_s is None else Patience(patience_s),
                limits=limits,
            )
    if json == "-":
        emit(to_json(found, indent=1) + "\n")
    elif json is not None:
        write_atomic(Path(json), to_json(found, indent=1) + "\n")
    words = PlanWords(request, found)
    name = request.name or Path(source).resolve().name
    if html is not None:
        from kant_opt.cli.plan.html import page_of

        write_atomic(Path(html), page_of(words, name))
    if not quiet:
        answer.show_cluster(page, Placed(request), Path(source).resolve().name)
        page.say()
        told = f"{words.summary()}; {answer.status_words(found)}" if request.jobs else "No gang waits."
        page.say(told, "bold")
        show.show_starts(page, words)
        show.show_evictions(page, words)
        show.show_curve(page, words)
        answer.show_objective(page, found.levels)
        if before is not None:
            show.show_changes(page, words, plan_diff(before, found))
        show.show_without_start(page, words)
        answer.show_notes(page, notes, found)
        page.say()
        took = f"read in {read_s:.2f} s, planned and verified in {found.run.seconds:.2f} s"
        page.say(joined([took, words.policy]), "dim")
    if found.unplanned:
        raise typer.Exit(UNPLACED)


def _keep_apart(option: str, out: str | None, kept: str | None) -> None:
    """Raise InputError where a file to write is one that is to be read, or written for another option."""
    from kant_opt.errors import InputError

    if out is None or kept is None or "-" in (out, kept):
        return
    same = Path(out).resolve() == Path(kept).resolve()
    if same or (Path(out).exists() and Path(kept).exists() and Path(out).samefile(kept)):
        raise InputError(f"{option} would overwrite {kept}", place=out, way_out="name another file")


def _read_plan(path: Path) -> Plan:
    from kant_opt.io import read_text
    from kant_opt.io.plain import load_data
    from kant_opt.schema import Plan, parse

    return parse(Plan, load_data(read_text(path), path.name), place=path.name)
