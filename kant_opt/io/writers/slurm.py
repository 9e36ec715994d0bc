"""Slurm: a line per job with the options that pin it to its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kant_opt.io.writers.writer import WRITERS, Written, note_indices
from kant_opt.schema import PlacedPods, Placement, Request

_LAST_NUMBER = re.compile(r"(.*?)(\d{1,17})(\D*)\Z", re.ASCII | re.DOTALL)


class SlurmOptions:
    """Job name, tab, `--nodes=` and `--nodelist=` for sbatch. Pods per node are the script's own matter."""

    name = "slurm"
    gives = "a line per job: name, tab, --nodes=N --nodelist=HOSTLIST for sbatch"

    def write(self, request: Request, placement: Placement) -> Written:
        """Return the lines in the order of the placement; members that ran before are not repeated."""
        del request
        lines = [f"{job.job}\t--nodes={len(job.nodes)} --nodelist={fold_hosts(job.nodes)}\n" for job in placement.jobs]
        several = [job.job for job in placement.jobs if len({part.podset for part in job.pods}) > 1]
        uneven = [job.job for job in placement.jobs if len(set(_pods_by_node(job.pods).values())) > 1]
        notes = list(note_indices(placement, "Slurm's options"))
        if several:
            notes.append(f"which podset goes to which node is lost, of {len(several)} jobs ({', '.join(several[:3])})")
        if uneven:
            notes.append(f"that nodes get unequal pods is lost, of {len(uneven)} jobs ({', '.join(uneven[:3])})")
        return "".join(lines), tuple(notes)


def fold_hosts(names: Iterable[str]) -> str:
    """Return a hostlist of the names; its order is by name, as Slurm sorts the nodes of a job itself.

    >>> fold_hosts(["n10", "n9", "n8", "gpu-01a", "login"])
    'gpu-[01]a,login,n[8-10]'
    """
    groups: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        if (match := _LAST_NUMBER.match(name)) is None:
            plain.append(name)
            continue
        digits = match[2]
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((match[1], match[3], width), []).append(int(digits))
    _widen(groups)
    folded = [f"{head}[{_ranges(numbers, width)}]{tail}" for (head, tail, width), numbers in groups.items()]
    return ",".join(sorted([*plain, *folded]))


def _widen(groups: dict[tuple[str, str, int], list[int]]) -> None:
    """Move n10 to the n01..n09 that it continues: numbers of full width look alike with and without leading zeros."""
    for head, tail, width in [key for key in groups if key[2]]:
        bare = groups.get((head, tail, 0), [])
        fitting = [number for number in bare if len(str(number)) == width]
        groups[head, tail, width] += fitting
        rest = [number for number in bare if len(str(number)) != width]
        if rest:
            groups[head, tail, 0] = rest
        else:
            groups.pop((head, tail, 0), None)


def _ranges(numbers: list[int], width: int) -> str:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs)


def _pods_by_node(parts: Iterable[PlacedPods]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        found[part.node] = found.get(part.node, 0) + part.count
    return found


WRITERS.add("slurm", SlurmOptions())
