"""A plan on the terminal: starts and places, use over time, what is proven, who has no start."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kant_opt.cli.page import Column, Page
from kant_opt.cli.plan.clock import span
from kant_opt.cli.plan.words import PlanWords
from kant_opt.cli.text import fold, many
from kant_opt.metrics.occupancy import Occupancy
from kant_opt.schema import PlanDiff

_ROWS = 4
"""Lines of the curve."""
_WIDEST = 72
_BLOCKS = " ▁▂▃▄▅▆▇█"


def show_starts(page: Page, words: PlanWords) -> None:
    """Show every run: when, for how long, where, and why not earlier."""
    if not words.plan.jobs:
        return
    real = words.clock.tells_day
    columns = [Column("job", cut=True), Column("GPUs", right=True), Column("start")]
    columns += [Column("UTC")] if real else []
    columns += [Column("runs for"), Column("nodes", right=True), Column("where", cut=True), Column("why", cut=True)]
    rows = []
    for run in page.cut(words.plan.jobs):
        told = words.run(run)
        stamp = [told.stamp] if real else []
        rows.append([told.job, told.gpus, told.start, *stamp, told.length, told.nodes, told.where, told.why])
    page.heading("Starts")
    page.table(columns, rows)
    page.more(len(words.plan.jobs))


def show_evictions(page: Page, words: PlanWords) -> None:
    """Show which running jobs have to leave, and when."""
    if words.plan.evictions:
        page.heading("Running jobs that have to leave")
        page.items(
            [
                f"{e.job}: {words.clock.away(e.at_s)}, for {e.for_job}; {many(e.lost_gpu_s, 'GPU-second')} of work lost"
                for e in words.plan.evictions
            ]
        )


def show_curve(page: Page, words: PlanWords) -> None:
    """Draw the share of GPUs in use over the plan's time."""
    used = words.occupancy
    if not used.healthy_milli or not words.plan.jobs:
        return
    now, end = words.window
    page.heading(f"GPUs allocated of the healthy (GAR): {words.use(used)}")
    width = max(10, min(_WIDEST, page.console.width - 10))
    for label, line in zip(("100 %", "", "", ""), curve(used, now, end, width, draws=page.draws), strict=True):
        page.line(f"  {label:>5} {line}".rstrip())
    page.line(f"    0 % now{words.clock.away(end):>{width - 3}}")


def curve(used: Occupancy, start_s: int, end_s: int, width: int, *, draws: bool) -> list[str]:
    """Return lines of `width` characters, top first; a column's height is the mean ratio over its part of the time.

    Only nothing used is empty.
    """
    edges = [start_s + (end_s - start_s) * i / width for i in range(width + 1)]
    shares = [used.mean(a, b) or 0.0 for a, b in pairwise(edges)]
    steps = len(_BLOCKS) - 1 if draws else 1
    heights = [max(1 if share > 0 else 0, round(share * _ROWS * steps)) for share in shares]
    lines = []
    for row in reversed(range(_ROWS)):
        parts = [min(max(height - row * steps, 0), steps) for height in heights]
        lines.append("".join(_BLOCKS[part] if draws else " #"[part] for part in parts))
    return lines


def show_without_start(page: Page, words: PlanWords) -> None:
    """Show the jobs without a start, by kind of reason."""
    for heading, items in words.without_start():
        page.heading(heading)
        page.items(items)


_CHANGES = {
    "gone": "gone: it ended or was withdrawn",
    "new": "new",
    "earlier": "earlier",
    "later": "later",
    "moved": "same start, other pods",
    "lost": "no start any more",
    "won": "has a start now",
}
"""What became of a job since the plan before."""


def show_changes(page: Page, words: PlanWords, diff: PlanDiff) -> None:
    """Show what differs from the plan before; what stayed is counted."""
    page.heading(f"Since the plan before: {diff.unchanged:,} unchanged, {many(len(diff.changes), 'change')}")
    running = {alloc.job for alloc in words.request.allocations}
    clock = words.clock
    runs = {run.job: run for run in words.plan.jobs if not run.evicted_for}
    rows = []
    for change in page.cut(diff.changes):
        kind = "runs now" if change.kind == "gone" and change.job in running else _CHANGES[change.kind]
        before = "-" if change.before_s is None else clock.away(change.before_s)
        after = "-" if change.after_s is None else clock.away(change.after_s)
        run = runs.get(change.job)
        by = ""
        if change.before_s is not None and change.after_s is not None and change.before_s != change.after_s:
            by = f"{'-' if change.after_s < change.before_s else '+'}{span(abs(change.after_s - change.before_s))}"
        rows.append([change.job, kind, before, after, by, fold(run.nodes) if run else ""])
    if rows:
        headers: Sequence[Column] = [
            Column("job", cut=True),
            Column("what"),
            Column("before"),
            Column("after"),
            Column("by"),
            Column("where", cut=True),
        ]
        page.table(headers, rows)
        page.more(len(diff.changes))
