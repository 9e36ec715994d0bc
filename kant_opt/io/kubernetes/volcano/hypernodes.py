"""HyperNodes: a forest of named domains over the nodes, one tier above another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from kant_opt.io.kubernetes.levels import Family, Labels
from kant_opt.io.kubernetes.selection import labels_match
from kant_opt.io.objects import Notes, Object
from kant_opt.schema import NODE_LEVEL

_MOST_REPEATS = 3
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_REPEAT = re.compile(r"(?<![\\(])[*+?{]")


class _HyperNode:
    def __init__(self, item: Object) -> None:
        self.item, self.name, spec = item, item.child("metadata").required("name"), item.child("spec")
        tier = spec.integer("tier")
        if tier is None or tier < 0:
            raise spec.fault("tier", "missing" if tier is None else f"{tier} is below 0", "number tiers from 0 or 1")
        self.tier, self.tier_name = tier, spec.text("tierName")
        self.members = list(spec.children("members"))


class HyperNodes:
    """The forest, as labels that each node would carry: one key per tier.

    Raises InputError where a node or HyperNode has two parents, or a member's tier is not below its parent's.
    """

    def __init__(self, items: Sequence[Object], nodes: Mapping[str, Labels], notes: Notes) -> None:
        self._all = {h.name: h for h in map(_HyperNode, items)}
        self._parent: dict[str, str] = {}
        self._home: dict[str, str] = {}
        for hyper in self._all.values():
            self._take_members(hyper, nodes, notes)
        self.tiers = sorted({h.tier for h in self._all.values()}, reverse=True)
        self._level = self._level_names()

    @property
    def family(self) -> Family:
        """The tiers as a family of labels, outermost first."""
        return Family("HyperNodes", tuple((_key(tier), self._level[tier]) for tier in self.tiers))

    def labels(self, node: str) -> Labels:
        """Return the HyperNode above a node on each tier; where a tier is skipped, the one below stands in for it."""
        if (home := self._home.get(node)) is None:
            return {}
        chain = [home]
        while (up := self._parent.get(chain[-1])) is not None:
            chain.append(up)
        found: Labels = {}
        for tier in self.tiers:
            if at := [name for name in chain if self._all[name].tier <= tier]:
                found[_key(tier)] = at[-1]
        return found

    def level(self, tier: int | None, tier_name: str) -> str | None:
        """Return the outermost level that a highest tier allows, by number or name; None where it is not among them."""
        if tier_name:
            return next((self._level[h.tier] for h in self._all.values() if h.tier_name == tier_name), None)
        return next((self._level[t] for t in self.tiers if tier is not None and t <= tier), None)

    def _take_members(self, hyper: _HyperNode, nodes: Mapping[str, Labels], notes: Notes) -> None:
        for member in hyper.members:
            kind = member.required("type")
            if kind == "Node":
                names, of = _select(member, nodes, notes, hyper.name), self._home
            elif kind == "HyperNode":
                known = dict.fromkeys(self._all, Labels())
                names, of = _select(member, known, notes, hyper.name), self._parent
            else:
                raise member.fault("type", f"unknown type {kind[:40]!r}", "use Node or HyperNode")
            for name in names:
                if (before := of.get(name, hyper.name)) != hyper.name:
                    raise member.fault(
                        "selector",
                        f"{kind} {name!r} is in the HyperNodes {before!r} and {hyper.name!r}",
                        "give each member one parent",
                    )
                if kind == "HyperNode" and self._all[name].tier >= hyper.tier:
                    raise member.fault(
                        "selector",
                        f"{name!r} of tier {self._all[name].tier} is below {hyper.name!r} of tier {hyper.tier}",
                        "tiers grow from the nodes outwards",
                    )
                of[name] = hyper.name

    def _level_names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for tier in self.tiers:
            told = {h.tier_name for h in self._all.values() if h.tier == tier and h.tier_name}
            name = told.pop() if len(told) == 1 else f"tier-{tier}"
            names[tier] = f"tier-{tier}" if name == NODE_LEVEL or name in names.values() else name
        return names


def _key(tier: int) -> str:
    return f"topology.volcano.sh/tier-{tier}"


def _select(member: Object, known: Mapping[str, Labels], notes: Notes, of: str) -> Iterator[str]:
    """Yield the members that a selector picks of the known names; one is given of exact, regex and label match."""
    selector = member.child("selector")
    ways = [way for way in ("exactMatch", "regexMatch", "labelMatch") if way in selector]
    if len(ways) != 1:
        raise member.fault("selector", f"{len(ways)} ways to match", "give one: exactMatch, regexMatch or labelMatch")
    match = selector.child(ways[0])
    if ways == ["exactMatch"]:
        name = match.required("name")
        if name in known:
            yield name
        else:
            notes.add("members of HyperNodes that are not in the files", f"{of}: {name}")
        return
    if ways == ["labelMatch"] and member.text("type") != "Node":
        raise member.fault("selector.labelMatch", "labels match nodes only", "use exactMatch or regexMatch")
    picks: Callable[[str], bool]
    if ways == ["regexMatch"]:
        pattern = _pattern(match)
        picks = lambda name: pattern.search(name) is not None  # noqa: E731 - two forms of one thing
    else:
        picks = lambda name: labels_match(match, known[name])  # noqa: E731
    yield from filter(picks, known)


def _pattern(match: Object) -> re.Pattern[str]:
    """Return the compiled pattern; those that could take for ever on a name (not so in Go) are refused."""
    text = match.required("pattern")
    if len(text) > 256 or _REPEATED_GROUP.search(text) or len(_REPEAT.findall(text)) > _MOST_REPEATS:
        raise match.fault(
            "pattern",
            f"{text[:40]!r} is too involved",
            f"use at most {_MOST_REPEATS} of * + ? {{n}}, none after a group",
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise match.fault("pattern", f"{text[:40]!r} is no regular expression ({error})", "correct it") from None
