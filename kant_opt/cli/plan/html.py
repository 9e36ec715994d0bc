"""The plan as one page for a browser: charts, what is proven, who has no start."""

from __future__ import annotations

from kant_opt.cli.answer import objective_rows, status_words
from kant_opt.cli.plan.gantt import charts
from kant_opt.cli.plan.lanes import Chart
from kant_opt.cli.plan.words import PlanWords
from kant_opt.io.html import chart, html_page, items, table, text


def page_of(words: PlanWords, name: str) -> str:
    """Return the page; takes some seconds, and is about 1 MB larger than its data."""
    drawn = Chart(words)
    rows = f"Each row is a {drawn.level}" if drawn.level else "The row is the whole cluster"
    body = f"""<h1>{text(name)}</h1>
<p>{text(words.summary())}; {text(status_words(words.plan))}<br>
<span class="quiet">{text(words.policy)}; now is {text(words.clock.stamp(words.plan.now_s))}; \
GPUs allocated of the healthy: {text(words.use(words.occupancy))}</span></p>
{chart("charts")}
<p class="quiet">{text(rows)}; a bar is as high as its share of the row's GPUs. Scroll with
Ctrl over the chart to zoom, drag to move, double-click to see all again.</p>
{_objective(words)}
{"".join(items(heading, listed) for heading, listed in words.without_start())}
{items("Notes", [f"{flag.subject}: {flag.text}" for flag in words.plan.flags])}"""
    return html_page(f"{name}: plan", body, {"charts": charts(words, drawn)})


def _objective(words: PlanWords) -> str:
    rows = list(objective_rows(words.plan.levels, everything=False))
    if not rows:
        return ""
    return "<h2>How good it is</h2>\n" + table(("level", "value", "bound", "gap", "proven by"), rows, numbers=(1, 2, 3))
