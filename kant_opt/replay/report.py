"""A replay as one page for a browser: policies side by side, what is clear about them, and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kant_opt.io import write_atomic
from kant_opt.io.html import chart, check_charts, html_page, items, table, text
from kant_opt.replay.report_charts import Spec, heat_chart, series_chart, stretch_chart, waits_chart
from kant_opt.replay.report_compare import MEASURES, Compared, SideBySide, Unit
from kant_opt.replay.report_heat import Heat, heat_of
from kant_opt.replay.result import ReplayResult
from kant_opt.words import many, percent, span

_QUARTERS = (1, 2, 3)
"""Of the window: the times of the heat maps where none are chosen."""


def save_report(
    results: ReplayResult | Sequence[ReplayResult], path: str | Path, *, base: str | None = None, at: Sequence[int] = ()
) -> None:
    """Write the page of `report_html` to a file, whole or not at all."""
    write_atomic(Path(path), report_html(results, base=base, at=at))


def report_html(
    results: ReplayResult | Sequence[ReplayResult], *, base: str | None = None, at: Sequence[int] = ()
) -> str:
    """Return the report: it needs no network, and stays below 5 MB.

    Several results are several seeds of one trace under the same policies: tables show means over the seeds, and each
    difference from the policy `base` (by default the first) has a t interval over the differences seed by seed.
    Series and maps are those of the first result, maps at the times `at` (seconds of the trace's clock), by default
    after a quarter, a half and three quarters of the window. Takes some seconds.

    Raises InputError for results that do not belong together, UnknownName for an unknown base and BackendUnavailable
    without the extra `report`.
    """
    check_charts()
    both = SideBySide(results)
    against = both.policies[0] if base is None else base
    both.runs(against)
    first = both.results[0]
    start, end = first.window
    heat = heat_of(first, at or [start + (end - start) * k // (len(_QUARTERS) + 1) for k in _QUARTERS])
    charts: dict[str, Spec] = {"series": series_chart(both), "waits": waits_chart(both)}
    if any(run.stretch for run in first.runs):
        charts["stretch"] = stretch_chart(both)
    if heat is not None:
        charts["heat"] = heat_chart(heat)
    return html_page(f"{_title(both)}: replay", _body(both, against, heat, charts), charts)


def _body(both: SideBySide, base: str, heat: Heat | None, charts: dict[str, Spec]) -> str:
    first = both.results[0]
    shown = f"Seed {first.seed}. " if len(both.seeds) > 1 else ""
    parts = [
        f"<h1>{text(_title(both))}</h1>\n<p>{text(_summary(both))}</p>\n",
        f"<h2>Policies side by side</h2>\n{_policies(both)}",
        '<p class="quiet">GAR: GPUs in use of all. SOR: GPU-seconds used of all there were. GFR: nodes used in part, '
        "of all nodes. Step time / least: estimated step time over that of the least possible placement (JTTED). "
        "Jobs that never started count with their wait so far, which is less than the true one.</p>\n",
        _differences(both, base),
        items("What was replayed", _replayed(both)),
        f"<h2>Over time</h2>\n{_quiet(shown + _ZOOM)}",
        chart("series"),
        f"<h2>Waits by size of job (JWTD)</h2>\n{_quiet(_JWTD + _over_seeds(both))}{chart('waits')}",
    ]
    if "stretch" in charts:
        told = "Means over the jobs of a class; 1 is the least possible. " + _over_seeds(both)
        parts.append(f"<h2>Stretch by size of job (JTTED)</h2>\n{_quiet(told)}{chart('stretch')}")
    if heat is not None:
        told = f"{shown}Each cell is one {heat.cell_level}" + (
            f", each row one {heat.row_level}" if heat.row_level else ""
        )
        told += "; times from the start of the window."
        parts.append(f"<h2>The fabric at chosen times</h2>\n{_quiet(told)}{chart('heat')}")
    return "\n".join(parts) + items("Notes", first.notes)


_ZOOM = "Scroll with Ctrl over the first chart to zoom, drag to move, double-click to see all again."
_JWTD = "Dot: mean. Ticks on the line: median and 90 %; its upper end: 99 %. Linear below a minute, logarithmic above. "


def _over_seeds(both: SideBySide) -> str:
    return f"Each value is the mean over {len(both.seeds)} seeds." if len(both.seeds) > 1 else ""


def _quiet(told: str) -> str:
    return f'<p class="quiet">{text(told)}</p>\n'


def _title(both: SideBySide) -> str:
    traces = dict.fromkeys(result.trace for result in both.results)
    return next(iter(traces)) + (f" and {len(traces) - 1} more" if len(traces) > 1 else "")


def _summary(both: SideBySide) -> str:
    seeds = both.seeds
    told = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds: {', '.join(map(str, seeds))}"
    return f"{many(len(both.policies), 'policy', 'policies')}, {told}"


def _policies(both: SideBySide) -> str:
    shown = [m for m in MEASURES if any(both.mean(name, m) is not None for name in both.policies)]
    rows = []
    for name in both.policies:
        run = both.runs(name)[0]
        cells = [_value(both.mean(name, measure), measure.unit) for measure in shown]
        rows.append([name, f"{run.policy}, by {run.order}", run.backend or "numbers alone", *cells])
    headers = ["policy", "who starts", "who places", *(measure.name for measure in shown)]
    return table(headers, rows, numbers=range(3, len(headers)))


def _differences(both: SideBySide, base: str) -> str:
    others = [name for name in both.policies if name != base]
    if not others:
        return ""
    rows = []
    for name in others:
        for found in both.differences(name, base):
            if found.difference or found.half_width:
                cells = [_value(found.base, found.unit), _value(found.value, found.unit)]
                rows.append([name, found.measure, *cells, _difference(found.difference, found.unit), *_interval(found)])
    seeds = len(both.seeds)
    told = (
        f"95 % t interval ({seeds - 1} degrees of freedom) of the mean of the differences seed by seed, as each "
        "policy saw the same jobs. Each row stands alone: of twenty without any effect, one is expected to look clear."
        if seeds > 1
        else "With one seed there is no interval: the jobs of one replay hang together, so they are no sample. "
        "Replay several seeds to see what is chance."
    )
    headers = ("policy", "measure", base, "policy's", "difference", "95 % interval", "")
    return f"<h2>Compared with {text(base)}</h2>\n{_quiet(told)}{table(headers, rows, numbers=(2, 3, 4, 5))}"


def _interval(found: Compared) -> tuple[str, str]:
    if found.half_width is None:
        return "-", ""
    low, high = found.difference - found.half_width, found.difference + found.half_width
    word = ("higher" if found.difference > 0 else "lower") if found.is_clear else "not clear"
    return f"{_difference(low, found.unit)} to {_difference(high, found.unit)}", word


def _value(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    match unit:
        case "share":
            return percent(value)
        case "seconds":
            return span(round(value))
        case "ratio":
            return f"{value:,.3f}"
        case "count":
            return f"{value:,.1f}".removesuffix(".0")


def _difference(value: float, unit: Unit) -> str:
    sign = "-" if value < 0 else "+"
    match unit:
        case "share":
            return f"{100 * value:+.2f} points"
        case "seconds":
            return f"{sign}{span(round(abs(value)))}"
        case _:
            return f"{sign}{_value(abs(value), unit)}"


def _replayed(both: SideBySide) -> list[str]:
    """Return what of the trace was replayed and what was changed."""
    first = both.results[0]
    scaling, (start, end) = first.scaling, first.window
    counts = ", ".join(f"{what.replace('_', ' ')} {number:,}" for what, number in first.counts.items())
    told = [f"Jobs of the trace by what was done with them: {counts}"] if counts else []
    arrivals = "as recorded" if scaling.arrivals == 1 else f"{scaling.arrivals:g} times as fast as recorded"
    walltimes = {
        "asked": "as users asked for them",
        "exact": "as long as jobs ran, which nobody knows beforehand",
        "predicted": "predicted from earlier jobs",
    }
    own_end = any(run.series.end_s != end for run in first.runs)
    return [
        *told,
        f"Arrivals: {arrivals}",
        f"GPUs: {scaling.gpus:,}, for a load of {percent(scaling.load)} "
        "(GPU-seconds of all jobs over GPUs times the time of submissions)",
        f"Walltimes that policies knew: {walltimes.get(scaling.walltimes, scaling.walltimes)}",
        f"Measured: {span(end - start)}, from second {start:,} to {end:,}; jobs submitted in it"
        + (
            ". Each policy is measured to its own last end, so means over time are over unequal times"
            if own_end
            else ""
        ),
    ]
