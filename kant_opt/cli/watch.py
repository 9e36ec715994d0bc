"""A long search seen from a terminal: what is found so far, and Ctrl-C that ends it and keeps the best answer."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from time import perf_counter
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kant_opt.backends import Event, Stop
from kant_opt.cli.text import safe

_QUIET_S = 1.0
"""Seconds before anything is shown: most answers are there by then."""


class Watch:
    """What `place` is given: `on_event` to tell news to, and `stop`, which Ctrl-C asks."""

    def __init__(self) -> None:
        self.stop = Stop()
        self._started = perf_counter()
        self._latest: tuple[str, str] = ("", "")
        self._known: dict[tuple[str, str], int] = {}

    def on_event(self, event: Event) -> None:
        """Remember what is known of the level."""
        self._known[event.level, event.kind] = event.value
        self._latest = (event.source, event.level)

    def __rich__(self) -> Text:
        source, level = self._latest
        value, bound = self._known.get((level, "incumbent")), self._known.get((level, "bound"))
        told = f"; {level} {'' if value is None else value}" if level else ""
        told += f" (bound {bound})" if level and bound is not None else ""
        told += f", {source}" if source else ""
        end = "stopping" if self.stop.asked else "Ctrl-C ends it and keeps the best answer"
        return Text(safe(f"{perf_counter() - self._started:.0f} s{told}; {end}"), style="dim", no_wrap=True)


@contextmanager
def watched(*, shown: bool) -> Iterator[Watch]:
    """Within it, the first Ctrl-C asks the watch's `stop`, a second one ends the program as ever.

    After a second a line on stderr tells news where `shown` and stderr is a terminal; it is gone afterwards.
    """
    watch = Watch()
    with _asked_by_control_c(watch.stop), telling(watch.__rich__, shown=shown):
        yield watch


@contextmanager
def waiting(*, shown: bool) -> Iterator[None]:
    """Within it a line on stderr tells the time that has passed, as in `watched`; Ctrl-C ends the program."""
    started = perf_counter()
    with telling(lambda: Text(f"{perf_counter() - started:.0f} s; Ctrl-C ends it", style="dim"), shown=shown):
        yield


@contextmanager
def telling(render: Callable[[], Text], *, shown: bool) -> Iterator[None]:
    """Within it, after a second, a line on stderr shows what `render` says, where `shown` and stderr is a terminal."""
    console = Console(stderr=True)
    live = Live(get_renderable=render, console=console, transient=True, refresh_per_second=4)
    timer = Timer(_QUIET_S, live.start)
    timer.daemon = True
    if shown and console.is_terminal and sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()  # it may be starting the line just now
        live.stop()


@contextmanager
def _asked_by_control_c(stop: Stop) -> Iterator[None]:
    if current_thread() is not main_thread():  # only there are signals heard
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        stop.ask()

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
