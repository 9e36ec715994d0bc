"""Exact whole numbers from the quantities that people and clusters write: milli-CPU, bytes, seconds."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation

from kant_opt.errors import InputError

MILLI = 1000
MIB = 1 << 20

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_SMALL = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)([A-Za-z]{0,2})\Z", re.ASCII)
_LARGEST = 1 << 62  # sums of two still fit in 64 bits
_EXACT = Context(prec=100)  # 64 digits times a unit of 19


def quantity(text: str) -> Decimal:
    """Return the exact value of a Kubernetes quantity.

    Raises InputError on anything else and on values of 2**62 and more.

    >>> quantity("223500m"), quantity("2Ki"), quantity("1e3")
    (Decimal('223.500'), Decimal('2048'), Decimal('1E+3'))
    """
    match = _QUANTITY.match(text.strip()[:64])
    if not match:
        raise InputError(f"{text[:64]!r} is not a quantity", way_out="write e.g. '8', '1500m', '64Gi'")
    number, suffix = match.groups()
    scale = _BINARY.get(suffix) or _DECIMAL.get(suffix) or _SMALL.get(suffix)
    if scale is None:
        raise InputError(f"{text!r} has the unknown unit {suffix!r}", way_out="use m, k, M, G, Ki, Mi, Gi")
    try:
        value = _EXACT.multiply(Decimal(number), Decimal(scale))
    except InvalidOperation:
        raise InputError(f"{text!r} is not a quantity") from None
    if abs(value) >= _LARGEST:
        raise InputError(f"{text!r} is too large", way_out="values stay below 2**62")
    return value


def whole(value: Decimal, *, up: bool = False) -> int:
    """Return `value` as an int, rounded down (capacities) or up (requests) where it has a fraction."""
    return int(value.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))


def milli_cpu(text: str, *, up: bool = False) -> int:
    """Return thousandths of a CPU: '223500m' -> 223500, '8' -> 8000."""
    return whole(quantity(text) * MILLI, up=up)


def num_bytes(text: str, *, up: bool = False) -> int:
    """Return bytes: '64Gi' -> 68719476736."""
    return whole(quantity(text), up=up)


def format_bytes(value: int) -> str:
    """Return a short reading of bytes: 68719476736 -> '64 GiB'."""
    for suffix, scale in reversed(_BINARY.items()):
        if value >= scale:
            text = f"{value / scale:.1f}".removesuffix(".0")
            return f"{text} {suffix}B"
    return f"{value} B"
