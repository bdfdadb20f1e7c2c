"""One stop of all engines, side by side, while the main loop goes on feeding the watchdog.

May import: daemon.engine, clock. Owns: one thread for each engine that is being stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qd.clock import monotonic

if TYPE_CHECKING:
    from qd.daemon.engine import Engine

HURRIED = 0.5
"""Seconds that running jobs are left after a second SIGTERM."""

BOUND = 2.0
"""Seconds after the deadline within which an engine promises to have stopped."""


class Stop:
    """Stops engines.

    Args:
        grace: seconds that running jobs are left.
        wake: called in a stopping thread whenever one has ended.
    """

    def __init__(self, engines: Sequence[Engine], grace: float, wake: Callable[[], None]) -> None:
        self.began = monotonic()
        self.deadline = self.began + grace
        self._engines, self._wake = engines, wake
        for engine in engines:  # none claims while another is still being told
            engine.retire()
        self._threads = [
            threading.Thread(target=self._stop, args=(engine,), name="qd stop", daemon=True) for engine in engines
        ]
        for thread in self._threads:
            thread.start()

    def _stop(self, engine: Engine) -> None:
        try:
            engine.stop(self.deadline)
        finally:
            self._wake()

    def hurry(self) -> None:
        """A second request: what runs has only a moment left."""
        sooner = monotonic() + HURRIED
        if sooner < self.deadline:
            self.deadline = sooner
            for engine in self._engines:
                engine.hurry(sooner)

    def over(self) -> bool:
        """Whether all have stopped, or have broken their promise to."""
        return not self.unfinished() or monotonic() > self.deadline + BOUND

    def unfinished(self) -> int:
        """Engines that have not stopped yet."""
        return sum(thread.is_alive() for thread in self._threads)

    def left(self) -> float:
        """Seconds until `over` is true at the latest."""
        return max(0.0, self.deadline + BOUND - monotonic())
