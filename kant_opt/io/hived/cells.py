"""HiveD's cells: their types form a forest, physical cells are its instances down to nodes and GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kant_opt.io.objects import Notes, Object

_DEEPEST = 32


class CellTypes:
    """Each type's child and how many of it; a type without an entry is a leaf, that is a GPU model."""

    def __init__(self, types: Object) -> None:
        self._types = {name: types.child(name) for name in types.keys()}  # noqa: SIM118 - an Object is no mapping

    def child(self, kind: str) -> tuple[str, int] | None:
        """Return the child type and its number, None for a leaf."""
        if (entry := self._types.get(kind)) is None:
            return None
        number = entry.integer("childCellNumber")
        if number is None or number < 1:
            raise entry.fault("childCellNumber", "missing or below 1", "give the number of children")
        return entry.required("childCellType"), number

    def chain(self, kind: str, asker: Object) -> list[tuple[str, int]]:
        """Return the types from `kind` down to the leaf, each with the leaves in one cell of it."""
        kinds, numbers = [kind], [1]
        while (below := self.child(kinds[-1])) is not None:
            kinds.append(below[0])
            numbers.append(below[1])
            if len(kinds) > _DEEPEST:
                raise asker.fault("cellType", f"{kind!r} has over {_DEEPEST} types below it", "break the cycle")
        sizes, size = [1], 1
        for number in reversed(numbers[1:]):
            size *= number
            sizes.append(size)
        return list(zip(kinds, reversed(sizes), strict=True))

    def leaves(self, kind: str, asker: Object) -> tuple[str, int]:
        """Return the GPU model of a cell of this type and how many it holds."""
        chain = self.chain(kind, asker)
        return chain[-1][0], chain[0][1]

    def is_node(self, kind: str) -> bool:
        """Return whether a cell of this type is a node."""
        return kind in self._types and self._types[kind].flag("isNodeLevel")


class PhysicalCells:
    """The nodes, each with its GPUs and the cells above it."""

    def __init__(self, physical: Object, types: CellTypes, notes: Notes) -> None:
        self._types, self._notes = types, notes
        self.pinned: dict[str, str] = {}
        """Id of a pinned cell -> its type."""
        self._gpus: dict[str, dict[str, int]] = {}
        self._above: dict[str, tuple[str, ...]] = {}
        for i, cell in enumerate(physical.children("physicalCells")):
            kind = cell.required("cellType")
            if not any(types.is_node(k) for k, _ in types.chain(kind, cell)):
                raise cell.fault("cellType", f"{kind!r} has no node level in it", "mark one type with isNodeLevel")
            self._walk(cell, kind, (), f"{kind}/{i}")
        depth = max(map(len, self._above.values()), default=0)
        self.levels = tuple(f"cell-{n}" for n in range(depth, 0, -1))

    @property
    def nodes(self) -> Iterator[dict[str, object]]:
        """Yield every node; where cells above one are fewer than above others, the outermost fills the levels left."""
        for name, gpus in self._gpus.items():
            above = self._above[name]
            missing = len(self.levels) - len(above)
            fill: tuple[str | None, ...] = (above[0] if above else None,) * missing
            yield {"name": name, "gpus": sum(gpus.values()), "pools": tuple(gpus), "path": (*fill, *above)}

    def _walk(self, cell: Object, kind: str, above: tuple[str, ...], name: str) -> None:
        self._pin(cell, kind)
        if self._types.is_node(kind):
            self._add_node(cell, kind, above)
            return
        below = self._types.child(kind)
        children = list(cell.children("cellChildren"))
        if below is None or len(children) != below[1]:
            want = below[1] if below else 0
            raise cell.fault("cellChildren", f"{len(children)} cells in a {kind!r} of {want}", "give every child")
        for i, child in enumerate(children):
            self._walk(child, below[0], (*above, name), f"{name}/{i}")

    def _add_node(self, cell: Object, kind: str, above: tuple[str, ...]) -> None:
        address = cell.amount("cellAddress")
        model, number = self._types.leaves(kind, cell)
        told = list(cell.children("cellChildren"))
        if told and self._types.child(kind) == (model, number):
            number = len(told)
        self._pins_below(cell, kind)
        if address in self._gpus:
            self._notes.add("nodes with several kinds of GPUs, in the pools of all", address)
        gpus = self._gpus.setdefault(address, {})
        gpus[model] = gpus.get(model, 0) + number
        if len(above) >= len(self._above.get(address, ())):
            self._above[address] = above

    def _pins_below(self, cell: Object, kind: str) -> None:
        below = self._types.child(kind)
        for child in cell.children("cellChildren"):
            if below is not None:
                self._pin(child, below[0])
                self._pins_below(child, below[0])

    def _pin(self, cell: Object, kind: str) -> None:
        if pin := cell.text("pinnedCellId"):
            self.pinned[pin] = kind
