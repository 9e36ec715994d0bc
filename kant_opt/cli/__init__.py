"""The command line. `main` is the entry point; nothing else is imported until it runs."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `kant-opt` with the process's arguments and exit with its code."""
    try:
        from kant_opt.cli.app import app

        app(prog_name="kant-opt")
    except KeyboardInterrupt:  # while this module's own imports run; later ones are caught in `guard`
        sys.exit(130)
