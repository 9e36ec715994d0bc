"""Where a command writes: paragraphs and tables on one stream, every string of them made safe here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kant_opt.cli.guard import leave_closed_pipe
from kant_opt.cli.text import safe

T = TypeVar("T")

MOST_ROWS = 50
"""Rows of a list that are shown without --all."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        self.quiet = True
        sys.exit(leave_closed_pipe())


@dataclass(frozen=True)
class Column:
    """One column of a table. `cut`: kept on one line, its end given up first where the width is short."""

    header: str
    right: bool = False
    cut: bool = False
    wrap: bool = False


class Page:
    """Text and tables to stdout, or to stderr where stdout carries data."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False, everything: bool = False) -> None:
        # Names come from files: brackets in them are not markup, colons not emoji, numbers not highlights.
        self.console = _Console(stderr=stderr, quiet=quiet, markup=False, emoji=False, highlight=False)
        self.everything = everything

    @property
    def draws(self) -> bool:
        """Whether the stream can show line-drawing characters."""
        return self.console.encoding.lower().startswith("utf")

    def say(self, text: str = "", style: str = "") -> None:
        """Write one paragraph, wrapped at words."""
        self.console.print(Text(safe(text), style=style))

    def line(self, text: str, style: str = "") -> None:
        """Write one line, however long."""
        self.console.print(Text(safe(text), style=style), soft_wrap=True)

    def heading(self, text: str) -> None:
        """Write the title of what follows, after an empty line."""
        self.console.print()
        self.say(text, "bold")

    def items(self, texts: Sequence[str]) -> None:
        """Write a list, one item a paragraph, indented."""
        for text in self.cut(texts):
            self.console.print(Padding(Text(safe(text)), (0, 0, 0, 2), expand=False))
        self.more(len(texts))

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[str]], last: Sequence[str] = ()) -> None:
        """Write a table; `last` is a row of totals."""
        table = Table(
            box=box.SIMPLE_HEAD if self.draws else box.ASCII2, show_edge=False, pad_edge=False, show_footer=bool(last)
        )
        for i, column in enumerate(columns):
            table.add_column(
                Text(safe(column.header), no_wrap=not column.wrap),
                footer=_cell(last[i], column) if last else "",
                justify="right" if column.right else "left",
                no_wrap=not (column.cut or column.wrap),
            )
        for row in self.cut(rows):
            table.add_row(*(_cell(text, column) for text, column in zip(row, columns, strict=True)))
        self.console.print(Padding(table, (0, 0, 0, 2), expand=False))
        self.more(len(rows))

    def cut(self, rows: Sequence[T]) -> Sequence[T]:
        """Return the rows that are shown."""
        return rows if self.everything else rows[:MOST_ROWS]

    def more(self, number: int) -> None:
        """Say how many of `number` rows were not shown, if any."""
        if not self.everything and number > MOST_ROWS:
            self.say(f"  ... and {number - MOST_ROWS:,} more (--all shows them)", "dim")


def emit(text: str) -> None:
    """Write a document to stdout as UTF-8, whatever the terminal's encoding: it is data."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _cell(text: str, column: Column) -> Text:
    return Text(safe(text), no_wrap=not column.wrap, overflow="ellipsis" if column.cut else "fold")


def joined(parts: Iterable[str]) -> str:
    """Return the parts that are not empty, a middle dot between them."""
    return " · ".join(part for part in parts if part)
