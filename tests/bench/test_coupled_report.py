"""The report of the coupled instances: later runs win, bounds show where they differ, gaps are counted per term."""

from __future__ import annotations

import json
from pathlib import Path

from .coupled_report import Run, load, rows, summary


def a_run(instance: str, traffic: tuple[int, int | None], seconds: float = 1.0) -> Run:
    values = {"admitted[1]": (16_384_000, 16_384_000), "admitted[0]": (500_000, 512_000), "traffic": traffic}
    levels = [{"name": name, "value": v, "bound": b, "by": "counting"} for name, (v, b) in values.items()]
    cells = {"jobs": 9, "placed": 8, "cpu": 0.5, "seconds": seconds, "levels": levels}
    return {"instance": instance, "backend": "search", "deadline_s": 10, **cells}


def test_the_last_run_of_an_instance_counts(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    assert load(file) == {}
    first, again = a_run("a", (9, 3)), a_run("a", (4, 3))
    file.write_text(f"{json.dumps(first)}\n{json.dumps(again)}\n")
    assert load(file) == {("a", "search", 10): again}


def test_a_bound_is_shown_where_it_is_not_the_value() -> None:
    *_, met, apart, missing = rows([a_run("a", (4, 4)), a_run("b", (4, 3)), a_run("c", (4, None))])
    assert met == "| a | 9 | 8 | 16,384 / 500 (512) | 4 |  |  | 1.0 | 0.5 |"
    assert "| 4 (3) |" in apart
    assert "| 4 (none) |" in missing


def test_a_term_is_as_far_from_proof_as_its_worst_class() -> None:
    lines = list(summary([a_run("a", (400, 400)), a_run("b", (400, 397)), a_run("c", (400, None))]))
    assert "| admitted | 0 | 0 | 3 |" in lines  # 500 of 512 GPUs in the lower class
    assert "| traffic | 1 | 2 | 3 |" in lines
