"""The neutral integer program: variables, named rows, objective levels. It knows no solver and no placement."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple


class Sense(Enum):
    """How a row's left side compares with its right side."""

    LE = "<="
    GE = ">="
    EQ = "="


@dataclass(frozen=True)
class Level:
    """One objective level: terms x values + constant, to be maximised or minimised."""

    name: str
    terms: Mapping[int, int]
    constant: int
    sense: Literal["max", "min"]


class Stats(NamedTuple):
    """The size of a program."""

    variables: int
    rows: int
    nonzeros: int


class Program:
    """Integer (or continuous) variables with bounds, linear rows in whole numbers, and objective levels in order.

    Variables are known by their index. Rows lie one behind another: row r has the columns
    `columns[starts[r] : starts[r + 1]]` with `coefficients` beside them. Every variable and row belongs to the part
    (constraint) that was current when it was added, see `part`. A million coefficients take about a second.

    >>> program = Program()
    >>> x, y = program.var("x", 0, 3), program.var("y", 0, 3)
    >>> with program.part("capacity"):
    ...     _ = program.row("room", {x: 2, y: 1}, Sense.LE, 5)
    >>> program.level("value", {x: 3, y: 2}, 0, "max")
    >>> program.broken_parts([3, 3]), program.cost([1, 3])
    ({'capacity'}, {'value': 9})
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lower, self.upper = array("q"), array("q")
        self.integer = bytearray()
        self.row_names: list[str] = []
        self.senses: list[Sense] = []
        self.rhs = array("q")
        self.starts = array("q", [0])
        self.columns, self.coefficients = array("q"), array("q")
        self.levels: list[Level] = []
        self._part = ""
        self._var_parts: list[str] = []
        self._row_parts: list[str] = []

    # -- building --------------------------------------------------------------------------------

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Within it, variables and rows added belong to the constraint `name`."""
        before, self._part = self._part, name
        try:
            yield
        finally:
            self._part = before

    def var(self, name: str, lower: int, upper: int, *, integer: bool = True) -> int:
        """Add a variable and return its index. Both bounds count: nothing here is unbounded."""
        self.names.append(name)
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        self._var_parts.append(self._part)
        return len(self.names) - 1

    def row(self, name: str, terms: Mapping[int, int], sense: Sense, rhs: int) -> int:
        """Add `sum of terms <sense> rhs` and return the row's index."""
        self.columns.extend(terms)
        self.coefficients.extend(terms.values())
        self.starts.append(len(self.columns))
        self.row_names.append(name)
        self.senses.append(sense)
        self.rhs.append(rhs)
        self._row_parts.append(self._part)
        return len(self.row_names) - 1

    def level(self, name: str, terms: Mapping[int, int], constant: int, sense: Literal["max", "min"]) -> None:
        """Add the next objective level; an earlier level counts more than all later ones together."""
        self.levels.append(Level(name, dict(terms), constant, sense))

    # -- reading ---------------------------------------------------------------------------------

    def terms_of(self, row: int) -> Iterator[tuple[int, int]]:
        """Yield (variable, coefficient) of one row."""
        run = slice(self.starts[row], self.starts[row + 1])
        return zip(self.columns[run], self.coefficients[run], strict=True)

    def stats(self) -> Stats:
        """Return the numbers of variables, rows and coefficients."""
        return Stats(len(self.names), len(self.row_names), len(self.columns))

    def cost(self, values: Sequence[int]) -> dict[str, int]:
        """Return the value of every level, by its name."""
        return {level.name: value_of(level, values) for level in self.levels}

    def broken_parts(self, values: Sequence[int]) -> set[str]:
        """Return the parts of which a row or a variable's bound does not hold; rows outside any part count as ""."""
        return {part for part, _ in self.broken(values)}

    def broken(self, values: Sequence[int]) -> Iterator[tuple[str, str]]:
        """Yield (part, name) of every bound and row that does not hold. Costs one pass over the coefficients."""
        for i, value in enumerate(values):
            if not self.lower[i] <= value <= self.upper[i]:
                yield self._var_parts[i], self.names[i]
        columns, coefficients, start = self.columns, self.coefficients, 0
        for r, sense in enumerate(self.senses):
            end = self.starts[r + 1]
            total = sum(coefficients[i] * values[columns[i]] for i in range(start, end))
            start = end
            if not holds(total, sense, self.rhs[r]):
                yield self._row_parts[r], self.row_names[r]


def value_of(level: Level, values: Sequence[int]) -> int:
    """Return the value of one level."""
    return level.constant + sum(c * values[i] for i, c in level.terms.items())


def holds(total: int, sense: Sense, rhs: int) -> bool:
    """Return whether `total <sense> rhs`."""
    if sense is Sense.LE:
        return total <= rhs
    return total >= rhs if sense is Sense.GE else total == rhs
