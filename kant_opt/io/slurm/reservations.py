"""Slurm reservations: `scontrol show reservations --json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kant_opt.io.slurm.hostlist import Allowance
from kant_opt.io.slurm.values import Json, number, records_of, text, words
from kant_opt.schema import Reservation, parse


@dataclass(frozen=True)
class ReservationRecord:
    """A reservation as Slurm tells of it."""

    name: str
    nodes: tuple[str, ...]
    start_s: int
    end_s: int | None
    flags: frozenset[str]

    @property
    def binds(self) -> bool:
        """Return whether its jobs stay on its nodes."""
        return "FLEX" not in self.flags


def reservations_of_json(document: Json, place: str) -> Iterator[ReservationRecord]:
    """Yield the reservations that name nodes; users and accounts matter only through the jobs that ask for them."""
    allowance = Allowance()
    for i, item in enumerate(records_of(document, "reservations", place)):
        name, start = text(item.get("name")), number(item.get("start_time"), bits=64)
        nodes = allowance.expand(text(item.get("node_list")) or "", f"{place}: reservations.{i}.node_list")
        if name is not None and start is not None and nodes:
            yield ReservationRecord(
                name, nodes, start, number(item.get("end_time"), bits=64), frozenset(words(item.get("flags")))
            )


def to_reservation(record: ReservationRecord, known: Iterable[str], jobs: Iterable[str]) -> Reservation | None:
    """Return the reservation with those of its nodes that are known; None where none is."""
    here = set(known)
    nodes = [n for n in record.nodes if n in here]
    if not nodes:
        return None
    data = {"name": record.name, "nodes": nodes, "start_s": record.start_s, "end_s": record.end_s}
    return parse(Reservation, {**data, "jobs": sorted(jobs)})
