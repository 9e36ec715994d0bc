"""`kant-opt plan`: the command, the plan in words, and the page with its charts."""

from kant_opt.cli.plan.command import plan

__all__ = ["plan"]
