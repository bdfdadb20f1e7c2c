"""Writes whole lines to a descriptor and never raises or waits for long. May import: clock.

Without a lock: each line is one write, so that no thread and no fork can leave a lock behind.
"""

from __future__ import annotations

import os
import select
import stat

PATIENCE = 1.0
"""Seconds that a line waits for a reader that has stopped; the lines after it don't wait any more."""


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
        self._may_block = _may_block(fd)

    def write(self, line: str) -> None:
        """Writes one line; `line` has no newline. What can't be written is dropped and counted."""
        try:
            data = (line + "\n").encode("utf-8", "backslashreplace")
            if self._may_block and not self._is_ready():
                self.dropped += 1
                return
            self._put(data)
        except (OSError, ValueError):  # a log that can't be written must not stop the work: counted
            self.dropped += 1

    def _put(self, data: bytes) -> None:
        if self._torn:  # the half line before ends here
            data, self._torn = b"\n" + data, False
        written = os.write(self.fd, data)
        while written < len(data):  # a full disk or a pipe that takes no more: rare
            self._torn = True
            data = data[written:]
            written = os.write(self.fd, data)
            self._torn = written < len(data)

    def _is_ready(self) -> bool:
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        ready = bool(poll.poll(0)) or (not self._blocked and bool(poll.poll(self._patience * 1000)))
        self._blocked = not ready
        return ready


def _may_block(fd: int) -> bool:
    """Whether its reader may be slow: true of pipes, sockets and terminals, not of files."""
    try:
        return not stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return True
