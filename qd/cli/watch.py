"""`qd status --watch`: draws again and again, until a signal ends it.

The database is asked on a thread of its own, the only one of the verbs: a look that hangs may neither keep Ctrl-C
waiting nor the picture from following the terminal's size. Signals only wake the loop, which acts on them.
May import: frame, status, the modules of cli, store protocol.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from qd.cli.context import CONNECTION, Cli
from qd.cli.frame import Seen, frame
from qd.cli.status import Picture, look, show
from qd.clock import monotonic
from qd.errors import SetupWrong, StoreError
from qd.readiness import readable
from qd.store.protocol import FullStore

SHARE = 4
"""A pause is at least this many times what a look took: counting millions of rows is dear."""

TICK = 1.0
"""Seconds between two frames while nothing new comes: the age of what is shown goes on."""

TO_END = 0.2
"""Seconds that a look gets to end by itself."""

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

DRAWING = (signal.SIGWINCH, signal.SIGTSTP)
"""What a screen has to act on; without one Ctrl-Z stops it as it stops any program."""


def watch(cli: Cli, every: float) -> int:
    """Draws until it is ended; the exit code, as shells have it.

    Args:
        every: seconds between two looks at least.

    Raises:
        SetupWrong: at the first look.
    """
    screen = _Screen() if _can_draw() else None
    with _wakes(ENDING if screen is None else (*ENDING, *DRAWING)) as (wait, wake):
        looker = Looker(cli, every, wake)
        looker.start()
        try:
            code = _Watch(looker, every, screen).run(wait)
        finally:
            ended = looker.stop()
    if not ended:  # in the middle of a call that has no end of its own yet: nothing there is to be waited for
        sys.stdout.flush()
        os._exit(code)
    return code


class Looker(threading.Thread):
    """Asks the database again and again.

    Args:
        wake: called when there is something in `found`.

    Attributes:
        found: pictures, and errors in their place.
        asked: when the look that is under way was begun, monotonic; None: none is.
        pause: seconds until the next look after the last one.
    """

    def __init__(self, cli: Cli, every: float, wake: Callable[[], None]) -> None:
        super().__init__(name="qd status", daemon=True)
        self._cli, self._every, self._wake = cli, every, wake
        self._over = threading.Event()
        self._store: FullStore | None = None
        self.found: queue.SimpleQueue[Picture | Exception] = queue.SimpleQueue()
        self.asked: float | None = None
        self.pause = every

    def run(self) -> None:
        """Looks until it is stopped; then closes its connection."""
        while not self._over.is_set():
            self.found.put(self._looked())
            self._wake()
            self._over.wait(self.pause)
        if self._store is not None:
            self._store.close()

    def stop(self) -> bool:
        """Ends it; False where it is in a look that doesn't end."""
        self._over.set()
        self.join(TO_END)
        return not self.is_alive()

    def _looked(self) -> Picture | Exception:
        begun = self.asked = monotonic()
        self.pause = self._every
        try:
            picture = look(self._cli, self._opened())
        except Exception as error:  # told or raised on the main thread
            return error
        finally:
            self.asked = None
        self.pause = max(self._every, SHARE * (monotonic() - begun))
        return picture

    def _opened(self) -> FullStore:
        from qd.store.schema import check_compatible

        if self._store is None:
            check_compatible(self._cli.database.schema())
            self._store = self._cli.database.store(CONNECTION)
        return self._store


class _Watch:
    """The loop on the main thread."""

    def __init__(self, looker: Looker, every: float, screen: _Screen | None) -> None:
        self._looker, self._every, self._screen = looker, every, screen
        self._seen = Seen()

    def run(self, wait: Callable[[float], list[int]]) -> int:
        """Until a signal ends it; the exit code, as shells have it."""
        with _shown(self._screen):
            while True:
                new = self._take()
                self._draw(new)
                for number in wait(TICK):
                    if number in ENDING:
                        return 128 + number
                    if number == signal.SIGTSTP and self._screen is not None:
                        self._screen.suspend()

    def _take(self) -> bool:
        """Takes what the looker found; True: there was something."""
        found: Picture | Exception | None = None
        with suppress(queue.Empty):
            while True:
                found = self._looker.found.get_nowait()
        now = monotonic()
        self._seen.asked = self._looker.asked
        if isinstance(found, Picture):
            self._seen.came(found, now)
        elif found is not None:
            if not isinstance(found, StoreError) or (isinstance(found, SetupWrong) and self._seen.picture is None):
                raise found
            self._seen.failed(str(found))
        return found is not None

    def _draw(self, new: bool) -> None:
        if self._screen is not None:
            slowed = self._looker.pause > 1.5 * self._every
            pause = round(self._looker.pause, 1) if slowed else self._every
            self._screen.draw(lambda width, height: frame(self._seen, monotonic(), pause, height, width))
        elif new and self._seen.trouble is not None:
            click.echo(self._seen.complaint(monotonic()))
        elif new and self._seen.picture is not None:
            show(self._seen.picture)
            click.echo()


class _Screen:
    """The terminal's other screen: what stood on it before is back when this ends."""

    def __init__(self) -> None:
        from rich.live import Live
        from rich.text import Text

        self._live = Live(Text(""), screen=True, auto_refresh=False)

    def draw(self, made: Callable[[int, int], Any]) -> None:
        """Draws what is made for the terminal's width and height, as they are now."""
        self._live.update(made(*self._live.console.size), refresh=True)

    def suspend(self) -> None:
        """Ctrl-Z: gives the terminal back, stops, and takes it again when it goes on."""
        self._live.stop()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._live.start()

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()


@contextmanager
def _shown(screen: _Screen | None) -> Iterator[None]:
    if screen is None:
        yield
        return
    with screen:
        yield


def _can_draw() -> bool:
    """Whether a frame can stand in another's place."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and not console.is_dumb_terminal


@contextmanager
def _wakes(wanted: Sequence[signal.Signals]) -> Iterator[tuple[Callable[[float], list[int]], Callable[[], None]]]:
    """These signals and the looker as bytes in a pipe: a way to wait for them, and one to wake who waits.

    A signal that is ignored (nohup) stays so.
    """
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    numbers = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait(seconds: float) -> list[int]:
        readable(reader, within=seconds)
        with suppress(BlockingIOError):
            return list(os.read(reader, 4096))
        return []

    def wake() -> None:
        with suppress(OSError):  # full: who waits is woken anyway; or closed: nobody waits any more
            os.write(writer, b"\0")

    try:
        yield wait, wake
    finally:
        signal.set_wakeup_fd(old)
        for number, handler in before.items():
            signal.signal(number, handler)  # the pipe stays: a look that hangs may end yet, and wake
