"""What an exact solver is here: it gets a program and one level to optimise, and nothing that it says is believed.

Its words go through a table, its values are rounded and checked against every row, its value is computed here.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from math import ceil, gcd, isfinite
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from time import monotonic
from typing import Literal

from kant_opt.formulation.program import Level, Program, Sense, holds, value_of
from kant_opt.schema import Limits

log = logging.getLogger("kant_opt")

Word = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]
Fixed = Sequence[tuple[Level, int]]
"""Levels that may not become worse than the value beside them."""
ENDED = "did not stop in time and was ended"
"""The note of a solver whose process was killed at the end of its time."""
OUT_OF_MEMORY = "ran out of memory"
"""How the note of a solver begins that had too little."""
STOPPED = "was stopped by the caller before it had a better point"
"""The note of a solver that the caller's wish to stop left without an answer."""
_STATES_PER_WORK = 1_000_000
"""Count vectors of `Limits.search_states` that stand for one unit of a solver's work, some seconds."""
_WORKERS_UNDER_A_CLOCK = 8
_GRACE_S = 1.0
"""How long a solver may take to come back with its best point when the caller wants to stop."""
News = Literal["incumbent", "bound"]
OnEvent = Callable[[News, int], None]
"""Told ("incumbent" | "bound", value of the level) while a solver works; from a thread of the solver's."""


@dataclass(frozen=True)
class Effort:
    """How much a solver may spend on one level: wall seconds, or units of its own deterministic work."""

    seconds: float | None
    work: float | None
    workers: int = 1
    seed: int = 0

    @classmethod
    def of(cls, limits: Limits, seconds: float | None, share: float = 1.0) -> Effort:
        """Return the seconds given, or without any that share of the limits' work, which repeats itself."""
        if seconds is None:
            return cls(None, share * limits.search_states / _STATES_PER_WORK, limits.workers, limits.seed)
        return cls(seconds, None, max(limits.workers, _WORKERS_UNDER_A_CLOCK), limits.seed)


@dataclass(frozen=True)
class RawAnswer:
    """What a solver says. `value` and `bound` are those of the level, constant and all."""

    word: Word
    values: list[int] | None = None
    value: int | None = None
    bound: int | None = None
    seconds: float = 0.0
    note: str = ""


class Stop:
    """A request to stop, made by anybody at any time: another thread, or a signal's handler."""

    def __init__(self) -> None:
        self.asked = False
        self._calls: list[Callable[[], object]] = []
        self._lock = RLock()  # a handler may interrupt the thread that holds it

    def when_asked(self, call: Callable[[], object]) -> None:
        """Run `call` as soon as somebody asks; at once where somebody has."""
        with self._lock:
            self._calls.append(call)
            late = self.asked
        if late:
            call()

    @contextmanager
    def passed_on(self, call: Callable[[], object]) -> Iterator[None]:
        """Within it, `call` runs as soon as somebody asks; at once where somebody has."""
        self.when_asked(call)
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)

    def ask(self) -> None:
        """Ask to stop. What was found until then is still verified and returned."""
        with self._lock:
            self.asked = True
            calls = list(self._calls)
        for call in calls:
            call()


class Packaged:
    """What a solver needs. Its packages are imported only when it solves."""

    name: str
    needs: tuple[str, ...] = ()
    """Packages that have to be installed."""
    loads: tuple[str, ...] = ()
    """Modules that take long to import."""

    def available(self) -> bool:
        """Return whether its packages are installed; looks, does not import."""
        return all(find_spec(package) is not None for package in self.needs)


class Solver(Packaged, ABC):
    """One program solver."""

    @abstractmethod
    def solve(
        self,
        program: Program,
        level: Level,
        fixed: Fixed,
        effort: Effort,
        hint: Sequence[int] | None,
        on_event: OnEvent,
        stop: Stop,
    ) -> RawAnswer:
        """Return the best point found for `level` and the best bound proven, the levels `fixed` no worse than given.

        `hint` is a point to start from, a value for every variable. May raise; may be left behind in its thread.
        """


@dataclass(frozen=True)
class Aim:
    """A level as solvers get it: integers to minimise, divided by what all of them share.

    The common divisor makes bounds tighter: where GPUs come in steps of 1000 thousandths, so does the bound.
    """

    terms: dict[int, int]
    scale: int
    """Value of the level = constant + scale x value of the aim; negative where the level is maximised."""
    constant: int

    @classmethod
    def of(cls, level: Level) -> Aim:
        scale = gcd(*level.terms.values()) or 1
        scale = -scale if level.sense == "max" else scale
        return cls({i: c // scale for i, c in level.terms.items() if c}, scale, level.constant)

    def value(self, aimed: int) -> int:
        """Return the level's value."""
        return self.constant + self.scale * aimed

    def bound(self, aimed: float) -> int | None:
        """Return the level's bound from a lower bound of the aim in floating point; None where there is none."""
        if not isfinite(aimed) or abs(aimed) > 1 << 50:
            return None
        return self.value(ceil(aimed - 1e-6 * max(1.0, abs(aimed) * 1e-3)))


def fixing_rows(fixed: Fixed) -> list[tuple[dict[int, int], Sense, int]]:
    """Return rows (terms, sense, right side) that keep the levels `fixed` no worse than their values."""
    rows = []
    for level, value in fixed:
        aim = Aim.of(level)
        if aim.terms:
            rows.append((aim.terms, Sense.LE, (value - aim.constant) // aim.scale))
    return rows


def settle(word: str, value: int | None, bound: int | None) -> Word:
    """Return the word that the numbers bear out: OPTIMAL only where value and bound meet."""
    if value is None:
        return "INFEASIBLE" if word == "INFEASIBLE" else "UNKNOWN"
    return "OPTIMAL" if value == bound else "FEASIBLE"


def checked(program: Program, level: Level, fixed: Fixed, raw: RawAnswer) -> RawAnswer:
    """Return `raw` with everything in it that does not hold taken out, and a note of it."""
    if raw.values is None:
        return replace(raw, word=settle(raw.word, None, raw.bound), value=None)
    if wrong := _what_breaks(program, fixed, raw.values):
        return RawAnswer("UNKNOWN", seconds=raw.seconds, note=f"its point breaks {wrong}")
    value, bound, note = value_of(level, raw.values), raw.bound, raw.note
    if bound is not None and (bound < value if level.sense == "max" else bound > value):
        bound, note = None, f"its bound {bound} is beaten by its own point of {value}"
    return replace(raw, word=settle(raw.word, value, bound), value=value, bound=bound, note=note)


def _what_breaks(program: Program, fixed: Fixed, values: Sequence[int]) -> str:
    if len(values) != len(program.names):
        return f"off in length: {len(values)} values for {len(program.names)} variables"
    for part, name in program.broken(values):
        return f"row {name!r}" + (f" of {part!r}" if part else "")
    for terms, sense, rhs in fixing_rows(fixed):
        if not holds(sum(c * values[i] for i, c in terms.items()), sense, rhs):
            return "a level that was fixed"
    return ""


def within(
    seconds: float | None,
    ask: Callable[[Stop], RawAnswer],
    *,
    patience: float = 0.05,
    stop: Stop | None = None,
    end: Callable[[], object] | None = None,
) -> RawAnswer:
    """Return what `ask` returns in at most `seconds` + 3 x `patience`; raises nothing but KeyboardInterrupt.

    It runs in a thread of its own, and is told to stop when the time is up or the caller's `stop` is asked: a solver
    that hears it returns its best point. Where it does not, `end` is called, and it is left behind. `patience` is
    thrice: time over the limit before it is told, time to come back then, and time to end.
    """
    inner = Stop()
    found: list[RawAnswer] = []
    news: SimpleQueue[None] = SimpleQueue()  # not an Event: a signal's handler may put into it at any time
    wake = partial(news.put, None)

    def run() -> None:
        try:
            found.append(ask(inner))
        except MemoryError as error:
            found.append(RawAnswer("UNKNOWN", note=f"{OUT_OF_MEMORY}{f': {error}' if str(error) else ''}"))
        except Exception as error:  # whatever a solver throws, the answer at hand stands
            log.info("solver failed", exc_info=True)
            found.append(RawAnswer("UNKNOWN", note=f"failed: {type(error).__name__}: {error}"))
        finally:
            wake()

    thread = Thread(target=run, name="kant_opt solver", daemon=True)
    started = monotonic()
    thread.start()
    outer, ended = stop or Stop(), False
    try:
        with outer.passed_on(wake), suppress(Empty):
            news.get(timeout=None if seconds is None else max(0.0, seconds) + patience)
        if not found:
            inner.ask()
            thread.join(max(patience, _GRACE_S) if outer.asked else patience)
        if not found and end is not None:
            ended = True
            end()
            thread.join(patience)
    except KeyboardInterrupt:
        inner.ask()
        if end is not None:
            end()
        raise
    if found and not (inner.asked and found[0].values is None):
        return found[0]
    left = ENDED if found or ended else "did not stop in time and was left behind"
    note = STOPPED if outer.asked else left
    return RawAnswer("UNKNOWN", seconds=monotonic() - started, note=note)
