"""`topology.conf` (tree, block, ring) and what `scontrol show topology` says of it: nodes to paths of domains."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kant_opt.errors import InputError
from kant_opt.io.slurm.hostlist import Allowance, expand

SIGNATURE = re.compile(r"^[ \t]*(?:SwitchName|BlockName|BlockSizes|RingName)[ \t]*=", re.MULTILINE | re.IGNORECASE)
"""Finds one line of a topology in a text."""
PRINTED = re.compile(r"^SwitchName=\S+ Level=|^BlockName=\S+ BlockIndex=", re.MULTILINE)
"""Finds one line of `scontrol show topology`."""

DEEPEST = 32
"""Levels of switches that are read; real trees have two to four."""

_PAIR = re.compile(r"\s*([A-Za-z]\w*)[ \t]*=[ \t]*(\"[^\"]*\"|(?!\w+[ \t]*=)\S*)", re.ASCII)
_KEYS = frozenset(
    (
        *("switchname", "switches", "nodes", "linkspeed", "level"),
        *("blockname", "blocksizes", "blockindex", "blocksize", "aggregatedblock", "ringname"),
    )
)
_COMMENTED_OUT = re.compile(r"^[ \t]*#[ \t]*(?:Block|Switch)Name=(\S+)[ \t]", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Topology:
    """Where nodes hang, outermost level first."""

    levels: tuple[str, ...] = ()
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Node -> its domain on each level, in the order of the file."""
    separate_roots: bool = False
    kind: str = "flat"
    """tree, block, ring or flat."""
    notes: tuple[str, ...] = ()

    def with_notes(self, notes: tuple[str, ...]) -> Topology:
        """Return it with further notes in front of its own."""
        return replace(self, notes=(*notes, *self.notes))

    @property
    def inner_level(self) -> str | None:
        """Return the innermost level above the nodes."""
        return self.levels[-1] if self.levels else None


def read_topology(text: str, place: str) -> Topology:
    """Return the topology in a text, in the syntax of `topology.conf` or as `scontrol show topology` prints it.

    Raises InputError with the line for what Slurm would refuse too, and for graphs that are no tree.
    """
    lines = list(_lines(text, place))
    kinds = sorted({kind for _, entry in lines for kind in ("switch", "block", "ring") if f"{kind}name" in entry})
    if len(kinds) > 1:
        raise InputError(f"both {kinds[0]} and {kinds[1]} lines", place=place, way_out="keep one kind of topology")
    hidden = _COMMENTED_OUT.findall(text)
    notes = (f"{place}: {len(hidden)} commented out: {', '.join(hidden[:5])}",) if hidden else ()
    if not kinds:
        raise InputError(
            "no switch, block or ring is defined" + (f", {len(hidden)} are commented out" if hidden else ""),
            place=place,
            way_out="add SwitchName= or BlockName= lines",
        )
    return read_entries(kinds[0], lines).with_notes(notes)


Entry = dict[str, str]
Lines = list[tuple[str, Entry]]  # each with its place


def read_entries(kind: str, lines: Lines) -> Topology:
    """Return the topology of the lines of a kind (switch, block or ring), keys in lower case as in topology.conf."""
    readers = {"switch": _tree, "block": _blocks, "ring": _rings}
    return readers[kind](lines)


def _lines(text: str, place: str) -> Iterator[tuple[str, Entry]]:
    """Yield the entries line by line: comments cut, continued lines joined, keys in lower case."""
    waiting, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(?<!\\)#.*", "", raw).rstrip()
        start = start if waiting else number
        if line.endswith("\\"):
            waiting += line[:-1]
            continue
        if line := (waiting + line).strip():
            where = f"{place}: line {start}"
            yield where, _entry(line, where)
        waiting = ""
    if waiting.strip():
        yield f"{place}: line {start}", _entry(waiting.strip(), f"{place}: line {start}")


def _entry(line: str, where: str) -> Entry:
    entry: Entry = {}
    end = 0
    while end < len(line):
        match = _PAIR.match(line, end)
        if match is None:
            raise InputError(f"{line[end:].strip()[:40]!r} is not key=value", place=where, way_out="correct it")
        key, value = match[1].lower(), match[2].strip('"')
        if key not in _KEYS:
            raise InputError(
                f"unknown key {match[1]!r}",
                place=where,
                way_out="known are SwitchName, Switches, Nodes, LinkSpeed, BlockName, BlockSizes, RingName",
            )
        if key in entry:
            raise InputError(f"{match[1]} occurs twice in a line", place=where, way_out="join the two lists")
        entry[key] = value
        end = match.end()
    return entry


def _by_name(lines: Lines, key: str) -> dict[str, tuple[str, Entry]]:
    found: dict[str, tuple[str, Entry]] = {}
    for where, entry in lines:
        if (name := entry.get(key)) is None:
            continue
        if not name:
            raise InputError(f"{key} is empty", place=where, way_out="name it")
        if name in found:
            raise InputError(
                f"{key.removesuffix('name')} {name!r} is defined twice",
                place=where,
                way_out=f"the first is on {found[name][0].rpartition(': ')[2]}; keep one",
            )
        found[name] = (where, entry)
    return found


def _owners(lists: Iterable[tuple[str, str, str]], what: str) -> dict[str, str]:
    """Return node -> the one domain that lists it; `lists` holds (domain, hostlist, place)."""
    owner: dict[str, str] = {}
    allowance = Allowance()
    for domain, hosts, where in lists:
        for node in allowance.expand(hosts, where):
            if node in owner and owner[node] != domain:
                raise InputError(
                    f"node {node!r} is in {what} {owner[node]!r} and in {domain!r}",
                    place=where,
                    way_out=f"a node has one {what}; give fabrics with several rails as a graph",
                )
            owner[node] = domain
    return owner


# --- tree

_TREE_NAMES = ("leaf", "spine", "core")


def _level_names(depth: int) -> tuple[str, ...]:
    """Return names from outermost to innermost: leaf, spine and core from below, then tier-4 and so on."""
    names = [*_TREE_NAMES[:depth], *(f"tier-{n}" for n in range(4, depth + 1))]
    return tuple(reversed(names))


def _tree(lines: Lines) -> Topology:
    """Read a tree of switches.

    A switch's level is its height: 0 for one with nodes, else one more than its highest child, as Slurm counts. Where
    a branch is shorter than another, the topmost switch of the missing levels stands in for itself there, so that
    every domain holds just the nodes below it.
    """
    switches = _by_name(lines, "switchname")
    children: dict[str, tuple[str, ...]] = {}
    parent: dict[str, str] = {}
    for name, (where, entry) in switches.items():
        children[name] = expand(entry.get("switches", ""), where)
        if entry.get("switches") and entry.get("nodes") and "level" not in entry:
            raise InputError(f"switch {name!r} has both Switches and Nodes", place=where, way_out="keep one of them")
        for child in children[name]:
            if child not in switches:
                raise InputError(
                    f"switch {name!r} names the switch {child!r}, which is not defined",
                    place=where,
                    way_out=f"add a line SwitchName={child}",
                )
            if child in parent:
                raise InputError(
                    f"switch {child!r} is below {parent[child]!r} and below {name!r}",
                    place=where,
                    way_out="a tree gives each switch one parent; give other fabrics as a graph",
                )
            parent[child] = name
    heights = _heights(children, parent, switches)
    leaves = [(n, e.get("nodes", ""), w) for n, (w, e) in switches.items() if not children[n]]
    leaf_of = _owners(leaves, "switch")
    used = set(leaf_of.values())
    chains = {leaf: _chain(leaf, parent) for leaf in sorted(used)}
    depth = max((heights[chain[-1]] for chain in chains.values()), default=-1) + 1
    if depth > DEEPEST:
        raise InputError(f"{depth} levels of switches", place=lines[0][0], way_out=f"at most {DEEPEST} are read")
    filled = {leaf: _filled(chain, heights, depth) for leaf, chain in chains.items()}
    return Topology(
        levels=_level_names(depth),
        paths={node: filled[leaf] for node, leaf in leaf_of.items()},
        separate_roots=len({chain[-1] for chain in chains.values()}) > 1,
        kind="tree",
    )


def _heights(
    children: Mapping[str, tuple[str, ...]], parent: Mapping[str, str], switches: Mapping[str, tuple[str, Entry]]
) -> dict[str, int]:
    """Return switch -> height, from the leaves up without recursion; what is never reached lies on a cycle."""
    waiting = {name: len(below) for name, below in children.items()}
    ready = [name for name, left in waiting.items() if not left]
    heights = dict.fromkeys(ready, 0)
    for name in ready:  # grows while it is walked
        if (up := parent.get(name)) is None:
            continue
        heights[up] = max(heights.get(up, 0), heights[name] + 1)
        waiting[up] -= 1
        if not waiting[up]:
            ready.append(up)
    if stuck := sorted(name for name, left in waiting.items() if left):
        raise InputError(
            f"switches {', '.join(map(repr, stuck[:3]))} are below themselves",
            place=switches[stuck[0]][0],
            way_out="break the cycle",
        )
    return heights


def _chain(leaf: str, parent: Mapping[str, str]) -> list[str]:
    chain = [leaf]
    while (up := parent.get(chain[-1])) is not None:
        chain.append(up)
    return chain


def _filled(chain: list[str], heights: Mapping[str, int], depth: int) -> tuple[str, ...]:
    """Return one switch per level, outermost first; on a level that the branch skips, the next one below it."""
    path: list[str] = []
    for height in range(depth):
        at = [name for name in chain if heights[name] <= height]
        path.append(at[-1])
    return tuple(reversed(path))


# --- blocks and rings


def _blocks(lines: Lines) -> Topology:
    """Read blocks. Each larger size of BlockSizes is an outer level that joins 2, 4, 8, ... neighbours of the file.

    A size whose aggregate would hold all blocks tells nothing and makes no level. Levels are called `block` and
    `block-<size>`. Lines that scontrol prints for aggregates are not needed and passed over.
    """
    blocks = _by_name(lines, "blockname")
    block_of = _owners(((n, e.get("nodes", ""), w) for n, (w, e) in blocks.items()), "block")
    sizes_at = [(where, entry["blocksizes"]) for where, entry in lines if "blocksizes" in entry]
    if len(sizes_at) > 1:
        raise InputError("BlockSizes is given twice", place=sizes_at[1][0], way_out="keep one")
    held = dict.fromkeys(blocks, 0)
    for block in block_of.values():
        held[block] += 1
    joined = _joined(*sizes_at[0], held, blocks) if sizes_at else []
    joined = [(size, factor) for size, factor in joined if factor < len(blocks)]
    order = list(blocks)
    outer = {
        block: tuple(_aggregate_name(order, i // factor * factor, factor) for _, factor in joined)
        for i, block in enumerate(order)
    }
    return Topology(
        levels=(*(f"block-{size}" for size, _ in joined), "block"),
        paths={node: (*outer[block], block) for node, block in block_of.items()},
        kind="block",
    )


def _aggregate_name(order: list[str], first: int, factor: int) -> str:
    last = min(first + factor, len(order)) - 1
    return order[first] if first == last else f"{order[first]}..{order[last]}"


def _joined(
    where: str, text: str, held: Mapping[str, int], blocks: Mapping[str, tuple[str, Entry]]
) -> list[tuple[int, int]]:
    """Return (size, number of base blocks) of every size above the base, largest first."""
    pieces = text.split(",")
    if not all(piece.isascii() and piece.isdigit() and 0 < int(piece) < 10**7 for piece in pieces):
        raise InputError(f"BlockSizes={text[:40]}", place=where, way_out="write positive numbers of nodes, e.g. 16,32")
    base, *larger = sizes = [int(piece) for piece in pieces]
    for name, count in held.items():
        if count < base:
            raise InputError(
                f"block {name!r} holds {count} nodes, fewer than the base size {base}",
                place=blocks[name][0],
                way_out="lower BlockSizes or comment the block out",
            )
    factors = [size // base for size in larger]
    if sizes != sorted(set(sizes)) or any(s % base or (s // base) & (s // base - 1) for s in larger):
        raise InputError(
            f"BlockSizes={text[:40]}", place=where, way_out=f"each size is {base} times a power of two, smallest first"
        )
    return sorted(zip(larger, factors, strict=True), reverse=True)


def _rings(lines: Lines) -> Topology:
    """Read rings as domains; that neighbours on a ring are nearer than others is not kept."""
    rings = _by_name(lines, "ringname")
    ring_of = _owners(((n, e.get("nodes", ""), w) for n, (w, e) in rings.items()), "ring")
    return Topology(
        levels=("ring",),
        paths={node: (ring,) for node, ring in ring_of.items()},
        kind="ring",
        notes=("the order of nodes on their ring is not kept",),
    )
