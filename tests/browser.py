"""A page opened in headless Chromium, without any network."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def look(page: Path) -> tuple[str, list[str]]:
    """Return the document as it is once drawn, and what the console was told.

    The console hears of forbidden scripts and addresses, of errors and of Vega's warnings.
    """
    with tempfile.TemporaryDirectory() as profile:
        command = [
            BROWSER or "",
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            *(f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--dump-dom", page.as_uri()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
