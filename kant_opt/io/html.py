"""A page for a browser: text that stays text, tables, and charts drawn by Vega. It asks no network for anything."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.util import find_spec
from typing import Any

from kant_opt.errors import BackendUnavailable
from kant_opt.words import safe

MOST_ITEMS = 500
"""Lines of a list that are shown."""

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; margin: 0; } h2 { font-size: 1.1em; margin: 1.5em 0 .3em; }
table { border-collapse: collapse; } td, th { padding: .15em .9em .15em 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; }
.quiet { color: #667; } .chart { overflow-x: auto; } ul { margin: .2em 0; padding-left: 1.3em; }
.vega-bind-name { margin-right: .5em; }
"""

_SCRIPT = """
const specs = JSON.parse(document.getElementById("specs").textContent);
for (const [id, spec] of Object.entries(specs)) {
  const options = { actions: false, renderer: "canvas" };
  if (document.getElementById(id + "-inputs")) options.bind = "#" + id + "-inputs";
  const zooms = (event) => { if (event.ctrlKey) event.preventDefault(); }; // the chart, not the page: Vega says so late
  document.getElementById(id).addEventListener("wheel", zooms, { passive: false });
  vegaEmbed("#" + id, spec, options).catch((error) => {
    document.getElementById(id).textContent = "This chart cannot be drawn: " + error;
    throw error;
  });
}
"""


def html_page(title: str, body: str, charts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a page of about 1 MB beside its data; the first takes some seconds.

    `body` is HTML, made by the functions below; `charts` are Vega-Lite specifications by the id of the element that
    `chart` made for them, lower-case letters and dashes. Scripts other than the page's own two are forbidden by their
    hash, and so is every address. Raises BackendUnavailable without the extra `report`.
    """
    library = _library() if charts else ""
    allowed = " ".join(f"'sha256-{_sha256(script)}'" for script in (library, _SCRIPT))
    policy = f"default-src 'none'; script-src {allowed} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
    scripts = ""
    if charts:
        specs = json.dumps(charts, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        data = f'<script type="application/json" id="specs">{specs}</script>'
        scripts = f"{data}\n<script>{library}</script>\n<script>{_SCRIPT}</script>\n"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{text(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
{body}
{scripts}</body>
</html>
"""


def check_charts() -> None:
    """Raise BackendUnavailable where the extra `report` is not installed."""
    missing = [name for name in ("altair", "vl_convert") if not find_spec(name)]
    if missing:
        raise BackendUnavailable(f"charts need {' and '.join(missing)}: pip install 'kant-opt[report]'")


def text(raw: str) -> str:
    """Return text as HTML that shows it, characters that could hide or turn around others written as numbers."""
    return escape(safe(raw))


def chart(name: str) -> str:
    """Return the place of a chart, and above it that of its inputs."""
    return f'<div id="{name}-inputs"></div>\n<div id="{name}" class="chart"></div>\n'


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """Return a table; `numbers` are the columns to align at the right."""
    right = set(numbers)

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = (' class="number"' if i in right else "" for i in range(len(headers)))
        told = (f"<{tag}{kind}>{text(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(told)}</tr>\n"

    return f"<table>\n{row(headers, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>\n"


def items(heading: str, texts: Iterable[str]) -> str:
    """Return a heading and a list, cut at MOST_ITEMS with the number left out; nothing where the list is empty."""
    listed = list(texts)
    if not listed:
        return ""
    shown = "".join(f"<li>{text(item)}</li>\n" for item in listed[:MOST_ITEMS])
    more = len(listed) - MOST_ITEMS
    rest = f"<p>... and {more:,} more</p>\n" if more > 0 else ""
    return f"<h2>{text(heading)}</h2>\n<ul>{shown}</ul>\n{rest}"


@cache
def _library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, about 0.9 MB; takes some seconds."""
    check_charts()
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.split(".")[:2])
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
    return script


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
