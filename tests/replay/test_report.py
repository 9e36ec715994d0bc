"""The report of a replay: figures that are those of the results, intervals that are right, text that stays text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import gamma, pi, sqrt
from pathlib import Path
from typing import Any

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.metrics.over_time import Held, OverTime
from kant_opt.metrics.waits import Waited, wait_classes
from kant_opt.replay.report import report_html, save_report
from kant_opt.replay.report_compare import SideBySide, half_width, student_t
from kant_opt.replay.report_heat import heat_of
from kant_opt.replay.result import JobRow, NodeRow, PolicyRun, ReplayResult, Scaling, StretchClass
from tests.browser import BROWSER, look

HOSTILE = "</script><script>document.title='owned'</script>"
NODES = tuple(NodeRow(f"n{i}", (f"s{i // 4}", f"leaf{i // 2}"), 8) for i in range(8))


def ran(name: str, waits: tuple[int, ...], nodes: tuple[NodeRow, ...] = NODES) -> PolicyRun:
    """Job i takes 4 GPUs of node i for 1000 s, after a wait."""
    jobs = tuple(
        JobRow(f"j{i}", 0, 1000, None, 4, 1, "ended", wait, wait + 1000, where=((i, 4000),))
        for i, wait in enumerate(waits)
    )
    held = [Held(wait, wait + 1000, 4, ((i, 4000),)) for i, wait in enumerate(waits)]
    over_time = OverTime(held, [], 8 * len(nodes), [node.gpus for node in nodes])
    return PolicyRun(
        name=name,
        policy="easy",
        order="fifo",
        backend="e-binpack",
        shares=over_time.shares(0, 4000),
        series=over_time.series(0, 4000),
        waits=wait_classes(Waited(4, wait, 1000) for wait in waits),
        stretch=tuple(StretchClass(sizes, len(waits), 1.0, 1.5, 1.1, 1.2, 1.3) for sizes in ("all", "2-7")),
        bounded_slowdown=sum(1 + wait / 1000 for wait in waits) / len(waits),
        makespan_s=max(waits) + 1000,
        backfilled=0,
        evictions=0,
        seconds=0.1,
        jobs=jobs,
    )


def result(*runs: PolicyRun, seed: int = 0, trace: str = "log", nodes: tuple[NodeRow, ...] = NODES) -> ReplayResult:
    return ReplayResult(
        trace=trace,
        seed=seed,
        levels=("spine", "leaf"),
        nodes=nodes,
        scaling=Scaling(arrivals=4, gpus=64, walltimes="exact", load=0.5),
        window=(0, 4000),
        counts={"replayed": 3, "too_large": 1},
        notes=("a note",),
        runs=runs,
    )


def seeds(*waits: tuple[int, int]) -> list[ReplayResult]:
    return [result(ran("a", (a,)), ran("b", (b,)), seed=seed) for seed, (a, b) in enumerate(waits)]


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30])
def test_t_is_where_the_density_of_student_has_the_rest_outside(degrees: int) -> None:
    """The density, integrated by Simpson's rule from -t to t, is the confidence."""
    t = student_t(degrees, 0.95)
    top = gamma((degrees + 1) / 2) / (sqrt(degrees * pi) * gamma(degrees / 2))
    steps = 2000
    points = [top * (1 + (t * i / steps) ** 2 / degrees) ** (-(degrees + 1) / 2) for i in range(steps + 1)]
    inside = 2 * t / steps / 3 * (points[0] + points[-1] + 4 * sum(points[1:-1:2]) + 2 * sum(points[2:-1:2]))
    assert inside == pytest.approx(0.95, abs=1e-6)


def test_t_of_the_tables() -> None:
    assert [round(student_t(d, 0.95), 3) for d in (1, 4, 9)] == [12.706, 2.776, 2.262]
    assert round(student_t(9, 0.99), 3) == 3.250


def test_the_interval_is_of_the_differences_not_of_the_values() -> None:
    """Waits differ a thousandfold between seeds, but b is 10, 12 or 14 s faster in each: that is clear."""
    both = SideBySide(seeds((20, 10), (2000, 1988), (1014, 1000)))
    found = {entry.measure: entry for entry in both.differences("b", "a")}["wait, mean"]
    assert found.difference == pytest.approx(-12)
    assert found.half_width == pytest.approx(4.3027 * 2 / sqrt(3), rel=1e-4), "t(2) times s = 2 over root 3"
    assert found.is_clear


def test_a_difference_that_chance_may_have_made_is_not_clear_and_one_seed_says_nothing() -> None:
    three = {e.measure: e for e in SideBySide(seeds((10, 0), (10, 30), (10, 11))).differences("b", "a")}
    assert not three["wait, mean"].is_clear
    one = {e.measure: e for e in SideBySide(seeds((10, 0))).differences("b", "a")}
    assert one["wait, mean"].half_width is None
    assert not one["wait, mean"].is_clear
    assert half_width([1.0]) is None


def test_results_that_do_not_belong_together_are_refused() -> None:
    a, b = ran("a", (0,)), ran("b", (0,))
    for wrong, told in (
        ([], "no replay"),
        ([result()], "no replay"),
        ([result(a), result(a)], "equal seeds"),
        ([result(a, b), result(b, a, seed=1)], "policies"),
        ([result(a, a)], "equal names"),
    ):
        with pytest.raises(InputError, match=told):
            SideBySide(wrong)
    with pytest.raises(UnknownName, match="policy 'c'"):
        report_html(result(a), base="c")


# -- maps ------------------------------------------------------------------------------------------


def test_a_map_shows_who_runs_at_that_instant_and_nothing_else() -> None:
    """Job 0 runs in [0, 1000), job 1 in [500, 1500), each on half of its node."""
    heat = heat_of(result(ran("a", (0, 500))), [0, 500, 1000, 1500])
    assert heat is not None
    assert (heat.cell_level, heat.row_level, heat.num_columns) == ("node", "leaf", 2)
    assert heat.rows == ["leaf0", "leaf1", "leaf2", "leaf3"]
    name = {place["c"]: place["n"] for place in heat.places}
    used = [[(name[c["c"]], c["m"]) for c in heat.cells if c["t"] == t and c["m"]] for t in heat.times]
    assert used == [[("n0", 4000)], [("n0", 4000), ("n1", 4000)], [("n1", 4000)], []]


def test_times_that_would_read_alike_are_told_in_seconds() -> None:
    heat = heat_of(result(ran("a", (0,))), [3600, 3601, 4000])
    assert heat is not None
    assert heat.times == ["3,600 s", "3,601 s", "4,000 s"]


@pytest.mark.parametrize(("num_nodes", "level"), [(2048, "node"), (20_000, "leaf")])
def test_maps_of_many_nodes_show_the_finest_level_that_can_be_drawn(num_nodes: int, level: str) -> None:
    """4 policies and 3 times: 12 maps may have 3,000 cells each. All GPUs are in the map, whatever it shows."""
    nodes = tuple(NodeRow(f"n{i:05}", (f"s{i // 256}", f"l{i // 16}"), 8) for i in range(num_nodes))
    heat = heat_of(result(*(ran(p, (0, 5), nodes) for p in "abcd"), nodes=nodes), [0, 10, 20])
    assert heat is not None
    assert heat.cell_level == level
    assert len(heat.cells) <= 36_000
    assert heat.num_rows <= 128
    assert sum(place["gpus"] for place in heat.places) == 8 * num_nodes
    assert sum(cell["m"] for cell in heat.cells if cell["p"] == "a" and cell["t"] == heat.times[1]) == 8000


def test_a_flat_fabric_of_too_many_nodes_shows_neighbours_as_one() -> None:
    nodes = tuple(NodeRow(f"n{i:05}", (), 8) for i in range(50_000))
    heat = heat_of(replace(result(ran("a", (0,), nodes), nodes=nodes), levels=()), [0])
    assert heat is not None
    assert "neighbours" in heat.cell_level
    assert len(heat.places) <= 36_000
    assert sum(place["gpus"] for place in heat.places) == 400_000


def test_where_only_numbers_were_looked_at_there_is_no_map() -> None:
    assert heat_of(replace(result(ran("a", (0,))), nodes=()), [0]) is None


# -- the page --------------------------------------------------------------------------------------


def specs(page: str) -> dict[str, Any]:
    data = re.search(r'<script type="application/json" id="specs">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    found: dict[str, Any] = json.loads(data[1])
    return found


def test_the_page_has_every_part_and_the_figures_of_the_results(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    save_report(seeds((20, 10), (2000, 1988)), tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert list(specs(page)) == ["series", "waits", "stretch", "heat"]
    assert "2 policies, 2 seeds: 0, 1" in page
    assert "4 times as fast as recorded" in page
    assert "too large 1" in page
    assert "a note" in page
    assert "1 degrees of freedom" in page
    waits = specs(page)["waits"]["datasets"]["waits"]
    assert [(row["p"], row["mean_s"]) for row in waits if row["size"] == "all"] == [("a", 1010), ("b", 999)]
    series = specs(page)["series"]["datasets"]["series"]
    assert sum(row["gar"] for row in series if row["p"] == "a") / 400 == pytest.approx(1000 * 4 / (64 * 4000), abs=1e-4)


def test_one_policy_by_numbers_alone_makes_a_page_too() -> None:
    pytest.importorskip("altair")
    run = replace(ran("a", (0,)), stretch=(), backend="")
    run = replace(run, series=replace(run.series, gfr=None), shares=replace(run.shares, gfr_mean=None))
    page = report_html(replace(result(run), nodes=(), levels=()))
    assert list(specs(page)) == ["series", "waits"]
    assert "Compared with" not in page
    assert "numbers alone" in page
    nobody = replace(run, waits=(), jobs=(), bounded_slowdown=None)
    assert specs(report_html(replace(result(nobody), nodes=())))["waits"]["datasets"]["waits"] == []


def test_names_stay_text() -> None:
    """Beside the page's own scripts and data there is none, and the data holds the name escaped."""
    pytest.importorskip("altair")
    page = report_html(result(ran(HOSTILE, (0,)), ran("two\nlines", (5,)), trace=HOSTILE))
    assert page.count("<script") - page.count("'<script") <= 4
    assert HOSTILE not in page
    assert any(row["p"] == HOSTILE for row in specs(page)["series"]["datasets"]["series"])


def test_a_large_report_stays_below_five_megabytes() -> None:
    """Ten policies on 2,048 nodes, ten seeds, six times."""
    pytest.importorskip("altair")
    nodes = tuple(NodeRow(f"n{i:05}", (f"s{i // 256}", f"l{i // 16}"), 8) for i in range(2048))
    runs = [ran(f"conservative@shortest-first/e-binpack {k}", (0, k), nodes) for k in range(10)]
    page = report_html([result(*runs, seed=s, nodes=nodes) for s in range(10)], at=range(0, 3000, 500))
    assert len(page.encode()) < 5_000_000


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no Chromium on the PATH")
def test_a_browser_draws_every_chart_and_has_nothing_to_say(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    results = [result(ran(HOSTILE, (0, s)), ran("b", (5, 9)), seed=s, trace=HOSTILE) for s in range(3)]
    page.write_text(report_html(results))
    dom, told = look(page)
    assert told == []
    for name in ("series", "waits", "stretch", "heat"):
        part = dom[dom.index(f'<div id="{name}"') :]
        assert re.match(r'<div id="[a-z]+"[^>]*>.{0,400}?<canvas[^>]* height="[1-9]\d{2,}"', part, re.DOTALL), name
    assert "<title>&lt;/script&gt;" in dom
