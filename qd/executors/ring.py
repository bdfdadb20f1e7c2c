"""Wakes a thread that waits in poll. May import: spawn."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from qd.executors.spawn import above


class Ring:
    """A pipe whose readable end is polled.

    Attributes:
        fd: becomes readable when it is rung.
    """

    def __init__(self) -> None:
        self.fd, write = (above(2, end) for end in os.pipe())
        self._write: int | None = write
        self._lock = threading.Lock()  # so that none rings a number that is another file's by then
        os.set_blocking(self.fd, False)
        os.set_blocking(write, False)

    def ring(self) -> None:
        """Wakes whoever waits, or is about to; from any thread, also after `close`."""
        with self._lock, suppress(BlockingIOError):  # full: it wakes anyway
            if self._write is not None:
                os.write(self._write, b"!")

    def clear(self) -> None:
        """It isn't rung any more."""
        with suppress(BlockingIOError):
            while len(os.read(self.fd, 64)) == 64:
                pass

    def renew_lock(self) -> None:
        """For a fork of this process: whoever held the lock isn't in it."""
        self._lock = threading.Lock()

    def close(self) -> None:
        """Closes both ends."""
        with self._lock:
            write, self._write = self._write, None
        if write is not None:
            os.close(write)
            os.close(self.fd)
