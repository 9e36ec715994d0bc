"""The page of a plan: bars that tell the truth, text that stays text, and a browser that has nothing to complain of."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from kant_opt import Allocation, FabricSpec, Hold, Job, Node, Plan, PodSet, Request, RunRecord, plan, save
from kant_opt.cli.plan.gantt import charts
from kant_opt.cli.plan.html import page_of
from kant_opt.cli.plan.lanes import Chart
from kant_opt.cli.plan.words import PlanWords
from kant_opt.schema import PlacedPods, PlannedJob
from tests.browser import BROWSER, look

Run = Callable[..., Result]
HOSTILE = (
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "quo\"te's and `ticks` ${1}",
    "two\nlines \u2028 \u202e",
    "<!--<script>",
)


def busy(nodes: int, jobs: int, names: tuple[str, ...] = (), per_leaf: int = 4) -> tuple[Request, Plan]:
    """Jobs of 1, 2, 4 and 8 whole nodes laid one after another on the nodes that come free first, some by halves."""
    made = tuple(Node(name=f"n{i}", path=(f"leaf{i // per_leaf}",), gpus=8) for i in range(nodes))
    held = tuple(
        Allocation(job=f"old{i}", holds=(Hold(node=f"n{i}", gpus=8),), until_s=60 + i) for i in range(nodes // 4)
    )
    free = [60 + i if i < nodes // 4 else 0 for i in range(nodes)]
    queue, runs = [], []
    for i in range(jobs):
        name = names[i] if i < len(names) else f"job-{i}"
        count, length = (1, 2, 4, 8)[i % 4], 300 + 60 * (i % 7)
        chosen = sorted(range(nodes), key=lambda n: (free[n], n))[:count]
        start = max(free[n] for n in chosen)
        for n in chosen:
            free[n] = start + length
        queue.append(Job(name=name, walltime_s=length, podsets=(PodSet(count=count, gpus=8 - 4 * (i % 2)),)))
        pods = tuple(PlacedPods(node=f"n{n}") for n in sorted(chosen))
        runs.append(PlannedJob(job=name, start_s=start, end_s=start + length, pods=pods))
    request = Request(fabric=FabricSpec(levels=("leaf",)), nodes=made, allocations=held, jobs=tuple(queue))
    runs.sort(key=lambda run: run.start_s)
    record = RunRecord(backend="planning")
    return request, Plan(status="FEASIBLE", policy="p", order="o", now_s=0, jobs=tuple(runs), run=record)


@pytest.mark.parametrize(("nodes", "per_leaf"), [(12, 4), (80, 4), (80, 16)])
def test_bars_lie_beside_each_other_and_are_as_large_as_what_they_stand_for(nodes: int, per_leaf: int) -> None:
    request, found = busy(nodes, 60, per_leaf=per_leaf)
    drawn = Chart(PlanWords(request, found))
    assert drawn.level == ("node" if nodes <= 64 else "leaf")
    assert len(drawn.rows) == (nodes if nodes <= 64 else nodes // per_leaf)
    for bar in drawn.bars:
        assert int(bar.low + 1e-9) <= bar.low < bar.high <= int(bar.low + 1e-9) + 1 + 1e-9, "inside its row"
    for i, one in enumerate(drawn.bars):
        for two in drawn.bars[i + 1 :]:
            assert one.end_s is not None
            assert two.end_s is not None
            over = min(one.end_s, two.end_s) > max(one.start_s, two.start_s)
            assert not over or min(one.high, two.high) <= max(one.low, two.low) + 1e-9
    heights: dict[str, float] = defaultdict(float)
    for bar in drawn.bars:
        heights[bar.job] += (bar.high - bar.low) * 8 * nodes / len(drawn.rows)
    gpus = {job.name: 8 - 4 * (i % 2) for i, job in enumerate(request.jobs)}
    for job in request.jobs:
        assert heights[job.name] == pytest.approx(gpus[job.name] * job.podsets[0].count)


def test_rows_are_in_the_order_of_numbers_and_few() -> None:
    request, found = busy(80, 4)
    assert Chart(PlanWords(request, found)).rows[1:11:9] == ["leaf1", "leaf10"]
    flat = tuple(Node(name=f"n{i}", gpus=8) for i in range(80))
    alone = Request(nodes=flat, jobs=(Job(name="j", walltime_s=5, podsets=(PodSet(count=80, gpus=8),)),))
    drawn = Chart(PlanWords(alone, plan(alone)))
    assert (drawn.level, drawn.rows) == ("", ["all nodes"])
    assert [(bar.low, bar.high) for bar in drawn.bars] == [(0, 1)]


def test_a_plan_without_jobs_or_gpus_has_charts_too() -> None:
    for nodes in ((), (Node(name="n", cpu_milli=1000),)):
        request = Request(nodes=nodes, jobs=(Job(name="j", walltime_s=5, podsets=(PodSet(count=1, cpu_milli=10),)),))
        words = PlanWords(request, plan(request))
        assert charts(words, Chart(words))["datasets"]["bars"] == []


def test_text_stays_text(tmp_path: Path, run: Run) -> None:
    """The only scripts are the page's own two and one block of data; names are found in that, escaped, and nowhere
    raw; nothing is asked of any address."""
    pytest.importorskip("altair")
    nodes = tuple(Node(name=f"n{name}", path=(name,), gpus=8) for name in HOSTILE)
    jobs = tuple(Job(name=name, walltime_s=60, podsets=(PodSet(count=1, gpus=8),)) for name in HOSTILE)
    huge = Job(name=HOSTILE[1] + "!", podsets=(PodSet(count=99, gpus=8),))
    source, out = tmp_path / "hostile.json", tmp_path / "page.html"
    save(Request(name=HOSTILE[0], fabric=FabricSpec(levels=("leaf",)), nodes=nodes, jobs=(*jobs, huge)), source)
    assert run("plan", source, "-q", "--html", out).exit_code == 1
    page = out.read_text()
    library = max(re.findall(r"<script>.*?</script>", page, re.DOTALL), key=len)
    assert len(library) > 500_000
    own = page.replace(library, "<script></script>")
    assert own.count("<script") == own.count("</script>") == 3
    assert "<img" not in own
    assert "owned" in own
    data = re.search(r'<script type="application/json" id="specs">(.*?)</script>', own, re.DOTALL)
    assert data is not None
    bars = json.loads(data[1])["charts"]["datasets"]["bars"]
    assert [bar["job"] for bar in bars if "script" in bar["job"]] == [HOSTILE[0], HOSTILE[4]]
    assert {r"two\nlines \u2028 \u202e", HOSTILE[2]} <= {bar["job"] for bar in bars}
    assert "default-src 'none'" in own
    assert not re.search(r"(src|href)=\"?(https?:|//)", own.replace(data[1], ""))


def test_two_thousand_jobs_make_a_page_of_a_few_megabytes() -> None:
    pytest.importorskip("altair")
    request, found = busy(512, 2000, per_leaf=16)
    page = page_of(PlanWords(request, found), "many")
    assert 1_000_000 < len(page.encode()) < 5_000_000


@pytest.mark.slow
@pytest.mark.skipif(not BROWSER, reason="no Chromium on the PATH")
@pytest.mark.parametrize("hostile", [True, False], ids=["hostile names", "2,000 jobs"])
def test_a_browser_draws_the_page_and_has_nothing_to_say(tmp_path: Path, hostile: bool) -> None:
    """Without any network; the console hears of forbidden scripts and addresses, of errors and of Vega's warnings."""
    request, found = busy(12, 20, HOSTILE) if hostile else busy(512, 2000, per_leaf=16)
    page = tmp_path / "page.html"
    page.write_text(page_of(PlanWords(request, found), HOSTILE[0]))
    dom, told = look(page)
    assert told == []
    assert re.search(r'<canvas[^>]* height="[1-9]\d{2,}"', dom)
    assert "<title>&lt;/script&gt;" in dom, "the title is the one that was written"
