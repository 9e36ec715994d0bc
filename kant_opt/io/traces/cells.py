"""The cells of one line of a trace, asked for by column."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation

from kant_opt.errors import InputError

_LARGEST = 1 << 53
_MOST_GPUS = 10_000_000


class Cells:
    """Column -> text. What cannot be meant raises InputError, which the reader of the file gives a place."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def text(self, column: str) -> str:
        """Return the text, empty where the column is missing."""
        return self._texts.get(column, "").strip()

    def count(self, column: str) -> int:
        """Return a whole number from 0 on, such as GPUs; "8.0" is 8."""
        value = self._number(column)
        if value is None or value != value.to_integral_value() or not 0 <= value <= _MOST_GPUS:
            raise InputError(
                f"column {column!r} is {self.text(column)[:40]!r}", way_out="write a whole number from 0 on"
            )
        return int(value)

    def seconds(self, column: str, *, per_second: int = 1) -> int | None:
        """Return a duration rounded up, None where there is none; the file has `per_second` units in a second."""
        value = self._number(column)
        if value is None:
            return None
        if value < 0:
            raise InputError(f"column {column!r} is {self.text(column)[:40]!r}", way_out="write 0 or more")
        return int((value / per_second).to_integral_value(ROUND_CEILING))

    def time(self, column: str, *, per_second: int = 1) -> int | None:
        """Return a point in time in whole seconds, rounded down, None where there is none."""
        value = self._number(column)
        return None if value is None else int((value / per_second).to_integral_value(ROUND_FLOOR))

    def clock(self, column: str) -> int | None:
        """Return the seconds of a date and time such as "2017-10-09 07:01:55", read as UTC where it has no zone."""
        text = self.text(column)
        if text in ("", "None", "nan", "NaT"):
            return None
        try:
            moment = datetime.fromisoformat(text)
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            raise InputError(
                f"column {column!r} is {text[:40]!r}", way_out="write a time like 2017-10-09 07:01:55"
            ) from None

    def _number(self, column: str) -> Decimal | None:
        text = self.text(column)
        if text in ("", "None", "nan"):
            return None
        try:
            value = Decimal(text) if len(text) <= 40 else None
        except InvalidOperation:
            value = None
        if value is None or not value.is_finite() or abs(value) > _LARGEST:
            raise InputError(f"column {column!r} is {text[:40]!r}", way_out="write a number")
        return value


def needed(value: int | None, column: str) -> int:
    """Return a value that must not be missing."""
    if value is None:
        raise InputError(f"column {column!r} is empty", way_out="fill it, or leave the line out")
    return value
