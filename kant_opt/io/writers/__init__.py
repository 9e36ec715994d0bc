"""Placements in the words of those who carry them out: one module a form, all in one registry."""

from kant_opt.io.writers import kueue, node_lists, slurm
from kant_opt.io.writers.writer import WRITERS, Writer, Written, write_placement

__all__ = ["WRITERS", "Writer", "Written", "kueue", "node_lists", "slurm", "write_placement"]
