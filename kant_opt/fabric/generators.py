"""Fabrics of regular shape, made from a few numbers.

Each generator returns what a request needs: the fabric as data and its nodes. Names carry leading zeros, so that they
sort as they count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from kant_opt.errors import InputError
from kant_opt.registry import Registry
from kant_opt.schema import FabricSpec, Link, Node, Switch, parse

Generated = tuple[FabricSpec, tuple[Node, ...]]

GENERATORS: Registry[Callable[..., Generated]] = Registry("fabric generator")

MOST_NODES = 1_000_000


@GENERATORS.register("leaf-spine")
def leaf_spine(*, leaves: int, nodes_per_leaf: int, spines: int = 1, gpus: int = 8, pool: str = "default") -> Generated:
    """Return `spines` spine groups of `leaves` leaves each, levels spine > leaf.

    >>> spec, nodes = leaf_spine(spines=2, leaves=2, nodes_per_leaf=4)
    >>> spec.levels, len(nodes), nodes[-1].path
    (('spine', 'leaf'), 16, ('spine-2', 'leaf-4'))
    """
    _check_sizes(spines=spines, leaves=leaves, nodes_per_leaf=nodes_per_leaf)
    paths = _paths(("spine", spines), ("leaf", leaves))
    return _tree(("spine", "leaf"), paths, [nodes_per_leaf] * len(paths), gpus=gpus, pool=pool)


@GENERATORS.register("fat-tree")
def fat_tree(
    *, cores: int, spines: int, leaves: int, nodes_per_leaf: int, gpus: int = 8, pool: str = "default"
) -> Generated:
    """Return three tiers, core > spine > leaf: `spines` groups per core group, `leaves` leaves per spine group.

    >>> spec, nodes = fat_tree(cores=2, spines=2, leaves=2, nodes_per_leaf=1)
    >>> [node.path for node in nodes][::3]
    [('core-1', 'spine-1', 'leaf-1'), ('core-1', 'spine-2', 'leaf-4'), ('core-2', 'spine-4', 'leaf-7')]
    """
    _check_sizes(cores=cores, spines=spines, leaves=leaves, nodes_per_leaf=nodes_per_leaf)
    paths = _paths(("core", cores), ("spine", spines), ("leaf", leaves))
    return _tree(("core", "spine", "leaf"), paths, [nodes_per_leaf] * len(paths), gpus=gpus, pool=pool)


@GENERATORS.register("nvl72-racks")
def nvl72_racks(
    *,
    racks: int,
    racks_per_block: int = 8,
    nodes_per_rack: int = 18,
    gpus: int = 4,
    pool: str = "default",
) -> Generated:
    """Return racks that are one NVLink domain each (level hbd), in blocks that share switches: block > hbd.

    The last block may be smaller.

    >>> spec, nodes = nvl72_racks(racks=10)
    >>> spec.levels, sum(node.gpus for node in nodes), nodes[-1].path
    (('block', 'hbd'), 720, ('block-2', 'hbd-10'))
    """
    _check_sizes(racks=racks, nodes_per_rack=nodes_per_rack)
    _check_sizes(racks_per_block=racks_per_block)
    blocks = _names("block", -(-racks // racks_per_block))
    paths = [(blocks[i // racks_per_block], rack) for i, rack in enumerate(_names("hbd", racks))]
    return _tree(("block", "hbd"), paths, [nodes_per_rack] * racks, gpus=gpus, pool=pool)


@GENERATORS.register("irregular")
def irregular(*, leaf_sizes: Sequence[int], gpus: int = 8, pool: str = "default") -> Generated:
    """Return one spine over leaves of the given numbers of nodes, levels spine > leaf.

    >>> spec, nodes = irregular(leaf_sizes=(1, 3))
    >>> [node.path[1] for node in nodes]
    ['leaf-1', 'leaf-2', 'leaf-2', 'leaf-2']
    """
    for size in leaf_sizes:
        _check_sizes(leaf_sizes=size)
    _check_sizes(leaf_sizes=sum(leaf_sizes))
    return _tree(("spine", "leaf"), _paths(("spine", 1), ("leaf", len(leaf_sizes))), leaf_sizes, gpus=gpus, pool=pool)


@GENERATORS.register("rail-optimised")
def rail_optimised(
    *,
    units: int,
    nodes_per_unit: int,
    spines: int,
    rails: int = 8,
    gpus: int = 8,
    links_per_spine: int = 1,
    gbps: int = 400,
    pool: str = "default",
) -> Generated:
    """Return a graph fabric: each node has a cable to each of its unit's `rails` leaves, each leaf some to each spine.

    All cables carry `gbps`, Gbit/s. The levels that follow from the graph are spine > leaf, where a leaf domain is the
    unit of nodes on the same leaves.

    >>> from kant_opt.fabric import build_fabric
    >>> fabric = build_fabric(*rail_optimised(units=2, nodes_per_unit=4, spines=2))
    >>> fabric.levels, len(fabric.domains("leaf")), len(fabric.switches_of(fabric.domains("leaf")[0]))
    (('spine', 'leaf', 'node'), 2, 8)
    """
    _check_sizes(units=units, nodes_per_unit=nodes_per_unit, rails=rails)
    _check_sizes(units=units, spines=spines, rails=rails)
    _check_sizes(links_per_spine=links_per_spine)
    _check_sizes(gbps=gbps)
    above = _names("spine", spines)
    hosts = _names("node", units * nodes_per_unit)
    leaves: list[str] = []
    links: list[Link] = []
    for i, unit in enumerate(_names("leaf", units)):
        inside = hosts[i * nodes_per_unit : (i + 1) * nodes_per_unit]
        for leaf in _names(f"{unit}-rail", rails):
            leaves.append(leaf)
            links += [Link(a=end, b=leaf, gbps=gbps) for end in inside]
            links += [Link(a=leaf, b=spine, gbps=gbps, links=links_per_spine) for spine in above]
    switches = [Switch(name=name, kind="spine") for name in above] + [Switch(name=name, kind="leaf") for name in leaves]
    nodes = _nodes(hosts, [()] * len(hosts), gpus=gpus, pool=pool)
    return FabricSpec(switches=tuple(switches), links=tuple(links)), nodes


def _check_sizes(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{name} is {count!r}", way_out="it counts something: give a whole number of at least 1")
    if prod(counts.values()) > MOST_NODES:
        shown = " x ".join(f"{name} {count}" for name, count in counts.items())
        raise InputError(f"{shown} is more than {MOST_NODES} in all", way_out="make it smaller")


def _names(kind: str, count: int) -> list[str]:
    width = len(str(count))
    return [f"{kind}-{i:0{width}}" for i in range(1, count + 1)]


def _paths(*levels: tuple[str, int]) -> list[tuple[str, ...]]:
    """Return the paths of the innermost domains; each level is its name and how many of it one outer domain holds."""
    paths: list[tuple[str, ...]] = [()]
    for kind, count in levels:
        names = iter(_names(kind, len(paths) * count))
        paths = [(*path, next(names)) for path in paths for _ in range(count)]
    return paths


def _tree(
    levels: tuple[str, ...], paths: Sequence[tuple[str, ...]], sizes: Sequence[int], *, gpus: int, pool: str
) -> Generated:
    """Return a fabric of `paths`, the innermost domains, with so many nodes in each."""
    hung = [path for path, size in zip(paths, sizes, strict=True) for _ in range(size)]
    return FabricSpec(levels=levels), _nodes(_names("node", len(hung)), hung, gpus=gpus, pool=pool)


def _nodes(names: Sequence[str], paths: Sequence[tuple[str, ...]], *, gpus: int, pool: str) -> tuple[Node, ...]:
    fields = {"gpus": gpus, "pools": [pool]}
    return tuple(parse(Node, {"name": n, "path": p, **fields}) for n, p in zip(names, paths, strict=True))
