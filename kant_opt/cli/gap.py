"""`kant-opt gap`: how far from the best possible are the answers of each backend?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options

if TYPE_CHECKING:
    from kant_opt.cli.page import Page
    from kant_opt.schema import Limits
    from kant_opt.study import Row


def gap(
    instances: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INSTANCE]...",
            help="Stored instances, by name or pattern ('coupled/2k-*'), or request files. None: show what OUT holds.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="OUT", help="The study's file, one JSON line a run; what it has is kept."),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option("--backend", "-b", help="Who places; may be repeated.", show_default="e-binpack and search"),
    ] = None,
    deadline_ms: Annotated[
        list[int] | None,
        typer.Option(min=1, max=10_000_000, help="Deadline; may be repeated.", show_default="none"),
    ] = None,
    rounds: options.Rounds = None,
    seed: Annotated[
        list[int] | None, typer.Option(min=0, max=10_000_000, help="May be repeated.", show_default="0")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, max=1024, help="Runs at a time.")] = 1,
    time_s: Annotated[float, typer.Option(min=0.1, help="End a run after so many seconds; it has failed.")] = 3600.0,
    memory_mb: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="Memory of a run, in MiB.", show_default="no limit")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Run once more what failed before.")] = False,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table as CSV.")] = None,
    latex: Annotated[str | None, typer.Option(metavar="FILE", help="Write the table as LaTeX.")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="Compare two studies' files instead and name what became worse."),
    ] = None,
) -> None:
    """Run backends on instances and show how far their answers are from the best proven bounds.

    Each run is a process of its own; a run that fails is a row with its reason. Killed and called again, it goes on.
    Gaps are per term of the objective; a term is compared only where those before it are as good as the best known,
    from the study and from the records of the stored instances.
    Exit code 1: a run failed, or with --compare something became worse.

    \b
    Examples:
      kant-opt gap 'toy/*' --out toy.jsonl
      kant-opt gap 'coupled/2k-*' -o runs.jsonl -b e-binpack -b search --deadline-ms 10000 --jobs 2
      kant-opt gap -o runs.jsonl --latex gaps.tex
      kant-opt gap --compare old.jsonl new.jsonl
    """
    from kant_opt.cli.guard import UNPLACED
    from kant_opt.cli.page import Page
    from kant_opt.errors import InputError
    from kant_opt.schema import Limits
    from kant_opt.study import read_rows

    page = Page(everything=True)
    if compare is not None:
        raise typer.Exit(UNPLACED if _compared(page, *compare) else 0)
    if out is None:
        raise InputError("no file for the runs", way_out="name it with --out; a later call goes on where this one ends")
    if instances:
        fields = {} if rounds is None else {"rounds": rounds}
        deadlines: list[int | None] = [*deadline_ms] if deadline_ms else [None]
        limits = [Limits(deadline_ms=ms, **fields) for ms in deadlines]
        rows = _run(
            _named(instances),
            backend or ["e-binpack", "search"],
            limits,
            seed or [0],
            out,
            jobs,
            time_s=time_s,
            memory_mb=memory_mb,
            again=again,
        )
    else:
        rows = read_rows(out)
    _show(page, rows, csv, latex)
    if any(row.status == "FAILED" for row in rows):
        raise typer.Exit(UNPLACED)


def _named(given: list[str]) -> list[str]:
    """Return names and paths, patterns spelled out."""
    from kant_opt.errors import UnknownName
    from kant_opt.study import Instances

    stored = Instances()
    found: dict[str, None] = {}
    for text in given:
        names = stored.names(text)
        if not names and any(c in text for c in "*?["):
            raise UnknownName("instance", text, stored.names())
        found.update(dict.fromkeys(names or [text]))
    return list(found)


def _run(
    instances: list[str],
    backends: list[str],
    limits: list[Limits],
    seeds: list[int],
    out: str,
    jobs: int,
    *,
    time_s: float,
    memory_mb: int | None,
    again: bool,
) -> list[Row]:
    from concurrent.futures import ThreadPoolExecutor

    from kant_opt.study import run_study

    # each run is a process of its own, so threads are enough to wait for them
    with ThreadPoolExecutor(jobs) as threads:
        return run_study(
            instances,
            backends,
            limits,
            seeds,
            executor=threads if jobs > 1 else None,
            out=out,
            time_s=time_s,
            memory_mb=memory_mb,
            again=again,
            on_row=_tell,
        ).rows


def _tell(row: Row, done: int, of: int) -> None:
    """Say on stderr which run has ended."""
    from kant_opt.cli.page import Page

    what = row.reason if row.status == "FAILED" else f"{row.status}, {row.seconds:.1f} s"
    Page(stderr=True).line(f"{done}/{of} {row.instance} {row.backend} seed {row.limits.seed}: {what}")


def _show(page: Page, rows: list[Row], csv: str | None, latex: str | None) -> None:
    from pathlib import Path

    from kant_opt.cli.page import Column
    from kant_opt.io.files import write_atomic
    from kant_opt.study import Instances, as_csv, as_latex, gap_rows, read_records
    from kant_opt.study.tables import HEADERS, cells

    table = gap_rows(rows, read_records(Instances().best_known).values())
    texts = {"term", "on"}
    groups: dict[tuple[str, ...], list[list[str]]] = {}
    for row in table:
        backend, limits, *others = cells(row)
        groups.setdefault((backend, limits, str(row.runs), str(row.failed)), []).append([others[0], *others[3:]])
    headers = (HEADERS[2], *HEADERS[5:])
    for (backend, limits, runs, failures), lines in groups.items():
        page.line(f"{backend}, limits {limits}: {runs} runs, {failures} failed", "bold")
        page.table([Column(header, right=header not in texts, wrap=header == "on") for header in headers], lines)
        page.say()
    failed = [row for row in rows if row.status == "FAILED"]
    if failed:
        page.heading(f"Failed ({len(failed)})")
        page.items([f"{row.instance}, {row.backend}, seed {row.limits.seed}: {row.reason}" for row in failed])
    for path, text in ((csv, as_csv), (latex, as_latex)):
        if path is not None:
            write_atomic(Path(path), text(table))


def _compared(page: Page, old: str, new: str) -> bool:
    """Show what two studies differ in; return whether something became worse."""
    from kant_opt.cli.text import many
    from kant_opt.study import compare, read_rows

    found = compare(read_rows(old), read_rows(new))
    for heading, changes in (("Worse", found.regressions), ("Better", found.improvements)):
        if changes:
            page.line(f"{heading} ({len(changes)})", "bold")
            page.items([str(change) for change in changes])
    alone = f"; runs in one alone: {found.only_old} old, {found.only_new} new"
    page.line(
        f"{many(len(found.regressions), 'run')} worse, {len(found.improvements)} better, {found.equal} as good{alone}",
        "bold red" if found.regressions else "bold green",
    )
    return bool(found.regressions)
