"""Writes whole lines to a descriptor and never raises or waits for long. May import: clock.

Without a lock: each line is one write, so that no thread, no fork and no interrupted handler can
leave a lock behind. (Lines beyond PIPE_BUF, 4 KiB, may meet those of other threads in a full pipe.)
"""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Callable

from qd.clock import monotonic

PATIENCE = 1.0
"""Seconds that a line waits for a reader that has stopped; the lines after it don't wait any more."""

Send = Callable[[bytes], int]
"""Writes what there is room for and returns how much; BlockingIOError where there is none."""


class Sink:
    """A descriptor that takes lines.

    Attributes:
        fd: its number.
        dropped: lines that were lost: nobody read, the disk is full, the other end is gone.
    """

    def __init__(self, fd: int = 2, patience: float = PATIENCE) -> None:
        self.fd, self._patience = fd, patience
        self.dropped = 0
        self._blocked = self._torn = False
        self._send, self._close = _sender(fd)

    def write(self, line: str) -> None:
        """Writes one line; `line` has no newline. What can't be written is dropped and counted."""
        try:
            data = (line + "\n").encode("utf-8", "backslashreplace")
            self._put(b"\n" + data if self._torn else data)  # half a line before it ends here
        except (OSError, ValueError):  # a log that can't be written must not stop the work
            self.dropped += 1

    def close(self) -> None:
        """Gives back what it opened for itself; `fd` stays open."""
        self._close()

    def _put(self, data: bytes) -> None:
        left, until = data, monotonic() + (0 if self._blocked else self._patience)
        try:
            while left:
                left = self._some(left, until)
            self._blocked = False
        finally:
            self._torn = bool(left) and (self._torn or len(left) < len(data))

    def _some(self, data: bytes, until: float) -> bytes:
        """Writes some of it, waiting for room if need be; what is left."""
        try:
            return data[self._send(data) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(self.fd, select.POLLOUT)
            if not poll.poll(max(0.0, until - monotonic()) * 1000) or monotonic() >= until:
                self._blocked = True
                raise
            return data


def _sender(fd: int) -> tuple[Send, Callable[[], None]]:
    """How to write to it without ever waiting in the kernel, and how to give that up.

    The descriptor itself isn't made non-blocking: the shell and other programs share it.
    """
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            return _to_socket(fd)
        if not stat.S_ISREG(mode):
            return _to_a_reopened(fd)
        own = os.dup(fd)  # a handler may close fd, and its number then be another file's
        return lambda data: os.write(own, data), lambda: os.close(own)
    except OSError:  # closed, or not ours to open again (a pipe that another user made)
        return lambda data: _if_ready(fd, data), _nothing


def _to_socket(fd: int) -> tuple[Send, Callable[[], None]]:
    own = socket.socket(fileno=os.dup(fd))
    return lambda data: own.send(data, socket.MSG_DONTWAIT), own.close


def _to_a_reopened(fd: int) -> tuple[Send, Callable[[], None]]:
    own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return lambda data: os.write(own, data), lambda: os.close(own)


def _if_ready(fd: int, data: bytes) -> int:
    """A pipe that is ready takes PIPE_BUF bytes without waiting."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    if not poll.poll(0):
        raise BlockingIOError
    return os.write(fd, data[: select.PIPE_BUF])


def _nothing() -> None:
    pass
