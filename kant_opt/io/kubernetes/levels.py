"""Node labels that tell where a node hangs, and the levels that follow from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kant_opt.io.objects import Notes, Object
from kant_opt.schema import NODE_LEVEL

Labels = dict[str, str]
HOST_KEYS = ("kubernetes.io/hostname", "cloud.google.com/gce-topology-host", "oci.oraclecloud.com/rdma.host_id")
HBD_LEVEL = "hbd"
_HBD_KEYS = (
    "nvidia.com/gpu.clique",
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
    "ds.coreweave.com/nvlink.domain",
)
_TIER = re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})")
_TIER_NAMES = ("leaf", "spine", "core")


@dataclass(frozen=True)
class Family:
    """Labels that one source sets together: (label key, level name), outermost first."""

    name: str
    keys: tuple[tuple[str, str], ...]

    def covers(self, labels: Labels) -> bool:
        """Return whether a node carries at least one label of the family."""
        return any(labels.get(key) for key, _ in self.keys)


_FAMILIES = (
    Family(
        "topograph (older keys)",
        tuple((f"network.topology.nvidia.com/{level}", level) for level in ("datacenter", "spine", "block")),
    ),
    Family(
        "AWS",  # layer 1 is the top, the reverse of topograph's tiers
        tuple((f"topology.k8s.aws/network-node-layer-{i}", _TIER_NAMES[3 - i]) for i in (1, 2, 3)),
    ),
    Family("Google", tuple((f"cloud.google.com/gce-topology-{level}", level) for level in ("block", "subblock"))),
    Family(
        "CoreWeave", tuple((f"backend.coreweave.cloud/{level}", level) for level in ("fabric", "superpod", "leafgroup"))
    ),
    Family(
        "Oracle",
        tuple((f"oci.oraclecloud.com/rdma.{x}_id", x) for x in ("hpc_island", "network_block", "local_block")),
    ),
    Family("Kueue's samples", tuple((f"cloud.provider.com/topology-{level}", level) for level in ("block", "rack"))),
)
_ZONES = Family("Kubernetes", tuple((f"topology.kubernetes.io/{level}", level) for level in ("region", "zone")))


@dataclass(frozen=True)
class Levels:
    """The levels found, outermost first, each with the label key that tells its domain."""

    keys: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Level names, outermost first."""
        return tuple(level for _, level in self.keys)

    def path(self, labels: Labels) -> tuple[str | None, ...]:
        """Return a node's domain on each level, None where its label is missing or empty."""
        return tuple(labels.get(key) or None for key, _ in self.keys)

    def level_of(self, key: str) -> str | None:
        """Return the level that a label key stands for, None for a key that is not among the levels."""
        if key in HOST_KEYS:
            return NODE_LEVEL
        return next((level for known, level in self.keys if known == key), None)


def find_levels(
    nodes: Sequence[tuple[str, Labels]], topologies: Sequence[Object], notes: Notes, *, given: Family | None = None
) -> Levels:
    """Return the levels of the nodes that matter, (name, labels) each: those with GPUs where there are any.

    The family that is `given` wins where it covers any; else the one on most of them (a Topology object in the files
    counts as one, and first among equals), zones only
    where no network label is set. NVLink domains become the innermost level.
    """
    families = [*map(_from_object, topologies), _tiers(nodes), *_FAMILIES]
    if given is not None and _num_covered(given, nodes):
        families = [given]
    found = max(families, key=lambda family: _num_covered(family, nodes))  # the first of equals
    if not _num_covered(found, nodes):
        found = _ZONES
    keys = [(key, level) for key, level in found.keys if any(labels.get(key) for _, labels in nodes)]
    for key in _HBD_KEYS:
        if key not in dict(keys) and any(labels.get(key) for _, labels in nodes):
            keys.append((key, HBD_LEVEL))
            break
    levels = Levels(tuple(keys))
    _note_gaps(levels, nodes, notes)
    return levels


def _num_covered(family: Family, nodes: Sequence[tuple[str, Labels]]) -> int:
    return sum(family.covers(labels) for _, labels in nodes)


def _tiers(nodes: Sequence[tuple[str, Labels]]) -> Family:
    """topograph's tiers: 0 is the leaf, the highest the outermost."""
    tiers = {int(match[1]) for _, labels in nodes for key in labels if (match := _TIER.fullmatch(key))}
    names = {tier: _TIER_NAMES[tier] if tier < len(_TIER_NAMES) else f"tier-{tier}" for tier in tiers}
    return Family("topograph", tuple((f"fabric.topograph.run/tier-{t}", names[t]) for t in sorted(tiers, reverse=True)))


def _from_object(topology: Object) -> Family:
    """Kueue's and KAI's Topology: labels from outermost to innermost, the host implied. A level is called by its alias,
    or by what follows the slash of its label."""
    keys: list[tuple[str, str]] = []
    for item in topology.child("spec").children("levels"):
        key = item.required("nodeLabel")
        if key in HOST_KEYS:
            continue
        name = HBD_LEVEL if key in _HBD_KEYS else item.text("alias") or key.rpartition("/")[2]
        if name == NODE_LEVEL or name in (level for _, level in keys):
            name = key
        keys.append((key, name))
    return Family(topology.child("metadata").text("name"), tuple(keys))


def _note_gaps(levels: Levels, nodes: Sequence[tuple[str, Labels]], notes: Notes) -> None:
    parents: dict[str, set[tuple[str | None, ...]]] = {}
    for name, labels in nodes:
        path = levels.path(labels)
        for (key, level), domain in zip(levels.keys, path, strict=True):
            if domain is None and level != HBD_LEVEL:
                notes.add(f"nodes without label {key}, each alone on level {level!r}", name)
        if levels.names[-1:] == (HBD_LEVEL,) and path[-1] is not None:
            parents.setdefault(path[-1], set()).add(path[:-1])
    for domain, outer in parents.items():
        if len(outer) > 1:
            notes.add("NVLink domains that span several domains of the level above are split among them", domain)
