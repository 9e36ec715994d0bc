"""Prints the tables of docs/benchmarks/known-optima.md.

`python -m benchmarks.report [FAMILY ...] [--backend NAME] [--seconds S]`: what `place` answers beside the published
optimum, for the families named (default: all), within S seconds an instance or else within its limits of work;
`arnold` has a table of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import NamedTuple

from kant_opt import Limits

from . import arnold, binpack, gap, mknap
from .known import Known, Result, solve


def _starts(prefix: str, name: str) -> bool:
    return name.startswith(prefix)


FAMILIES: dict[str, Callable[[], Iterable[Known]]] = {
    "mknap1": lambda: (k for k in mknap.read_all() if k.name.startswith("mknap1")),
    "mknap2": lambda: (k for k in mknap.read_all() if not k.name.startswith("mknap1")),
    "cattrysse": partial(gap.read_all, partial(_starts, "gap")),
    **{f"chu-{letter}": partial(gap.read_all, partial(_starts, letter)) for letter in "abcd"},
    "yagiura-e": partial(gap.read_all, partial(_starts, "e")),
    "u120": lambda: (k for k in binpack.read_all() if k.name.startswith("u120")),
    "u500": lambda: (k for k in binpack.read_all() if k.name.startswith("u500")),
    "hard": lambda: (k for k in binpack.read_all() if k.name.startswith("HARD")),
}


class Timed(NamedTuple):
    """One answer and the wall time of the whole of `place`."""

    result: Result
    seconds: float


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="*", choices=[*FAMILIES, "arnold", []])
    parser.add_argument("--backend", default="milp")
    parser.add_argument("--seconds", type=int)
    asked = parser.parse_args(argv)
    limits = Limits(deadline_ms=1000 * asked.seconds if asked.seconds else None)
    names = [name for name in FAMILIES if not asked.family or name in asked.family]
    if names:
        print("| family | instances | optimum met | proven | largest gap | median s | slowest s |")
        print("|---" * 7 + "|")
    open_ones: list[Timed] = []
    for name in names:
        found = [timed(known, asked.backend, limits) for known in FAMILIES[name]()]
        open_ones += [t for t in found if not t.result.proven]
        print(row(name, found), flush=True)
    for line in unproven(open_ones):
        print(line)
    if not asked.family or "arnold" in asked.family:
        for line in spreads():
            print(line, flush=True)


def timed(known: Known, backend: str, limits: Limits) -> Timed:
    """Solve one instance; raises AssertionError where the answer and the published optimum cannot both be right."""
    known.ask()  # reading is not timed, nor is what is paid once
    started = perf_counter()
    result = solve(known, backend, limits)
    seconds = perf_counter() - started
    result.check()
    return Timed(result, seconds)


def row(name: str, found: Sequence[Timed]) -> str:
    """Return the line of one family."""
    if not found:
        return f"| {name} | 0 | | | | | |"
    met = sum(t.result.value == t.result.known.optimum for t in found)
    proven = sum(t.result.proven for t in found)
    gaps = [abs(t.result.value - t.result.bound) for t in found if t.result.value and t.result.bound is not None]
    seconds = [t.seconds for t in found]
    return (
        f"| {name} | {len(found)} | {met} | {proven} | {max(gaps, default='-')} "
        f"| {median(seconds):.1f} | {max(seconds):.1f} |"
    )


def unproven(found: Sequence[Timed]) -> Iterator[str]:
    """Yield a table of the instances without a proof."""
    if not found:
        return
    yield ""
    yield "| not proven | optimum | found | bound | s |"
    yield "|---" * 5 + "|"
    for result, seconds in found:
        known = result.known
        yield f"| {known.name} | {known.optimum} | {result.value} | {result.bound} | {seconds:.0f} |"


def spreads() -> Iterator[str]:
    """Yield Arnold's settings: fewest minipods with whole rows and with cut ones, and the seconds of both."""
    yield ""
    yield "| setting | minipods | nodes | rows x nodes | rows whole: minipods | s | rows cut: minipods, T | s |"
    yield "|---" * 8 + "|"
    for setting in arnold.SETTINGS:
        cells = []
        for cut in (False, True):
            started = perf_counter()
            found = arnold.fewest_minipods(
                setting.rooms, setting.rows, setting.pp, cut=cut, backend="auto" if cut else "cp-sat", folded=not cut
            )
            assert found
            assert found.proven
            seconds = perf_counter() - started
            cells.append(f"{found.minipods}{f', {found.row_spread}' if cut else ''} | {seconds:.1f}")
        yield (
            f"| {setting.name} | {setting.minipods} | {setting.nodes:,} | {setting.rows} x {setting.pp} | "
            + " | ".join(cells)
            + " |"
        )


if __name__ == "__main__":
    main()
