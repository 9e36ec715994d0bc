"""Where the folders lie that come with the package: models, topologies, instances."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def shipped(folder: str) -> Path:
    """Return where a folder of the project lies: inside an installed package, beside it in a checkout."""
    package = Path(str(files("kant_opt")))
    installed = package / "_data" / folder
    return installed if installed.is_dir() else package.parent / folder
