"""The charts of a replay's report, as Vega-Lite specifications drawn up by altair. Names are data in them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from kant_opt.metrics.sizes import SIZE_CLASSES
from kant_opt.metrics.waits import ALL_SIZES, WaitClass
from kant_opt.replay.report_compare import SideBySide
from kant_opt.replay.report_heat import Heat
from kant_opt.replay.result import StretchClass
from kant_opt.words import safe, span

Spec = dict[str, Any]

WIDTH = 900
"""Pixels of a time axis."""
_MOST_POINTS = 24_000
"""Points of all series together; above, neighbouring bins are drawn as one, their mean."""
_SERIES = (("gar", "GAR", "%"), ("sor", "SOR", "%"), ("gfr", "GFR", "%"), ("waiting_gpus", "GPUs waited for", "~s"))
_TICKS = (0, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000)
"""Waits at which the axis has a tick: it is linear below a minute and logarithmic above."""
_UNITS = (("days", 3 * 86_400, 86_400), ("hours", 3 * 3_600, 3_600), ("minutes", 180, 60), ("seconds", 0, 1))


def series_chart(both: SideBySide) -> Spec:
    """Return GAR, SOR, GFR and what waits over the window of the first seed, a line a policy, zoomed together."""
    import altair as alt

    result = both.results[0]
    start, end = result.window
    unit, _, size = next(unit for unit in _UNITS if end - start >= unit[1])
    shown = [entry for entry in _SERIES if entry[0] != "gfr" or any(run.series.gfr for run in result.runs)]
    step = -(-sum(len(run.series.start_s) for run in result.runs) // _MOST_POINTS) or 1
    rows = []
    for run in result.runs:
        columns = {name: getattr(run.series, name) for name, _, _ in shown}
        for i in range(0, len(run.series.start_s), step):
            row: dict[str, Any] = {"p": safe(run.name), "t": round((run.series.start_s[i] - start) / size, 5)}
            row |= {name: round(fmean(c[i : i + step]), 5) for name, c in columns.items() if c is not None}
            rows.append(row)
    wheel = "wheel![event.ctrlKey]"  # the wheel alone scrolls the page
    zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom", zoom=wheel)
    panels = []
    for i, (name, title, format_) in enumerate(shown):
        last = i == len(shown) - 1
        x = alt.X(
            "t:Q",
            title=f"{unit} from the start of the window" if last else None,
            scale=alt.Scale(domain=[0, (end - start) / size], nice=False),
        )
        top = alt.Scale(domain=[0, 1]) if name in ("gar", "sor") else alt.Scale(zero=True)
        y = alt.Y(f"{name}:Q", title=title, scale=top, axis=alt.Axis(format=format_, tickCount=4))
        line = alt.Chart(alt.NamedData("series")).mark_line(
            interpolate="step-after" if name != "sor" else "linear", clip=True, strokeWidth=1.5
        )
        panel = line.encode(x=x, y=y, color=_color(alt, both)).properties(width=WIDTH, height=120)
        panels.append(panel.add_params(zoom) if i == 0 else panel)
    return _spec(alt.vconcat(*panels, spacing=8).resolve_scale(x="shared"), series=rows)


def waits_chart(both: SideBySide) -> Spec:
    """Return JWTD: by size class and policy the median, mean, 90th and 99th percentile of the waits."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for name in both.policies:
        for sizes, found in _by_class([run.waits for run in both.runs(name)]):
            row: dict[str, Any] = {"p": safe(name), "size": sizes, "jobs": _jobs(found)}
            for key in ("mean_s", "p50_s", "p90_s", "p99_s"):
                value = fmean(float(getattr(entry, key)) for entry in found)
                row |= {key: round(value, 1), key[:-2]: span(round(value))}
            rows.append(row)
    most = max((row["p99_s"] for row in rows), default=0) or 1
    ticks = [tick for i, tick in enumerate(_TICKS) if i < 2 or _TICKS[i - 1] < most]
    label = "datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min' : "
    label += "datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
    scale = alt.Scale(type="symlog", constant=60, domain=[0, max(most, ticks[-1])], nice=False)
    axis = alt.Axis(values=ticks, labelExpr=label)
    base = _grouped(alt, both, "waits").encode(
        tooltip=[
            alt.Tooltip(f"{field}:N", title=title)
            for field, title in (
                ("p", "policy"),
                ("size", "GPUs"),
                ("jobs", "jobs"),
                ("p50", "median"),
                ("mean", "mean"),
                ("p90", "90 %"),
                ("p99", "99 %"),
            )
        ]
    )
    y = alt.Y("p50_s:Q", title="wait", scale=scale, axis=axis)
    layers = alt.layer(
        base.mark_rule(strokeWidth=2, opacity=0.5).encode(y=y, y2="p99_s:Q"),
        base.mark_tick(thickness=2, size=9).encode(y=alt.Y("p50_s:Q", scale=scale)),
        base.mark_tick(thickness=1, size=9).encode(y=alt.Y("p90_s:Q", scale=scale)),
        base.mark_point(filled=True, size=45, opacity=1).encode(y=alt.Y("mean_s:Q", scale=scale)),
    )
    return _spec(layers.properties(width=_group_width(both, rows), height=280), waits=rows)


def stretch_chart(both: SideBySide) -> Spec:
    """Return JTTED: by size class and policy the nodes, leaves and step time over the least possible."""
    import altair as alt

    rows: list[dict[str, Any]] = []
    for name in both.policies:
        for sizes, found in _by_class([run.stretch for run in both.runs(name)]):
            row: dict[str, Any] = {"p": safe(name), "size": sizes, "jobs": _jobs(found)}
            for key in ("nodes_ratio", "leaves_ratio", "slowdown"):
                values = [value for entry in found if (value := getattr(entry, key)) is not None]
                if values:
                    row[key] = round(fmean(values), 4)
            rows.append(row)
    titles = {"nodes_ratio": "nodes / least", "leaves_ratio": "leaves / least", "slowdown": "step time / least"}
    panels = []
    for key, title in titles.items():
        values = [row[key] for row in rows if key in row]
        if not values:
            continue
        scale = alt.Scale(domain=[1, max(1.05, *values)], nice=True, zero=False)
        tooltip = [alt.Tooltip(f"{field}:N", title=told) for field, told in (("p", "policy"), ("size", "GPUs"))]
        tooltip += [alt.Tooltip("jobs:N"), alt.Tooltip(f"{key}:Q", title=title)]
        panels.append(
            _grouped(alt, both, "stretch")
            .mark_point(filled=True, size=45, opacity=1)
            .encode(y=alt.Y(f"{key}:Q", title=title, scale=scale), tooltip=tooltip)
            .properties(width=_group_width(both, rows), height=150)
        )
    return _spec(alt.vconcat(*panels, spacing=8), stretch=rows)


def heat_chart(heat: Heat) -> Spec:
    """Return the fabric's use at chosen times: a row of maps a policy, a column a time."""
    import altair as alt

    px = max(3, min(40, 900 // (heat.num_columns * len(heat.times))))
    labelled = heat.num_rows <= 40
    row_px = 12 if labelled else max(3, 480 // heat.num_rows)
    label = alt.Axis(labelLimit=140, labelFontSize=9, ticks=False) if labelled else None
    header: dict[str, Any] = {"labelFontWeight": "bold", "labelLimit": 240}
    place = alt.LookupData(data=alt.NamedData("places"), key="c", fields=["x", "row", "n", "gpus"])
    chart = (
        alt.Chart(alt.NamedData("cells"))
        .transform_lookup(lookup="c", from_=place)
        .transform_calculate(u="datum.gpus ? datum.m / 1000 / datum.gpus : 0")
        .transform_calculate(g="format(datum.m / 1000, '~f') + ' of ' + datum.gpus")
        .mark_rect(stroke="white", strokeWidth=0.4 if px >= 5 else 0)
        .encode(
            x=alt.X("x:O", axis=None),
            y=alt.Y("row:O", title=None, axis=label, sort=heat.rows),
            color=alt.Color(
                "u:Q",
                title="GPUs in use",
                scale=alt.Scale(domain=[0, 1], range=["#e9edf2", "#f2b45c", "#a11d33"], interpolate="rgb"),
                legend=alt.Legend(format="%", orient="top"),
            ),
            tooltip=[
                alt.Tooltip("n:N", title=heat.cell_level),
                alt.Tooltip("g:N", title="GPUs"),
                alt.Tooltip("p:N", title="policy"),
                alt.Tooltip("t:N", title="time"),
            ],
        )
        .properties(width=max(90, px * heat.num_columns), height=row_px * heat.num_rows)
        .facet(
            row=alt.Row(
                "p:N", title=None, sort=heat.policies, header=alt.Header(labelAngle=0, labelAlign="left", **header)
            ),
            column=alt.Column("t:N", title=None, sort=heat.times, header=alt.Header(**header)),
            spacing=12,
        )
    )
    return _spec(chart, cells=heat.cells, places=heat.places)


def _grouped(alt: Any, both: SideBySide, data: str) -> Any:
    """Return a chart with size classes side by side, and the policies side by side within each."""
    x = alt.X("size:N", title="GPUs per job", sort=[ALL_SIZES, *SIZE_CLASSES], axis=alt.Axis(labelAngle=0, grid=False))
    offset = alt.XOffset("p:N", sort=[safe(name) for name in both.policies])
    return alt.Chart(alt.NamedData(data)).encode(x=x, xOffset=offset, color=_color(alt, both))


def _group_width(both: SideBySide, rows: Sequence[dict[str, Any]]) -> int:
    classes = len({row["size"] for row in rows})
    return max(200, classes * (12 * len(both.policies) + 30))


def _color(alt: Any, both: SideBySide) -> Any:
    names = [safe(name) for name in both.policies]
    scheme = "tableau10" if len(names) <= 10 else "tableau20"
    legend = alt.Legend(orient="top", labelLimit=400, columns=6)
    return alt.Color("p:N", title=None, scale=alt.Scale(domain=names, scheme=scheme), legend=legend)


def _by_class(
    of_seeds: Sequence[Sequence[WaitClass]] | Sequence[Sequence[StretchClass]],
) -> list[tuple[str, list[WaitClass | StretchClass]]]:
    """Return the entries of each size class that any seed has, small first."""
    found: dict[str, list[WaitClass | StretchClass]] = {}
    for entries in of_seeds:
        for entry in entries:
            found.setdefault(entry.sizes, []).append(entry)
    return [(sizes, found[sizes]) for sizes in (ALL_SIZES, *SIZE_CLASSES) if sizes in found]


def _jobs(found: Sequence[WaitClass | StretchClass]) -> str:
    return f"{sum(entry.jobs for entry in found):,}"


def _spec(chart: Any, **datasets: list[dict[str, Any]]) -> Spec:
    found: Spec = chart.configure_view(stroke="#d5dae0").to_dict()
    found["datasets"] = datasets  # put in afterwards: altair would check each value
    return found
