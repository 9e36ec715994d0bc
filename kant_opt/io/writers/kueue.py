"""Kueue's TopologyAssignments: domains (v1beta1) or slices (v1beta2), hosts as the lowest and only level."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from kant_opt.io.writers.writer import WRITERS, Written, note_indices
from kant_opt.schema import PlacedJob, Placement, Request

_HOST = "kubernetes.io/hostname"
_MOST_ROOTS = 100_000
"""Hosts in one slice that Kueue takes."""

Hosts = list[tuple[str, int]]
"""(host, pods) in the order of the ranks."""


class KueueAssignments:
    """A JSON list: workload, and podSetAssignments with the topologyAssignment of each of its podsets."""

    def __init__(self, name: str, version: str, form: Callable[[Hosts], dict[str, object]]) -> None:
        self.name, self._form = name, form
        self.gives = f"Kueue's TopologyAssignments ({version}), as JSON"

    def write(self, request: Request, placement: Placement) -> Written:
        """Return the list; a node goes by its host label where it has one."""
        hosts = {n.name: n.labels.get(_HOST, n.name) for n in request.nodes}
        data = [{"workload": job.job, "podSetAssignments": self._podsets(job, hosts)} for job in placement.jobs]
        return json.dumps(data, indent=1) + "\n", note_indices(placement, "Kueue's assignments")

    def _podsets(self, job: PlacedJob, hosts: dict[str, str]) -> list[dict[str, object]]:
        by_podset: dict[str, dict[str, int]] = {}
        for part in job.pods:
            found = by_podset.setdefault(part.podset, {})
            found[hosts[part.node]] = found.get(hosts[part.node], 0) + part.count
        return [
            {
                "name": podset,
                "count": sum(found.values()),
                "topologyAssignment": {"levels": [_HOST], **self._form(list(found.items()))},
            }
            for podset, found in by_podset.items()
        ]


def as_domains(hosts: Hosts) -> dict[str, object]:
    """Return the form of v1beta1."""
    return {"domains": [{"values": [host], "count": count} for host, count in hosts]}


def as_slices(hosts: Hosts) -> dict[str, object]:
    """Return the form of v1beta2: what all hosts share is written once."""
    pieces = [hosts[i : i + _MOST_ROOTS] for i in range(0, len(hosts), _MOST_ROOTS)]
    return {"slices": [_slice(piece) for piece in pieces]}


def _slice(hosts: Hosts) -> dict[str, object]:
    counts = [count for _, count in hosts]
    return {
        "domainCount": len(hosts),
        "valuesPerLevel": [_values([host for host, _ in hosts])],
        "podCounts": {"universal": counts[0]} if len(set(counts)) == 1 else {"individual": counts},
    }


def _values(names: Sequence[str]) -> dict[str, object]:
    if len(names) == 1:
        return {"universal": names[0]}
    prefix = _shared(names)
    roots = [name[len(prefix) :] for name in names]
    return {"individual": {**({"prefix": prefix} if prefix else {}), "roots": roots}}


def _shared(names: Sequence[str]) -> str:
    """Return the longest beginning that all names share and that leaves each of them a character."""
    first, last = min(names), max(names)  # what these two share, all share
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[: min(length, min(map(len, names)) - 1)]


WRITERS.add("kueue", KueueAssignments("kueue", "v1beta2", as_slices))
WRITERS.add("kueue-v1beta1", KueueAssignments("kueue-v1beta1", "v1beta1", as_domains))
