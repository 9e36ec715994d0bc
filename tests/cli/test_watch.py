"""Ctrl-C while `place` searches: the best answer until then is shown and written, and the exit code tells."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import kant_opt.engine
from kant_opt import Event, Outcome, Stop, parse
from kant_opt.cli.watch import Watch, watched

Run = Callable[..., Result]


def test_the_answer_until_then_is_kept(
    run: Run, easy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = kant_opt.engine.place

    def interrupted(*args: Any, stop: Stop, **rest: Any) -> Outcome:
        heard = threading.Event()
        outcome = place(*args, **rest)
        stop.when_asked(lambda: threading.Thread(target=heard.set).start())
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.wait(30)
        return outcome.model_copy(update={"run": outcome.run.model_copy(update={"limit_hit": "stopped"})})

    monkeypatch.setattr("kant_opt.engine.place", interrupted)
    before = signal.getsignal(signal.SIGINT)
    result = run("place", easy_file, "--json", tmp_path / "out.json")
    assert signal.getsignal(signal.SIGINT) == before
    assert result.exit_code == 130
    assert "2 of 2 gangs placed" in result.stdout
    assert "interrupted: this is the best answer until then" in result.stdout
    outcome = parse(Outcome, json.loads((tmp_path / "out.json").read_text()))
    assert outcome.placement is not None


def test_a_second_control_c_ends_the_program() -> None:
    with pytest.raises(KeyboardInterrupt), watched(shown=False) as watch:  # noqa: PT012 - the second one ends it
        os.kill(os.getpid(), signal.SIGINT)
        assert watch.stop.asked
        os.kill(os.getpid(), signal.SIGINT)


def test_the_line_says_what_is_known() -> None:
    watch = Watch()
    assert "s; Ctrl-C ends it" in str(watch.__rich__())
    watch.on_event(Event("cp-sat", "traffic", "incumbent", 7))
    watch.on_event(Event("cp-sat", "traffic", "bound", 5))
    assert "; traffic 7 (bound 5), cp-sat; Ctrl-C ends it" in str(watch.__rich__())
    watch.stop.ask()
    assert str(watch.__rich__()).endswith("; stopping")
