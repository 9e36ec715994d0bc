"""From the fabric as data to the fabric with its domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric.fabric import Fabric, Path
from kant_opt.schema import FabricSpec, Node


def build_fabric(spec: FabricSpec, nodes: Sequence[Node]) -> Fabric:
    """Return the fabric that `spec` and the paths of `nodes` describe.

    A path entry that is None becomes a domain that holds this node only, and so does everything below it.
    Raises InputError where two nodes share a name, a path does not fit the levels, or a link leads nowhere.
    Costs about a second for 100,000 nodes.

    >>> spec = FabricSpec(levels=("leaf",))
    >>> fabric = build_fabric(spec, [Node(name="n1", path=("a",)), Node(name="n2", path=(None,))])
    >>> fabric.domains("leaf")
    (('?n2',), ('a',))
    """
    _check_names(nodes)
    if spec.is_graph:
        from kant_opt.fabric.derive import derive_levels  # NetworkX loads only where a graph is asked

        return derive_levels(spec, nodes)
    for node in nodes:
        if len(node.path) != len(spec.levels):
            raise InputError(
                f"node {node.name!r} has {len(node.path)} path entries for {len(spec.levels)} levels "
                f"({' > '.join(spec.levels) or 'none'})",
                way_out="give one entry per level, null where unknown",
            )
    mark = unknown_mark(part for node in nodes for part in node.path if part is not None)
    paths = {node.name: _full_path(node, mark) for node in nodes}
    return Fabric(
        levels=spec.all_levels,
        paths=paths,
        separate_roots=spec.separate_roots,
        spec=spec,
        spec_nodes=nodes,
        uplinks=_uplinks(spec, paths) if spec.links else {},
    )


def unknown_mark(given: Iterable[str]) -> str:
    """Return the shortest run of question marks that starts none of the `given` names.

    Put in front of a name it makes one that no given name can equal.
    """
    most = 0
    for name in given:
        if name.startswith("?"):
            most = max(most, len(name) - len(name.lstrip("?")))
    return "?" * (most + 1)


def _full_path(node: Node, mark: str) -> Path:
    return (*(mark + node.name if part is None else part for part in node.path), node.name)


def _check_names(nodes: Sequence[Node]) -> None:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise InputError(f"two nodes are called {node.name!r}", way_out="names must differ")
        seen.add(node.name)


def _uplinks(spec: FabricSpec, paths: Mapping[str, Path]) -> dict[Path, int]:
    """Return the bandwidth upwards of the domains that `spec.links` names; bundles of one domain add up."""
    named: dict[str, list[Path]] = {}
    domains = {path[:depth] for path in paths.values() for depth in range(1, len(path) + 1)}
    for domain in sorted(domains):
        named.setdefault("/".join(domain), []).append(domain)
    total: dict[Path, int] = {}
    for i, link in enumerate(spec.links):
        place = f"fabric.links.{i}.a"
        found = named.get(link.a)
        if not found:
            raise UnknownName("domain", link.a, named, place=place)
        if len(found) > 1:
            raise InputError(
                f"{link.a!r} may mean {len(found)} domains, since names contain '/'",
                place=place,
                way_out="rename the domains without '/'",
            )
        total[found[0]] = total.get(found[0], 0) + link.gbps * link.links
    return total
