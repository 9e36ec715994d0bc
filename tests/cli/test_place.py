"""`kant-opt place`: what it shows is true of the answer, and what it writes is the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import Result

from kant_opt.cli.answer import KINDS
from kant_opt.engine import place
from kant_opt.io import load_placement, save
from kant_opt.schema import FabricSpec, Job, Limits, Node, Outcome, PodSet, ReasonKind, Request, parse, to_json
from kant_opt.verify import verify

Run = Callable[..., Result]


def _row(text: str, first: str) -> list[str]:
    """Return the words of the table row that starts with `first`."""
    return next(line.split() for line in text.splitlines() if line.split()[:1] == [first])


def test_each_placed_gang_is_a_row_with_its_domains(run: Run, request_file: Path) -> None:
    shown = run("place", request_file).stdout
    # Three whole nodes in leaves of two need two leaves, one beyond the first; spine b or a holds three: one spine.
    assert _row(shown, "three")[:7] == ["three", "3", "24", "1", "2", "+1", "3"]
    # Two pods of 2 GPUs share a node: one domain of every level.
    assert _row(shown, "pair")[:6] == ["pair", "2", "4", "1", "1", "1"]
    assert _row(shown, "all") == ["all", "5", "28", "+0", "+1"]
    assert "2 of 3 gangs placed" in shown


def test_measures_before_and_after(run: Run, request_file: Path) -> None:
    shown = run("place", request_file).stdout
    # 8 of 64 GPUs run before; 28 come. The pair leaves one node used in part: 1 of 8.
    assert re.search(r"\(GAR\) +12.50 % +56.25 %", shown)
    assert _row(shown, "free") == ["free", "GPUs", "56", "28"]
    assert re.search(r"\(GFR\) +0.00 % +12.50 %", shown)
    # Spine a has 4 free nodes and b three. `three` takes all of b (the tightest), `pair` one of a: a keeps 3, a leaf 2.
    assert _row(shown, "default") == ["default", "4", "→", "3", "2", "→", "2"]


def test_what_is_not_placed_says_why(run: Run, request_file: Path) -> None:
    result = run("place", request_file)
    assert result.exit_code == 1
    assert "Not placed (1), impossible" in result.stdout
    assert "huge: needs 9 pods x 8 GPUs; 8 of 9 fit" in result.stdout  # on the empty fabric: it has 8 nodes


def test_all_placed_is_success(run: Run, easy_file: Path) -> None:
    result = run("place", easy_file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "2 of 2 gangs placed" in result.stdout
    assert "Not placed" not in result.stdout


def test_nothing_to_do_is_said(run: Run, tmp_path: Path, two_by_two: Request) -> None:
    save(two_by_two.model_copy(update={"jobs": ()}), tmp_path / "idle.json")
    result = run("place", tmp_path / "idle.json")
    assert result.exit_code == 0
    assert "No gang waits" in result.stdout


def test_json_on_stdout_is_all_there_is(run: Run, request_file: Path, two_by_two: Request) -> None:
    result = run("place", request_file, "--json", "-")
    outcome = parse(Outcome, json.loads(result.stdout))
    assert "2 of 3 gangs placed" in result.stderr
    assert outcome.placement is not None
    assert verify(two_by_two, outcome.placement) == ()
    assert outcome.placement == place(two_by_two).placement


def test_json_in_a_file_is_the_same_outcome(run: Run, request_file: Path, tmp_path: Path, two_by_two: Request) -> None:
    out = tmp_path / "out.json"
    result = run("place", request_file, "--json", out, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")
    assert load_placement(out) == place(two_by_two).placement


def test_the_source_is_never_overwritten(run: Run, request_file: Path) -> None:
    before = request_file.read_bytes()
    result = run("place", request_file, "--json", request_file)
    assert result.exit_code == 2
    assert "would overwrite the source" in result.stderr
    assert request_file.read_bytes() == before


def test_order_and_backend_and_seed_reach_the_engine(run: Run, tmp_path: Path) -> None:
    # One node of 8 GPUs: whoever is looked at first takes it. Batch takes the larger, online the first given.
    jobs = tuple(Job(name=name, podsets=(PodSet(count=1, gpus=gpus),)) for name, gpus in (("small", 1), ("large", 8)))
    source = tmp_path / "one.json"
    save(Request(nodes=(Node(name="n", gpus=8),), jobs=jobs), source)
    placed = {}
    for order in ("batch", "online"):
        outcome = json.loads(run("place", source, "--order", order, "--json", "-").stdout)
        placed[order] = [job["job"] for job in outcome["placement"]["jobs"]]
    assert placed == {"batch": ["large"], "online": ["small"]}
    outcome = json.loads(run("place", source, "-b", "random", "--seed", 7, "--json", "-").stdout)
    assert (outcome["run"]["backend"], outcome["run"]["seed"]) == ("random", 7)


def test_limits_of_the_source_hold_until_the_call_says_otherwise(run: Run, tmp_path: Path, two_by_two: Request) -> None:
    source = tmp_path / "seeded.json"
    save(two_by_two.model_copy(update={"limits": Limits(seed=5)}), source)
    seeds = [json.loads(run("place", source, *given, "--json", "-").stdout)["run"] for given in ((), ("--seed", 0))]
    assert [record.get("seed", 0) for record in seeds] == [5, 0]


def test_a_limit_that_bit_is_told(run: Run, tmp_path: Path) -> None:
    # Shapes of 3 and 5 GPUs on nodes of 8 need the exact search, and one state is no search at all. Whether it
    # finds a place or not, the limit given is the one that counts.
    podsets = (PodSet(name="a", count=5, gpus=3), PodSet(name="b", count=5, gpus=5))
    nodes = tuple(Node(name=f"n{i}", gpus=8) for i in range(5))
    save(Request(nodes=nodes, jobs=(Job(name="mixed", podsets=podsets),)), tmp_path / "mixed.json")
    assert run("place", tmp_path / "mixed.json", "--quiet").exit_code == 0  # 3 + 5 = 8, five times
    tight = json.loads(run("place", tmp_path / "mixed.json", "--search-states", 1, "--json", "-").stdout)
    assert tight["run"].get("limit_hit", "") in ("", "search_states")


def test_lists_are_bounded_unless_all(run: Run, tmp_path: Path) -> None:
    nodes = tuple(Node(name=f"n{i}", gpus=8) for i in range(60))
    jobs = tuple(Job(name=f"j{i}", priority=i, podsets=(PodSet(count=1, gpus=8),)) for i in range(70))
    save(Request(nodes=nodes, jobs=jobs), tmp_path / "many.json")
    shown = run("place", tmp_path / "many.json").stdout
    assert len(re.findall(r"^  j\d+ +1 +8 ", shown, re.MULTILINE)) == 50
    assert "... and 10 more (--all shows them)" in shown
    # 70 priority classes of which all are proven: one row for them. 60 nodes of 8 GPUs are 480, and no more can be.
    assert len([line for line in shown.splitlines() if "GPUs admitted" in line]) == 1
    assert re.search(r"70 priority classes +480 +480 +0 ", shown)
    # The ten that stay out differ in their name only: one line.
    assert sum("needs 1 pod x 8 GPUs" in line for line in shown.splitlines()) == 1
    everything = run("place", tmp_path / "many.json", "--all").stdout
    assert "--all" not in everything
    assert len([line for line in everything.splitlines() if "GPUs admitted" in line]) == 70


def test_names_are_shown_and_never_obeyed(run: Run, tmp_path: Path) -> None:
    names = ("[bold]x[/bold]", "\x1b[31mred", "two\nlines", "\u202eback", ":smile:")
    jobs = tuple(Job(name=name, podsets=(PodSet(count=1, gpus=1),)) for name in names)
    save(Request(nodes=(Node(name="n\x07[/]", gpus=8),), jobs=jobs), tmp_path / "names.json")
    result = run("place", tmp_path / "names.json", columns=120)
    assert result.exit_code == 0
    for shown in ("[bold]x[/bold]", r"\x1b[31mred", r"two\nlines", r"\u202eback", ":smile:", r"n\x07[/]"):
        assert shown in result.stdout
    assert not set(result.stdout) & set("\x1b\x07\u202e")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(run: Run, request_file: Path, columns: int) -> None:
    lines = run("place", request_file, columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns


def test_long_node_lists_are_cut_not_wrapped(run: Run, tmp_path: Path) -> None:
    nodes = tuple(Node(name=f"n{i}", path=(f"l{i % 2}",), gpus=8) for i in range(0, 400, 2))
    save(
        Request(
            fabric=FabricSpec(levels=("leaf",)),
            nodes=nodes,
            jobs=(Job(name="j", podsets=(PodSet(count=200, gpus=8),)),),
        ),
        tmp_path / "odd.json",
    )
    rows = [line for line in run("place", tmp_path / "odd.json", columns=80).stdout.splitlines() if "n[0,2," in line]
    assert len(rows) == 1
    assert rows[0].rstrip().endswith("…")


def test_every_kind_of_no_has_a_heading() -> None:
    assert set(KINDS) == set(get_args(ReasonKind)), "a kind without heading would not be shown at all"


def test_a_real_cluster(run: Run, shared: Path) -> None:
    result = run("place", shared / "slurm_live", "--json", "-")
    outcome = json.loads(result.stdout)
    assert len(outcome["placement"]["jobs"]) + len(outcome["reasons"]) == 10, (
        "squeue lists 12 pending, 2 of them not yet due"
    )
    assert "2 pending jobs (420, 547) left out: BeginTime" in result.stderr
    for reason in outcome["reasons"]:
        assert reason["job"] in result.stderr
    assert to_json(parse(Outcome, outcome)) == json.dumps(outcome, separators=(",", ":"), ensure_ascii=False)


def test_a_gang_without_pods_is_neither_placed_nor_missing(run: Run, tmp_path: Path) -> None:
    podset = PodSet(count=4, finished=4, gpus=8)
    save(Request(nodes=(Node(name="n", gpus=8),), jobs=(Job(name="done", podsets=(podset,)),)), tmp_path / "r.json")
    result = run("place", tmp_path / "r.json")
    assert result.exit_code == 0, "nothing waits for room"
    assert "0 of 1 gang placed, 1 without pods to place" in result.stdout
    assert run("explain", tmp_path / "r.json", "done").exit_code == 0


def test_a_cluster_without_nodes_is_an_answer(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "r.json"
    save(Request(nodes=(), jobs=(Job(name="j", podsets=(PodSet(count=1, gpus=1),)),)), source)
    for result in (run("place", source), run("explain", source, "j")):
        assert result.exit_code == 1
        assert "impossible" in result.stdout
    assert run("fabric", "show", source).exit_code == 0
