"""A replay for people: what was replayed, then policies side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from rich.text import Text

from kant_opt.cli.page import Column, Page, joined
from kant_opt.cli.watch import telling
from kant_opt.replay import PolicyRun, ReplayResult
from kant_opt.words import many, safe, span

_NOT_REPLAYED = {
    "cancelled": "cancelled before they ran",
    "no_time": "without a run time",
    "no_gpus": "without GPUs",
}


@contextmanager
def progress(*, shown: bool) -> Iterator[Callable[[str, int, int, int], None]]:
    """Within it a line on stderr tells the policy under way, how many jobs have ended, their rate, the time left."""
    policy, begun, ended, jobs, already = "", perf_counter(), 0, 0, 0

    def tell(name: str, come: int, now_ended: int, of: int) -> None:
        nonlocal policy, begun, ended, jobs, already
        if name != policy:
            policy, begun, already = name, perf_counter(), now_ended
        ended, jobs = now_ended, of

    def render() -> Text:
        seconds = max(perf_counter() - begun, 1e-3)
        rate = (ended - already) / seconds
        left = f", {span(round((jobs - ended) / rate))} left" if rate else ""
        told = f"{policy}: {ended:,} of {jobs:,} jobs ended, {rate:,.0f} a second{left}; Ctrl-C ends it"
        return Text(safe(told), style="dim", no_wrap=True)

    with telling(render, shown=shown):
        yield tell


def show(page: Page, found: ReplayResult) -> None:
    """Show what was replayed, the policies side by side, waits and stretch by size, and notes."""
    page.say(found.trace, "bold")
    scaling = found.scaling
    under = f" on {many(len(found.nodes), 'node')}" if found.nodes else ", all alike"
    page.say(f"{many(found.counts['replayed'], 'job')} on {many(scaling.gpus, 'GPU')}{under}")
    page.say(_scaled(found))
    _policies(page, found.runs)
    _waits(page, found.runs)
    _stretch(page, found.runs)
    left_out = [
        f"{found.counts[k]:,} jobs {text}: left out" for k, text in _NOT_REPLAYED.items() if found.counts.get(k)
    ]
    if notes := [*left_out, *found.notes]:
        page.heading("Notes")
        page.items(notes)
    page.say()
    page.say(joined(f"{run.name} {run.seconds:.1f} s" for run in found.runs), "dim")


def _scaled(found: ReplayResult) -> str:
    scaling = found.scaling
    arrivals = "arrivals as recorded" if scaling.arrivals == 1 else f"arrivals {scaling.arrivals:g} times as fast"
    told = {"asked": "walltimes as asked for", "exact": "walltimes exact", "predicted": "walltimes predicted"}
    start, end = found.window
    length = span(end - start)
    return joined([f"load {scaling.load:.2f}", arrivals, told[scaling.walltimes], f"measured over {length}"])


def _policies(page: Page, runs: Sequence[PolicyRun]) -> None:
    on_nodes = any(run.shares.gfr_mean is not None for run in runs)
    columns = [
        Column("policy"),
        *(Column(h, right=True) for h in ("wait", "bsld", "SOR %", "GAR %")),
    ]
    if on_nodes:
        columns += [Column(h, right=True) for h in ("GFR %", "JTTED")]
    columns += [Column(h, right=True) for h in ("span", "filled")]
    rows = []
    for run in runs:
        row = [
            run.name,
            _span(run.mean_wait_s),
            "-" if run.bounded_slowdown is None else f"{run.bounded_slowdown:,.2f}",
            _percent(run.shares.sor),
            _percent(run.shares.gar_median),
        ]
        if on_nodes:
            row += [_percent(run.shares.gfr_mean), f"{run.stretch[0].slowdown:.3f}" if run.stretch else "-"]
        rows.append([*row, _span(run.makespan_s), f"{run.backfilled:,}"])
    told = ", mean GFR and JTTED" if on_nodes else ""
    page.heading(f"Policies: mean wait, bounded slowdown (bsld), SOR, median GAR{told}")
    page.table(columns, rows)


def _waits(page: Page, runs: Sequence[PolicyRun]) -> None:
    """Show JWTD."""
    page.heading("Waits by GPUs per job (JWTD)")
    some_wait = any(w.waiting for run in runs for w in run.waits)
    counts = ("GPUs", "jobs", "never ran") if some_wait else ("GPUs", "jobs")
    columns = [Column("policy"), *(Column(h, right=True) for h in counts)]
    columns += [Column(h, right=True) for h in ("mean", "p50", "p90", "p99", "longest")]
    rows = [
        [
            run.name if i == 0 else "",
            w.sizes,
            f"{w.jobs:,}",
            *([f"{w.waiting:,}"] if some_wait else []),
            *(_span(value) for value in (w.mean_s, w.p50_s, w.p90_s, w.p99_s, w.max_s)),
        ]
        for run in runs
        for i, w in enumerate(run.waits)
    ]
    page.table(columns, rows)


def _stretch(page: Page, runs: Sequence[PolicyRun]) -> None:
    """Show JTTED."""
    if not any(run.stretch for run in runs):
        return
    page.heading("Used / least possible, by GPUs per job (JTTED)")
    columns = [Column("policy"), *(Column(h, right=True) for h in ("GPUs", "jobs"))]
    columns += [Column(h, right=True) for h in ("nodes", "leaves", "step time", "p99")]
    rows = [
        [
            run.name if i == 0 else "",
            s.sizes,
            f"{s.jobs:,}",
            f"{s.nodes_ratio:.3f}",
            "-" if s.leaves_ratio is None else f"{s.leaves_ratio:.3f}",
            *(f"{value:.3f}" for value in (s.slowdown, s.slowdown_p99)),
        ]
        for run in runs
        for i, s in enumerate(run.stretch)
    ]
    page.table(columns, rows)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def _span(seconds: float | None) -> str:
    """Return a duration in one unit, short enough for a column.

    >>> [_span(s) for s in (59.4, 600, 74_100, 1_000_000)]
    ['59 s', '10 min', '20.6 h', '11.6 d']
    """
    if seconds is None:
        return "-"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    if seconds < 360_000:
        return f"{seconds / 3_600:.1f} h"
    return f"{seconds / 86_400:,.1f} d"
