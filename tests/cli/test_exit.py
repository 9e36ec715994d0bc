"""Ways out: exit codes, one sentence for a mistake, no traceback."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from kant_opt import __version__
from kant_opt.cli.app import app
from kant_opt.errors import WrongAnswer

Run = Callable[..., Result]
PROGRAM = [sys.executable, "-c", "from kant_opt.cli import main; main()"]

MISTAKES = [
    (("place", "nowhere.json"), "nowhere.json: no such file or folder"),
    (("place", "{file}", "--format", "slrm"), "unknown format 'slrm': did you mean 'slurm'?"),
    (("place", "{file}", "--format", "openb"), "request.json"),
    (("place", "{file}", "--backend", "e-bnpack"), "unknown backend 'e-bnpack': did you mean 'e-binpack'?"),
    (("place", "{file}", "--order", "sideways"), "'sideways' is not one of 'batch', 'online'"),
    (("place", "{file}", "--seed", "-1"), "--seed"),
    (("place", "{file}", "--seed", "x"), "--seed"),
    (("place", "{file}", "--deadline-ms", "0"), "--deadline-ms"),
    (("place", "{file}", "--json", "/no/such/folder/out.json"), "/no/such/folder/out.json: cannot be written"),
    (("place", "{file}", "--colour"), "No such option: --colour"),
    (("place",), "Missing argument 'SOURCE' (see kant-opt place --help)"),
    (("plce", "{file}"), "No such command 'plce'"),
    (("explain", "{file}", "thre"), "unknown job 'thre': did you mean 'three'?"),
    (("verify", "{file}", "{file}"), "request.json"),
    (("verify", "{file}", "nowhere.json"), "nowhere.json: cannot be read"),
    (("fabric", "show", "uneven"), "unknown topology 'uneven'"),
    (("fabric", "show", "nowhere.toml"), "nowhere.toml: cannot be read"),
    (("fabric", "show", "{file}", "--levels", "0"), "--levels"),
    (("convert", "{file}", "out.txt"), "out.txt: no form ends in '.txt'"),
    (("schema", "requst"), "unknown document 'requst': did you mean 'request'?"),
]


@pytest.mark.parametrize(("args", "told"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, tuple) else None)
def test_a_mistake_is_one_sentence(run: Run, request_file: Path, args: tuple[str, ...], told: str) -> None:
    result = run(*(arg.format(file=request_file) for arg in args))
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.startswith("kant-opt: ")
    assert result.stderr.count("\n") == 1


def test_a_wrong_answer_is_our_bug(run: Run, request_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lie(*_: object, **__: object) -> None:
        raise WrongAnswer("backend 'x' broke a rule")

    monkeypatch.setattr("kant_opt.engine.place", lie)
    result = run("place", request_file)
    assert result.exit_code == 3
    assert result.stderr.startswith("kant-opt: a bug in kant_opt, please report")
    assert "backend 'x' broke a rule" in result.stderr


def test_any_other_exception_is_our_bug_too(run: Run, request_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own exit code for it is 1, which means something here."""

    def crash(*_: object, **__: object) -> None:
        raise IndexError("off by one")

    monkeypatch.setattr("kant_opt.engine.place", crash)
    result = run("place", request_file)
    assert result.exit_code == 3
    assert "IndexError in test_exit.py:" in result.stderr
    assert result.stderr.count("\n") == 1
    monkeypatch.setenv("KANT_OPT_TRACEBACK", "1")
    assert "Traceback" in run("place", request_file).stderr


OUTPUTS = [("fabric", "show", "leaf-spine-2048"), ("schema",), ("place", "--help")]
"""A table, a document, a help page: three ways to write."""


@pytest.mark.parametrize("args", OUTPUTS, ids=" ".join)
def test_a_closed_pipe_ends_it_quietly(args: tuple[str, ...]) -> None:
    with subprocess.Popen([*PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("args", OUTPUTS, ids=" ".join)
def test_a_full_disk_is_told(args: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROGRAM, *args], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_control_c_ends_it_without_traceback(tmp_path: Path) -> None:
    fifo = tmp_path / "request.json"
    os.mkfifo(fifo)  # reading it waits for a writer that never comes
    command = [*PROGRAM, "place", str(fifo)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_hear_control_c
    ) as process:
        try:
            handle = _open_when_read(fifo)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            os.close(handle)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def _hear_control_c() -> None:
    """Undo what a shell does to its background jobs, whose children would ignore the signal for ever."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _open_when_read(fifo: Path) -> int:
    """Open the pipe for writing as soon as the program waits on the other end of it."""
    for _ in range(600):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the program never read its source")


def test_a_terminal_without_the_characters_gets_others() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "100"}
    done = subprocess.run(
        [*PROGRAM, "fabric", "show", "uneven-64"], env=env, capture_output=True, check=True, timeout=60
    )
    text = done.stdout.decode("ascii")
    assert "|- leaf-01" in text
    assert "\\u" not in text


def _commands() -> list[tuple[str, ...]]:
    plain = ("place", "plan", "replay", "gap", "explain", "verify", "convert", "export", "schema", "backends")
    grouped = {"fabric": ("list", "show"), "instances": ("list", "check", "submit")}
    return [(name,) for name in plain] + [(group, name) for group, names in grouped.items() for name in names]


def test_the_list_of_commands_here_is_whole(run: Run) -> None:
    named = [info.callback.__name__ for info in app.registered_commands if info.callback]
    groups = {info.name for info in app.registered_groups}
    assert {*named, *groups} == {command[0] for command in _commands()}
    assert groups == {command[0] for command in _commands() if len(command) > 1}


@pytest.mark.parametrize("command", _commands(), ids=" ".join)
def test_every_command_has_examples_and_a_place_in_the_docs(run: Run, root: Path, command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Examples:\n +kant-opt .*{' '.join(command)}|Examples:\n +kant-opt ", result.stdout)
    assert f"kant-opt {' '.join(command)}" in result.stdout
    assert f"kant-opt {' '.join(command)}" in (root / "docs" / "cli.md").read_text()


def test_exit_codes_are_in_the_help_and_the_docs(run: Run, root: Path) -> None:
    page, text = (root / "docs" / "cli.md").read_text(), run("--help").stdout
    for code in (0, 1, 2, 3, 130):
        assert re.search(rf"^ +{code} +\w", text, re.MULTILINE)
        assert f"| {code} |" in page


def test_version_and_bare_calls(run: Run) -> None:
    assert run("--version").stdout == f"kant-opt {__version__}\n"
    assert run().stdout == run("--help").stdout
    assert run("fabric").stdout == run("fabric", "--help").stdout
