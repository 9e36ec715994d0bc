"""The charts of a plan, drawn by altair: use over time, and under it on the same axis a bar per job and row."""

from __future__ import annotations

from typing import Any

from kant_opt.cli.plan.lanes import Bar, Chart
from kant_opt.cli.plan.words import PlanWords
from kant_opt.cli.text import gpus, safe
from kant_opt.schema import NODE_LEVEL

WIDTH = 1100
"""Pixels of the time axis."""
_KINDS = {
    "runs already": "#b4bcc6",
    "starts now": "#4c78a8",
    "starts later": "#e8a33d",
    "backfilled later": "#59a14f",
    "has to leave": "#d45087",
}
_UNITS = (("days", 3 * 86_400, 86_400), ("hours", 3 * 3_600, 3_600), ("minutes", 180, 60), ("seconds", 0, 1))
_LEAST_PX, _LEAST_PX_OF_DOMAIN, _HIGHEST = 16, 28, 400
"""Pixels of a row."""
_STROKED_PX = 3
"""Bars lower than this have no white edge, of which they would consist."""
_LETTER = 6.5
"""Pixels of a letter in a bar, about."""
_LONGEST = 160
"""Letters of a text in a tooltip."""


def charts(words: PlanWords, drawn: Chart) -> dict[str, Any]:
    """Return the Vega-Lite specification of both charts. Names are data in it, never expressions."""
    import altair as alt

    axis = _Axis(words)
    rows = len(drawn.rows)
    row_px = min(_HIGHEST, max(_LEAST_PX if drawn.level == NODE_LEVEL else _LEAST_PX_OF_DOMAIN, 600 // max(1, rows)))
    wheel = "wheel![event.ctrlKey]"  # the wheel alone scrolls the page, which may be long
    zoom = alt.selection_interval(bind="scales", encodings=["x"], name="zoom", zoom=wheel)
    hover = alt.selection_point(on="pointerover", clear="pointerout", fields=["job"], empty=False, name="hover")
    find = alt.param(name="find", value="", bind=alt.binding(input="search", placeholder="part of a job's name"))
    thick = f"datum.y2 - datum.y > {_STROKED_PX / row_px}"
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, max(1, rows)], reverse=True, nice=False, zero=False))
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_rect(clip=True)
        .encode(
            x=axis.encoding(alt, title=True),
            x2="x2",
            y=y,
            y2="y2",
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(_KINDS), range=list(_KINDS.values())),
                legend=alt.Legend(orient="top"),
            ),
            stroke=alt.condition(hover, alt.value("black"), alt.value("white")),
            strokeWidth=alt.when(hover).then(alt.value(2)).when(thick).then(alt.value(0.5)).otherwise(alt.value(0)),
            opacity=alt.condition("!find || indexof(lower(datum.job), lower(find)) >= 0", alt.value(1), alt.value(0.1)),
            tooltip=[alt.Tooltip(f"{name}:N") for name in ("job", "GPUs", "start", "end", "where", "why")],
        )
        .add_params(zoom, hover, find)
    )
    names = (
        alt.Chart(alt.NamedData("names"))
        .mark_text(clip=True, align="left", dx=3, fontSize=10, color="black")
        .encode(x=axis.encoding(alt, title=True), y=y, text="name:N")
    )
    lines = alt.Chart(alt.NamedData("rows")).mark_rule(color="#d5dae0").encode(y=y, x=alt.value(0), x2=alt.value(WIDTH))
    titles = (
        alt.Chart(alt.NamedData("rows"))
        .mark_text(align="right", fontSize=10, limit=140, clip=False)
        .encode(y=alt.Y("y2:Q"), x=alt.value(-6), text="row:N")
    )
    gantt = alt.layer(lines, bars, names, titles).properties(width=WIDTH, height=max(1, rows) * row_px)
    chart = alt.vconcat(_use(alt, axis), gantt).resolve_scale(x="shared", color="independent")
    found: dict[str, Any] = (
        chart.properties(padding={"left": 20, "right": 10, "top": 5, "bottom": 5})
        .configure_view(stroke="#d5dae0")
        .to_dict()
    )
    found["datasets"] = {  # put in afterwards: altair would check each value
        "bars": [_bar(bar, words, axis) for bar in drawn.bars],
        "names": _names(drawn, axis, row_px),
        "rows": [{"row": safe(name), "y": i, "y2": i + 0.5} for i, name in enumerate(drawn.rows)],
        "use": _steps(words, axis),
    }
    return found


def _use(alt: Any, axis: _Axis) -> Any:
    """Return the chart of the GPUs in use."""
    y = alt.Y("share:Q", title="GPUs allocated", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=4))
    return (
        alt.Chart(alt.NamedData("use"))
        .mark_area(interpolate="step-after", clip=True, color="#8fb0d3", line={"color": "#4c78a8"})
        .encode(x=axis.encoding(alt, domain=True), y=y, tooltip=[alt.Tooltip("time:N"), alt.Tooltip("GPUs:N")])
        .properties(width=WIDTH, height=90)
    )


def _steps(words: PlanWords, axis: _Axis) -> list[dict[str, Any]]:
    used = words.occupancy
    most = used.healthy_milli or 1
    times = [*used.times_s, max(axis.end_s, used.times_s[-1])]
    return [
        {
            "x": axis.at(time),
            "share": round(step / most, 4),
            "time": f"{words.clock.away(time)}, {words.clock.stamp(time)}",
            "GPUs": f"{gpus(step)} of {gpus(most)}",
        }
        for time, step in zip(times, [*used.used_milli, used.used_milli[-1]], strict=True)
    ]


class _Axis:
    """Time on the x axis: as a date in UTC where the request has a clock, else from now in a fitting unit."""

    def __init__(self, words: PlanWords) -> None:
        self.now_s, self.end_s = words.window
        self.dates = words.clock.tells_day
        self.today = words.clock.stamp(self.now_s).split()[0]
        length = self.end_s - self.now_s
        self.unit, _, self.size = next(unit for unit in _UNITS if length >= unit[1])

    def at(self, time_s: int) -> float:
        """Return the position of a time: milliseconds since 1970, or units from now."""
        return time_s * 1000 if self.dates else (time_s - self.now_s) / self.size

    def pixels(self, seconds: float) -> float:
        """Return how wide a time is before anybody zooms."""
        return WIDTH * seconds / (self.end_s - self.now_s)

    def encoding(self, alt: Any, *, title: bool = False, domain: bool = False) -> Any:
        """Return altair's x encoding. One chart says what is in view, for all: it must be one without x2, as for those
        Vega-Lite warns of two domains that differ.
        """
        text = f"UTC, from {self.today}" if self.dates else f"{self.unit} from now"
        axis: dict[str, Any] = {"title": text if title else None, "labelOverlap": True}
        if self.dates:
            axis["format"] = "%H:%M" if self.end_s - self.now_s <= 86_400 else "%b %d %H:%M"
        scale: dict[str, Any] = {"type": "utc" if self.dates else "linear"}
        if domain:
            scale |= {"domain": [self.at(self.now_s), self.at(self.end_s)], "nice": False}
        kind = "temporal" if self.dates else "quantitative"
        return alt.X("x", type=kind, scale=alt.Scale(**scale), axis=alt.Axis(**axis))


def _bar(bar: Bar, words: PlanWords, axis: _Axis) -> dict[str, Any]:
    clock = words.clock
    end = "unknown" if bar.end_s is None else f"{clock.away(bar.end_s)}, {clock.stamp(bar.end_s)}"
    data = {
        "job": safe(bar.job),
        "kind": _kind(bar, words),
        "x": axis.at(bar.start_s),
        "x2": axis.at(max(axis.end_s, bar.start_s + 1) if bar.end_s is None else bar.end_s),
        "y": round(bar.low, 5),
        "y2": round(bar.high, 5),
        "end": end,
    }
    if bar.run is not None:
        told = words.run(bar.run)
        data |= {"GPUs": told.gpus, "start": f"{told.start}, {told.stamp}", "where": told.where, "why": told.why}
    return {key: _short(value) if isinstance(value, str) else value for key, value in data.items()}


def _kind(bar: Bar, words: PlanWords) -> str:
    if bar.run is None:
        return "runs already"
    if bar.run.evicted_for:
        return "has to leave"
    if bar.start_s == words.plan.now_s:
        return "starts now"
    return "backfilled later" if bar.run.backfilled else "starts later"


def _names(drawn: Chart, axis: _Axis, row_px: int) -> list[dict[str, Any]]:
    """Return the jobs' names for bars that have room for three letters of them."""
    found = []
    for bar in drawn.bars:
        end = axis.end_s if bar.end_s is None else min(bar.end_s, axis.end_s)
        letters = int((axis.pixels(end - bar.start_s) - 6) / _LETTER)
        name = safe(bar.job)
        if letters >= min(3, len(name)) and (bar.high - bar.low) * row_px >= 10:
            text = name if len(name) <= letters else name[: letters - 1] + "…"
            found.append({"x": axis.at(bar.start_s), "y": round((bar.low + bar.high) / 2, 5), "name": text})
    return found


def _short(text: str) -> str:
    text = safe(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
