"""Words for people, the same on terminals and pages: names shown safely, counts, shares, durations."""

from __future__ import annotations

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def safe(text: str) -> str:
    r"""Return `text` with every character that a terminal would obey, hide or turn around written as its number.

    >>> safe("red \x1b[31m")
    'red \\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def many(number: int, one: str, several: str = "") -> str:
    """Return a count with its noun: "1 node", "3 nodes", "8 leaves"."""
    plural = several or (one.removesuffix("leaf") + "leaves" if one.endswith("leaf") else one + "s")
    return f"{number:,} {one if number == 1 else plural}"


def percent(share: float | None) -> str:
    """Return a share as a percentage, "-" for None.

    100 % and 0 % are said only where they are exact, since "full" and "99.996 % full" are two things.
    """
    if share is None:
        return "-"
    text = f"{100 * share:.2f}"
    if text == "100.00" and share < 1:
        text = "99.99"
    elif text == "0.00" and share > 0:
        return "< 0.01 %"
    return f"{text} %"


def span(seconds: int) -> str:
    """Return a duration in its two largest units, the rest cut off.

    >>> span(45), span(2400), span(7505), span(273_600)
    ('45 s', '40 min', '2 h 5 min', '3 d 4 h')
    """
    for i, (unit, size) in enumerate(_UNITS):
        if seconds >= size:
            text = f"{seconds // size:,} {unit}"
            if i + 1 < len(_UNITS) and (rest := seconds % size // _UNITS[i + 1][1]):
                text += f" {rest} {_UNITS[i + 1][0]}"
            return text
    return "0 s"
