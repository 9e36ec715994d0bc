"""The fabric as data: named levels, and either a path for each node or switches and links."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from kant_opt.schema.base import NODE_LEVEL, Frozen, Name, PositiveCount, check_unique


class Switch(Frozen):
    """A switch of a fabric given as a graph."""

    name: Name
    kind: Name = "switch"
    """What it is, e.g. leaf, spine, core; a label for people. Levels are derived from the links."""


class Link(Frozen):
    """A cable bundle between two vertices, or the uplinks of one domain.

    In a graph fabric `a` and `b` are switch or node names. In a fabric given by paths, `a` is a domain's path joined
    by "/" and `b` is empty: the bundle goes to the parent domain.
    """

    a: Name
    b: str = ""
    gbps: PositiveCount = 400
    """Bandwidth of one cable, Gbit/s."""
    links: PositiveCount = 1
    """Number of cables."""


class FabricSpec(Frozen):
    """How nodes hang together. The innermost level, `node`, is implied.

    Two ways: every `Node.path` gives its domain on each level of `levels` (outermost first); or `switches` and
    `links` describe a graph, node paths stay empty and the levels are derived from it.
    """

    levels: tuple[Name, ...] = ()
    """Names from outermost to innermost, without `node`; in a graph fabric optional names for the derived levels."""
    separate_roots: bool = False
    """True: outermost domains have no link between them, so a gang never spans two unless it may span fabrics."""
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def is_graph(self) -> bool:
        """True where the fabric is given by switches and links instead of node paths."""
        return bool(self.switches)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """Level names from outermost to `node`."""
        return (*self.levels, NODE_LEVEL)

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        check_unique("level", self.levels)
        if NODE_LEVEL in self.levels:
            raise ValueError("level 'node' is implied; leave it out of `levels`")
        check_unique("switch", (s.name for s in self.switches))
        if not self.is_graph and any(link.b for link in self.links):
            raise ValueError("links between two vertices need `switches`; uplinks of a domain leave `b` empty")
        return self


class Taint(Frozen):
    """A mark that keeps away pods that do not tolerate it (Kubernetes' meaning)."""

    key: Name
    value: str = ""
    effect: str = Field(default="NoSchedule", pattern=r"^(NoSchedule|PreferNoSchedule|NoExecute)$")


class Toleration(Frozen):
    """What a pod puts up with: an empty key tolerates every taint, an empty effect every effect."""

    key: str = ""
    operator: str = Field(default="Equal", pattern=r"^(Equal|Exists)$")
    value: str = ""
    effect: str = Field(default="", pattern=r"^(|NoSchedule|PreferNoSchedule|NoExecute)$")

    def covers(self, taint: Taint) -> bool:
        """Return whether this toleration covers `taint`."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists" or (self.value == taint.value and taint.key == "")
        return self.key == taint.key and (self.operator == "Exists" or self.value == taint.value)

    @model_validator(mode="after")
    def _key_or_exists(self) -> Self:
        if not self.key and self.operator != "Exists":
            raise ValueError("a toleration without key needs operator 'Exists'")
        return self
