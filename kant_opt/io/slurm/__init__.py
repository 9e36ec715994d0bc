"""Slurm's state: topology, nodes, jobs and reservations, in any mix of its outputs."""

from __future__ import annotations

from pathlib import Path

from kant_opt.io.formats import FORMATS
from kant_opt.io.slurm.folder import looks_like_slurm, read_slurm
from kant_opt.schema import Request

__all__ = ["SlurmFormat"]


class SlurmFormat:
    """A folder of, or one of: topology.conf, and what scontrol, squeue and sinfo write."""

    name = "slurm"
    looks_for = "Slurm's topology.conf, scontrol show ..., squeue --json or sinfo --json, alone or in a folder"

    def sniff(self, source: Path) -> bool:
        """Return whether `source` holds one of Slurm's outputs."""
        return looks_like_slurm(source)

    def read_with_notes(self, source: Path) -> tuple[Request, tuple[str, ...]]:
        """Return the request and notes. Raises InputError with the file and the place in it."""
        return read_slurm(source)

    def read(self, source: Path) -> Request:
        """Return the request alone."""
        return self.read_with_notes(source)[0]


FORMATS.add("slurm", SlurmFormat())
