"""Levels of a fabric that is given as a graph of switches and links.

Switches stand on tiers: the distance to the nearest node. Nodes with equal sets of tier-1 switches form one unit;
tier by tier, groups whose sets of switches above are equal form one group of that tier. So the eight rails of a unit,
or the parallel spines of a pod, are one domain, and what tells two domains apart is that no switch below joins them.

Two things make real, imperfect fabrics come out as people mean them, both above the units only:
1. A switch that joins nothing (one group below it) does not set that group apart from groups that share its other
   switches. Leaves without nodes are of this kind.
2. A group that has lost less than half of the switches that another group has belongs with it. Any two groups that
   came together this way still share a switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from kant_opt.errors import InputError
from kant_opt.fabric.build import unknown_mark
from kant_opt.fabric.fabric import Fabric, Path
from kant_opt.fabric.links import bundles
from kant_opt.schema import NODE_LEVEL, FabricSpec, Node

COMPONENT_LEVEL = "fabric"
"""Added as outermost level where a forest has a tree with several roots, so that unlinked roots stay unlinked."""


@dataclass(frozen=True)
class _Group:
    """A domain in the making: its nodes, and the vertices that links upwards start from.

    These are its switches (none for a node without a switch), in the layer of nodes the node itself.
    """

    name: str
    nodes: tuple[str, ...]
    ends: tuple[str, ...]


def derive_levels(spec: FabricSpec, nodes: Sequence[Node]) -> Fabric:
    """Return the fabric of a graph; levels are named by `spec.levels`, else by the kinds of switches, else tier-1 ...

    Outer tiers that join nothing more (one core over one pod) are kept where names for them are given, and left out
    otherwise. Switches that lead to no node are left out; a node without a switch is a root of its own.
    Raises InputError where the number of names in `spec.levels` fits no reading of the graph, a link has an unknown
    end, or a switch and a node share a name. Costs about a second for 10,000 nodes with eight rails.
    """
    _check_ends(spec, nodes)
    names = sorted(node.name for node in nodes)
    if not names:
        return Fabric(levels=spec.all_levels, paths={}, separate_roots=spec.separate_roots, spec=spec)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((a, b, {"total": bundle.total_gbps}) for (a, b), bundle in bundles(spec.links).items())
    root = _component_of(graph, names)
    layers = _layers(graph, names, unknown_mark(graph))
    levels, layers = _named(layers, spec, root)
    separate = len(set(root.values())) > 1
    if separate and layers and not _joins_all(layers[0], root):
        levels, layers = (_unused(COMPONENT_LEVEL, levels), *levels), [_component_layer(root), *layers]
    paths, switches = _paths(names, layers)
    return Fabric(
        levels=(*levels, NODE_LEVEL),
        paths=paths,
        separate_roots=separate or spec.separate_roots,
        spec=spec,
        spec_nodes=nodes,
        switches=switches,
        uplinks=_uplinks(graph, paths, switches),
    )


def _check_ends(spec: FabricSpec, nodes: Sequence[Node]) -> None:
    names = {node.name for node in nodes}
    switches = {switch.name for switch in spec.switches}
    if both := sorted(names & switches):
        raise InputError(f"{both[0]!r} is a switch and a node", way_out="names of both must differ")
    for node in nodes:
        if node.path:
            raise InputError(
                f"node {node.name!r} has a path though the fabric is a graph",
                way_out="leave `path` empty, or `fabric.switches`",
            )
    for i, link in enumerate(spec.links):
        for end in (link.a, link.b):
            if end not in names and end not in switches:
                raise InputError(
                    f"link end {end!r} is neither a switch nor a node",
                    place=f"fabric.links.{i}",
                    way_out="add it, or remove the link",
                )


def _component_of(graph: nx.Graph[str], names: Sequence[str]) -> dict[str, str]:
    """Return for each node the first name among the nodes that links connect it to."""
    known = set(names)
    parts = (known.intersection(part) for part in nx.connected_components(graph))
    return {name: first for part in parts if part for first in [min(part)] for name in part}


def _layers(graph: nx.Graph[str], names: Sequence[str], mark: str) -> list[list[_Group]]:
    """Return the groups of each tier, outermost first, without the nodes."""
    tiers = [set(tier) for tier in nx.bfs_layers(graph, names)]
    below = [_Group(name, (name,), (name,)) for name in names]
    layers: list[list[_Group]] = []
    for tier in tiers[1:]:
        parents = {g.name: frozenset(s for end in g.ends for s in graph[end] if s in tier) for g in below}
        if layers:  # units keep to equal sets of leaves
            parents = _merged(_without_joining_nothing(parents))
        if not any(parents.values()):
            break
        below = _joined(below, parents, mark)
        layers.insert(0, below)
    return layers


def _joined(groups: Sequence[_Group], parents: Mapping[str, frozenset[str]], mark: str) -> list[_Group]:
    """Join groups of equal parents; one that has none goes up alone under a name of its own."""
    members: dict[tuple[str, ...], list[_Group]] = {}
    for group in groups:
        members.setdefault(tuple(sorted(parents[group.name])) or (mark + group.name,), []).append(group)
    layer: list[_Group] = []
    used: set[str] = set()
    for key, parts in sorted(members.items()):
        name = _name(key, used)
        used.add(name)
        nodes = tuple(sorted(node for part in parts for node in part.nodes))
        layer.append(_Group(name, nodes, key if parents[parts[0].name] else ()))
    return layer


def _without_joining_nothing(parents: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the sets without switches over one group only, wherever another switch remains (rule 1 above)."""
    below: dict[str, int] = {}
    for switches in parents.values():
        for switch in switches:
            below[switch] = below.get(switch, 0) + 1
    return {group: frozenset(s for s in switches if below[s] > 1) or switches for group, switches in parents.items()}


def _merged(parents: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Return the sets with each one that holds more than half of exactly one whole set replaced by it (rule 2)."""
    whole_with: dict[str, list[frozenset[str]]] = {}
    meant: dict[frozenset[str], frozenset[str]] = {}
    for switches in sorted(set(parents.values()), key=lambda s: (-len(s), sorted(s))):
        near = whole_with.get(min(switches), []) if switches else []
        wholes = [whole for whole in near if switches < whole and 2 * len(switches) > len(whole)]
        meant[switches] = wholes[0] if len(wholes) == 1 else switches
        if meant[switches] is switches:
            for switch in switches:
                whole_with.setdefault(switch, []).append(switches)
    return {group: meant[switches] for group, switches in parents.items()}


def _name(switches: Sequence[str], used: set[str]) -> str:
    """Return the switch's name; for several the first and how many more, or all of them if that is taken."""
    name = switches[0] if len(switches) == 1 else f"{switches[0]}+{len(switches) - 1}"
    if name in used:
        name = "+".join(switches)
    while name in used:
        name += "+"
    return name


def _named(
    layers: list[list[_Group]], spec: FabricSpec, root: Mapping[str, str]
) -> tuple[tuple[str, ...], list[list[_Group]]]:
    """Return the level names and the layers they name: all, or without outer ones that join nothing more."""
    spare = 0
    while spare + 1 < len(layers) and _joins_all(layers[spare + 1], root):
        spare += 1
    if spec.levels:
        least, most = len(layers) - spare, len(layers)
        if not least <= len(spec.levels) <= most:
            raise InputError(
                f"{len(spec.levels)} level names ({' > '.join(spec.levels)}) for a graph of "
                f"{f'{least} to {most}' if spare else most} tiers",
                place="fabric.levels",
                way_out="give one name per tier of switches, outermost first, or none",
            )
        return spec.levels, layers[most - len(spec.levels) :]
    kind_of = {switch.name: switch.kind for switch in spec.switches}
    for skip in range(spare + 1):
        kinds = [kind for layer in layers[skip:] for kind in sorted({kind_of[s] for g in layer for s in g.ends})]
        # As many different kinds as tiers, none twice: each tier has exactly one.
        if len(kinds) == len(set(kinds)) == len(layers) - skip and not {"switch", NODE_LEVEL}.intersection(kinds):
            return tuple(kinds), layers[skip:]
    return tuple(f"tier-{i}" for i in range(1, len(layers) - spare + 1)), layers[spare:]


def _joins_all(layer: Sequence[_Group], root: Mapping[str, str]) -> bool:
    """Return whether everything that is connected at all is one group of this layer."""
    return len(layer) == len(set(root.values()))


def _component_layer(root: Mapping[str, str]) -> list[_Group]:
    members: dict[str, list[str]] = {}
    for name, first in sorted(root.items()):
        members.setdefault(first, []).append(name)
    return [_Group(f"{COMPONENT_LEVEL}-{i}", tuple(nodes), ()) for i, nodes in enumerate(members.values(), start=1)]


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "+"
    return name


def _paths(
    names: Sequence[str], layers: Sequence[Sequence[_Group]]
) -> tuple[dict[str, Path], dict[Path, tuple[str, ...]]]:
    """Return the full path of each node, and the switches of each domain that has some."""
    above: dict[str, Path] = dict.fromkeys(names, ())
    switches: dict[Path, tuple[str, ...]] = {}
    for layer in layers:
        for group in layer:
            path = (*above[group.nodes[0]], group.name)
            if group.ends:
                switches[path] = group.ends
            above.update(dict.fromkeys(group.nodes, path))
    return {name: (*path, name) for name, path in above.items()}, switches


def _uplinks(
    graph: nx.Graph[str], paths: Mapping[str, Path], switches: Mapping[Path, tuple[str, ...]]
) -> dict[Path, int]:
    """Return each domain's bandwidth to the switches of the domain around it, Gbit/s."""
    found: dict[Path, int] = {}
    for path, ends in {**switches, **{path: (name,) for name, path in paths.items()}}.items():
        outer = set(switches.get(path[:-1], ()))
        if total := sum(graph[a][b]["total"] for a in ends for b in graph[a] if b in outer):
            found[path] = total
    return found
