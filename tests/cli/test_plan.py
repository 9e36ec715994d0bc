"""`kant-opt plan`: what it shows is true of the plan, and what it writes is the plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import Result

import kant_opt.planning
from kant_opt import (
    ORDERS,
    POLICIES,
    Allocation,
    Hold,
    Job,
    Node,
    Plan,
    PodSet,
    Request,
    parse,
    plan,
    save,
    to_json,
    verify_plan,
)
from kant_opt.cli.plan.clock import Clock, span
from kant_opt.cli.plan.show import curve
from kant_opt.cli.plan.words import WITHOUT_START, PlanWords
from kant_opt.metrics.occupancy import Occupancy
from kant_opt.schema import Wait
from kant_opt.schema.plan import WaitKind

Run = Callable[..., Result]


def gang(name: str, count: int, walltime_s: int | None, **fields: Any) -> Job:
    return Job(name=name, walltime_s=walltime_s, podsets=(PodSet(count=count, gpus=8),), **fields)


def two_nodes(*jobs: Job, now_s: int = 0) -> Request:
    """Two nodes of 8 GPUs; `old` holds n0 for 40 minutes more."""
    old = Allocation(job="old", holds=(Hold(node="n0", gpus=8),), until_s=now_s + 2400)
    return Request(
        now_s=now_s, nodes=tuple(Node(name=f"n{i}", gpus=8) for i in range(2)), allocations=(old,), jobs=jobs
    )


QUEUE = (gang("first", 1, 600), gang("wide", 2, 3600), gang("long", 1, 3000), gang("short", 1, 1800))
"""Under conservative backfilling on `two_nodes`: `first` runs on n1 for ten minutes, `wide` needs n0 and starts at 40
minutes; `long` (50 minutes) would delay it on n1 and comes after, `short` (30 minutes from 10 on) just fits before."""


@pytest.fixture
def queue_file(tmp_path: Path) -> Path:
    path = tmp_path / "queue.json"
    save(two_nodes(*QUEUE), path)
    return path


def _row(text: str, first: str) -> str:
    return next(line for line in text.splitlines() if line.split()[:1] == [first])


def test_each_job_is_a_row_with_its_start_place_and_reason(run: Run, queue_file: Path) -> None:
    result = run("plan", queue_file)
    assert result.exit_code == 0
    assert "1 of 4 gangs start now, 3 later" in result.stdout
    cells = {
        job: re.split(r" {2,}", _row(result.stdout, job).strip())[1:] for job in ("first", "wide", "long", "short")
    }
    assert cells["first"] == ["8", "now", "10 min", "1", "n1"]
    assert cells["wide"] == ["16", "in 40 min", "1 h", "2", "n[0-1]", "room in use by old, short"]
    assert cells["short"] == ["8", "in 10 min", "30 min", "1", "n1", "room in use by first"]
    assert cells["long"] == ["8", "in 1 h 40 min", "50 min", "1", "n0", "room in use by wide"]
    easy = run("plan", queue_file, "-p", "easy").stdout
    assert "room in use by first; backfilled" in _row(easy, "short"), "it starts before the head, wide"
    greedy = run("plan", queue_file, "-p", "best-effort").stdout
    assert re.search(r"^  wide +16 +in 1 h ", greedy, re.MULTILINE), "whatever fits goes first: long at 10, until 60"


def test_what_is_held_for_whom_is_told(run: Run, tmp_path: Path) -> None:
    """n1 is free, but `wide` takes it in 40 minutes; `long` would still run then."""
    save(two_nodes(gang("wide", 2, 3600), gang("long", 1, 3000)), tmp_path / "held.json")
    shown = run("plan", tmp_path / "held.json").stdout
    assert "free now, but held for wide (in 40 min)" in _row(shown, "long")


def test_without_a_start_there_is_a_reason_and_the_exit_code(run: Run, tmp_path: Path) -> None:
    save(two_nodes(gang("a", 1, 60), gang("huge", 3, 60), gang("vast", 3, 60)), tmp_path / "r.json")
    result = run("plan", tmp_path / "r.json")
    assert result.exit_code == 1
    assert "1 of 3 gangs start now, 0 later, 2 have no start" in result.stdout
    assert "No start (2), impossible" in result.stdout
    assert "huge, vast: needs 3 pods x 8 GPUs; 2 of 3 fit" in result.stdout
    none = run("plan", tmp_path / "r.json", "--horizon-s", 2400, "--quiet")
    assert (none.exit_code, none.stdout) == (1, "")


def test_the_horizon_is_told_with_the_start_beyond_it(run: Run, queue_file: Path) -> None:
    shown = run("plan", queue_file, "--horizon-s", 1200).stdout
    assert "No start (2), not within the plan's time" in shown
    assert "wide: would start in 40 min" in shown
    assert "long: would start in 1 h 40 min" in shown


def test_a_clock_of_days_is_shown_as_such(run: Run, tmp_path: Path) -> None:
    """1,764,612,000 s after 1970 is 18:00 on 1 December 2025, UTC."""
    save(two_nodes(*QUEUE, now_s=1_764_612_000), tmp_path / "r.json")
    shown = run("plan", tmp_path / "r.json").stdout
    assert re.search(r"wide +16 +in 40 min +2025-12-01 18:40 ", shown)
    assert "1764" not in shown


def test_policies_orders_and_limits_reach_the_planner(run: Run, tmp_path: Path) -> None:
    """One node, jobs of equal size: the order alone says who is first; the time-out evicts the preemptible one."""
    jobs = (gang("long", 1, 900), gang("short", 1, 300))
    save(Request(nodes=(Node(name="n", gpus=8),), jobs=jobs), tmp_path / "one.json")
    for order, first in (("fifo", "long"), ("shortest-first", "short")):
        told = _plan(run("plan", tmp_path / "one.json", "--order", order, "--seed", 3, "--json", "-"))
        assert (told.jobs[0].job, told.order, told.run.seed) == (first, order, 3)
    old = Allocation(job="old", holds=(Hold(node="n", gpus=8),), since_s=0, until_s=5000, preemptible=True)
    save(Request(nodes=(Node(name="n", gpus=8),), allocations=(old,), jobs=jobs[:1], now_s=100), tmp_path / "p.json")
    result = run("plan", tmp_path / "p.json", "--head-timeout-s", 50)
    assert "Running jobs that have to leave" in result.stdout
    assert "old: now, for long; 800 GPU-seconds of work lost" in result.stdout, "8 GPUs for 100 s"


def test_optimal_shows_its_bound(run: Run, queue_file: Path) -> None:
    """`short` and `first` on n1 one after the other, `wide` at 40 min, `long` behind: proven."""
    shown = run("plan", queue_file, "--policy", "optimal").stdout
    assert "proven optimal" in shown
    value, bound = re.search(r"total wait \(s\) +([\d,]+) +([\d,]+) +0 ", shown).groups()  # type: ignore[union-attr]
    assert value == bound
    assert "optimal, by priority" in shown


# -- files -----------------------------------------------------------------------------------------


def _plan(result: Result) -> Plan:
    return parse(Plan, json.loads(result.stdout))


def test_json_is_the_plan_and_keeps_every_rule(run: Run, queue_file: Path, tmp_path: Path) -> None:
    result = run("plan", queue_file, "--json", "-")
    found, request = _plan(result), two_nodes(*QUEUE)
    assert "1 of 4 gangs start now" in result.stderr
    assert verify_plan(request, found) == ()
    again = plan(request)
    assert found.model_copy(update={"run": again.run}) == again
    assert run("plan", queue_file, "-q", "-o", tmp_path / "plan.json").stdout == ""
    written = parse(Plan, json.loads((tmp_path / "plan.json").read_text()))
    assert written.model_copy(update={"run": again.run}) == again


def test_planning_again_shows_what_changed(run: Run, tmp_path: Path) -> None:
    """`first` runs now and `old` still does; an urgent job of both nodes takes ten minutes from 40 on, so that `wide`
    comes ten minutes later; `short` ends before and keeps its start.
    """
    first, wide, _, short = QUEUE
    source, before = tmp_path / "queue.json", tmp_path / "before.json"
    save(two_nodes(first, wide, short), source)
    run("plan", source, "-q", "-o", before)
    assert "Since the plan before: 3 unchanged, 0 changes" in run("plan", source, "--previous", before).stdout
    now = two_nodes(wide, short, gang("urgent", 2, 600, priority=1))
    held = (*now.allocations, Allocation(job="first", holds=(Hold(node="n1", gpus=8),), until_s=600))
    save(now.model_copy(update={"allocations": held}), source)
    shown = run("plan", source, "--previous", before).stdout
    assert "Since the plan before: 1 unchanged, 3 changes" in shown
    changes = shown.split("Since the plan before")[1]
    assert re.search(r"urgent +new +- +in 40 min +n\[0-1\]", changes)
    assert re.search(r"wide +later +in 40 min +in 50 min +\+10 min +n\[0-1\]", changes)
    assert re.search(r"first +runs now +now +-", changes)
    assert "stable, by priority" in shown


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--policy", "conservativ"), "unknown policy 'conservativ': did you mean 'conservative'?"),
        (("--order", "lifo"), "unknown order 'lifo'"),
        (("--horizon-s", "0"), "--horizon-s"),
        (("--patience-s", "-1"), "--patience-s"),
        (("--policy", "depth-0"), "a depth of 0"),
        (("--previous", "nowhere.json"), "nowhere.json"),
        (("--previous", "{file}"), "queue.json: "),
        (("--previous", "{plan}", "--policy", "easy"), "--policy has no meaning when planning again"),
        (("--json", "{file}"), "--json would overwrite"),
        (("--html", "{file}"), "--html would overwrite"),
        (("--previous", "{plan}", "--json", "{plan}"), "--json would overwrite"),
        (("--json", "same.html", "--html", "same.html"), "--html would overwrite"),
        (("--json", "/no/such/folder/out.json"), "/no/such/folder/out.json: cannot be written"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_a_mistake_is_one_sentence(
    run: Run, queue_file: Path, tmp_path: Path, args: tuple[str, ...], told: str
) -> None:
    previous = tmp_path / "previous.json"
    run("plan", queue_file, "-q", "-o", previous)
    before = queue_file.read_bytes(), previous.read_bytes()
    result = run("plan", queue_file, *(arg.format(file=queue_file, plan=previous) for arg in args))
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.startswith("kant-opt: ")
    assert result.stderr.count("\n") == 1
    assert (queue_file.read_bytes(), previous.read_bytes()) == before


def test_without_altair_the_extra_is_named(
    run: Run, queue_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kant_opt.io.html.find_spec", lambda name: None)
    result = run("plan", queue_file, "--html", tmp_path / "out.html")
    assert (result.exit_code, result.stdout) == (2, ""), "known before anything is planned"
    assert "pip install 'kant-opt[report]'" in result.stderr


def test_control_c_ends_it_with_a_code_of_its_own(run: Run, queue_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kant_opt.planning, "plan", interrupted)
    result = run("plan", queue_file)
    assert result.exit_code == 130
    assert "Traceback" not in result.output


# -- the terminal ----------------------------------------------------------------------------------


def test_lists_are_bounded_unless_all(run: Run, tmp_path: Path) -> None:
    save(Request(nodes=(Node(name="n", gpus=8),), jobs=tuple(gang(f"j{i}", 1, 60) for i in range(70))), tmp_path / "m")
    shown = run("plan", tmp_path / "m").stdout
    assert len(re.findall(r"^  j\d+ ", shown, re.MULTILINE)) == 50
    assert "... and 20 more (--all shows them)" in shown
    assert len(re.findall(r"^  j\d+ ", run("plan", tmp_path / "m", "--all").stdout, re.MULTILINE)) == 70


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(run: Run, queue_file: Path, columns: int) -> None:
    assert max(map(len, run("plan", queue_file, columns=columns).stdout.splitlines())) <= columns


def test_names_are_shown_and_never_obeyed(run: Run, tmp_path: Path) -> None:
    names = ("[bold]x[/bold]", "\x1b[31mred", "two\nlines", "\u202eback")
    jobs = tuple(gang(name, 1, 60) for name in names)
    save(Request(nodes=(Node(name="n\x07[/]", gpus=8),), jobs=jobs), tmp_path / "names.json")
    shown = run("plan", tmp_path / "names.json", columns=160).stdout
    for text in ("[bold]x[/bold]", r"\x1b[31mred", r"two\nlines", r"\u202eback", r"n\x07[/]"):
        assert text in shown
    assert not set(shown) & set("\x1b\x07\u202e")


def test_nothing_to_plan_is_said(run: Run, tmp_path: Path) -> None:
    save(two_nodes(), tmp_path / "idle.json")
    result = run("plan", tmp_path / "idle.json")
    assert result.exit_code == 0
    assert "No gang waits" in result.stdout
    save(Request(nodes=(), jobs=(gang("j", 1, 60),)), tmp_path / "bare.json")
    assert run("plan", tmp_path / "bare.json").exit_code == 1


def test_every_kind_of_wait_has_words() -> None:
    assert set(WITHOUT_START) == set(get_args(WaitKind)), "a kind without heading would not be shown at all"
    words = PlanWords(two_nodes(*QUEUE), plan(two_nodes(*QUEUE)))
    for kind in get_args(WaitKind):
        for jobs in ((), ("wide",)):
            told = words.wait(Wait(kind=kind, jobs=jobs, sentence=""))
            assert told
            assert "{" not in told


def test_the_curve_is_as_high_as_the_use() -> None:
    """All of 8 GPUs for a half, then a quarter, then none: 4, 1 and 0 lines of blocks."""
    used = Occupancy((0, 50, 75), (8000, 2000, 0), 8000)
    full, empty = "█" * 50, " " * 50
    assert curve(used, 0, 100, 100, draws=True) == [full + empty] * 3 + [full + "█" * 25 + " " * 25]
    assert curve(used, 0, 100, 4, draws=False) == ["##  "] * 3 + ["### "]
    trace = Occupancy((0, 1), (1, 0), 1_000_000)
    assert curve(trace, 0, 100, 2, draws=True)[-1] == "▁ ", "only nothing is empty"


def test_every_policy_and_order_is_in_the_help_and_on_the_page(run: Run, root: Path) -> None:
    """Names that take a number are shown with one."""
    shown = re.sub(r"-\s+", "-", run("plan", "--help", columns=200).stdout)  # lines break behind hyphens
    page = (root / "docs" / "concepts" / "windows-and-backfilling.md").read_text()
    for name in (*POLICIES, *ORDERS):
        told = rf"\b{name[:-1]}\d+\b" if name.endswith("-k") else rf"\b{name}\b"
        assert re.search(told, shown), name
        assert name.startswith("optimal-") or re.search(told, page), name


def test_times_in_words() -> None:
    clock = Clock(1_764_612_000)
    assert [clock.away(clock.now_s + s) for s in (0, 45, -7505)] == ["now", "in 45 s", "2 h 5 min ago"]
    assert span(86_400 + 60) == "1 d"
    assert Clock(5).stamp(1200) == "1,200 s", "a clock of its own has no days"
    assert clock.stamp(1 << 53) == "9,007,199,254,740,992 s", "nor has the year 285 million"


def test_a_real_cluster(run: Run, shared: Path) -> None:
    result = run("plan", shared / "slurm_live", "-p", "easy", "--json", "-")
    found = _plan(result)
    assert result.exit_code == 0, "every one of the ten waiting gangs has a start"
    assert len(found.jobs) == 10
    assert to_json(found) == json.dumps(json.loads(result.stdout), separators=(",", ":"), ensure_ascii=False)
    for entry in found.jobs:
        assert re.search(rf"^  {entry.job} ", result.stderr, re.MULTILINE)
    assert "2 pending jobs (420, 547) left out: BeginTime" in result.stderr
