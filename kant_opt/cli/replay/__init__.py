"""`kant-opt replay`."""

from kant_opt.cli.replay.command import replay

__all__ = ["replay"]
