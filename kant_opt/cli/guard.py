"""What a command's end means: exit codes, and one sentence instead of a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from kant_opt.cli.text import safe
from kant_opt.errors import KantOptError, WrongAnswer

UNPLACED = 1
"""Some job is not placed, or the placement breaks a rule."""
MISTAKE = 2
"""The user's: a file, a value, a name."""
BUG = 3
"""Ours."""
INTERRUPTED = 130
CLOSED_PIPE = 141
"""As the shell reports a program that SIGPIPE ended."""
_OURS = "a bug in kant_opt, please report the command and its input with this line"


class GuardedGroup(TyperGroup):
    """The outermost command: every way out of it is an exit code of this page."""

    def main(self, *args: Any, **extra: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal that lacks a character shows its number
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except SystemExit as left:
            code = leave_closed_pipe() if isinstance(left.__context__, BrokenPipeError) else left.code
        except Exception as error:
            code = _told(error)
        sys.exit(code if isinstance(code, int) else 0)


def leave_closed_pipe() -> int:
    """Let the rest of stdout go nowhere, so that the interpreter's last flush does not fail; return the exit code."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stdout may be no file, or be gone
        out = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, out)
        os.close(nowhere)
    return CLOSED_PIPE


def _told(error: Exception) -> int:
    """Say on stderr what went wrong and return the exit code."""
    if isinstance(error, typer.Abort):
        return INTERRUPTED
    # Typer brings its own Click or uses the one installed, by version: its errors are known by what they can do.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        text = error.format_message().replace("Value error, ", "").rstrip(".")
        return _say(text + hint, MISTAKE)
    if isinstance(error, WrongAnswer):
        return _say(f"{_OURS}: {error}", BUG)
    if isinstance(error, KantOptError):
        return _say(str(error), MISTAKE)
    if isinstance(error, OSError):
        return _say(f"{error.filename or 'input or output'}: {error.strerror or error}", MISTAKE)
    if os.environ.get("KANT_OPT_TRACEBACK"):
        traceback.print_exception(error)
    what = f"{type(error).__name__}{_where(error)}: {error}" if str(error) else f"{type(error).__name__}{_where(error)}"
    return _say(f"{_OURS}: {what} (KANT_OPT_TRACEBACK=1 shows the way there)", BUG)


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""


def _say(text: str, code: int) -> int:
    sys.stderr.write(f"kant-opt: {safe(text)}\n")
    return code
