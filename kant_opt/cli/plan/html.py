"""The plan as one page for a browser: charts, what is proven, who has no start. It asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape

from kant_opt.cli.answer import objective_rows, status_words
from kant_opt.cli.plan.gantt import charts
from kant_opt.cli.plan.lanes import Chart
from kant_opt.cli.plan.words import PlanWords
from kant_opt.cli.text import safe

_MOST_ITEMS = 500
"""Lines of a list."""

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; margin: 0; } h2 { font-size: 1.1em; margin: 1.5em 0 .3em; }
table { border-collapse: collapse; } td, th { padding: .15em .9em .15em 0; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.quiet { color: #667; } #charts { overflow-x: auto; } ul { margin: .2em 0; padding-left: 1.3em; }
.vega-bind-name { margin-right: .5em; }
"""

_SCRIPT = """
const spec = JSON.parse(document.getElementById("spec").textContent);
vegaEmbed("#charts", spec, { actions: false, renderer: "canvas", bind: "#find" }).catch((error) => {
  document.getElementById("charts").textContent = "The charts cannot be drawn: " + error;
  throw error;
});
"""


def page_of(words: PlanWords, name: str) -> str:
    """Return the page; takes some seconds, and is about 1 MB larger than its data.

    Whatever comes from files is text in it and stays text: scripts other than its own two are forbidden by their hash,
    and so is every address.
    """
    drawn = Chart(words)
    rows = f"Each row is a {drawn.level}" if drawn.level else "The row is the whole cluster"
    library = _library()
    allowed = " ".join(f"'sha256-{_sha256(script)}'" for script in (library, _SCRIPT))
    policy = f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
    spec = json.dumps(charts(words, drawn), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_text(name)}: plan</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{_text(name)}</h1>
<p>{_text(words.summary())}; {_text(status_words(words.plan))}<br>
<span class="quiet">{_text(words.policy)}; now is {_text(words.clock.stamp(words.plan.now_s))}; \
GPUs allocated of the healthy: {_text(words.use(words.occupancy))}</span></p>
<div id="find"></div>
<div id="charts"></div>
<p class="quiet">{_text(rows)}; a bar is as high as its share of the row's GPUs. Scroll over the
charts to zoom, drag to move, double-click to see all again.</p>
{_objective(words)}
{"".join(_list(heading, items) for heading, items in words.without_start())}
{_list("Notes", [f"{flag.subject}: {flag.text}" for flag in words.plan.flags])}
<script type="application/json" id="spec">{spec}</script>
<script>{library}</script>
<script>{_SCRIPT}</script>
</body>
</html>
"""


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, about 0.9 MB; takes some seconds."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.split(".")[:2])
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return script


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _text(text: str) -> str:
    return escape(safe(text))


def _objective(words: PlanWords) -> str:
    rows = list(objective_rows(words.plan.levels, everything=False))
    if not rows:
        return ""
    head = _row(("level", "value", "bound", "gap", "proven by"), "th")
    return f"<h2>How good it is</h2>\n<table>{head}{''.join(_row(cells, 'td') for cells in rows)}</table>"


def _row(cells: Sequence[str], tag: str) -> str:
    kinds = ["", *[' class="number"'] * 3, ""]
    told = (f"<{tag}{kind}>{_text(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr>{''.join(told)}</tr>\n"


def _list(heading: str, items: Iterable[str]) -> str:
    texts = list(items)
    if not texts:
        return ""
    shown = "".join(f"<li>{_text(text)}</li>\n" for text in texts[:_MOST_ITEMS])
    more = len(texts) - _MOST_ITEMS
    rest = f"<p>... and {more:,} more</p>\n" if more > 0 else ""
    return f"<h2>{_text(heading)}</h2>\n<ul>{shown}</ul>\n{rest}"
