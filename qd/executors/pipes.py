"""The pipes of a running program: feeds one, reads two, keeps the ends.

May import: ring, spawn, endings, failure, clock.
"""

from __future__ import annotations

import os
import select

from qd.clock import monotonic
from qd.executors.endings import RESULT_LIMIT
from qd.executors.ring import Ring
from qd.executors.spawn import BLIND_WAIT, Program
from qd.failure import cut_tail

_CHUNK = 64 * 1024


class Tail:
    """The last RESULT_LIMIT bytes of a stream."""

    def __init__(self) -> None:
        self._kept = b""

    def add(self, chunk: bytes) -> None:
        """The stream goes on with these."""
        self._kept = (self._kept + chunk)[-RESULT_LIMIT - 4 :]

    def text(self) -> str:
        """As valid text, marked where there was more."""
        kept = self._kept
        if len(kept) > RESULT_LIMIT:  # cut somewhere: not within a character
            kept = kept.lstrip(bytes(range(0x80, 0xC0))) or kept
        return cut_tail(kept.decode(errors="backslashreplace").rstrip("\n"), RESULT_LIMIT)


class Pipes:
    """The conversation with a running program.

    Args:
        wake: ends `attend` early when it is rung.

    Attributes:
        output, errors: the ends of what it has written.
    """

    def __init__(self, program: Program, payload: bytes, wake: Ring) -> None:
        self._program, self._left, self._wake = program, memoryview(payload), wake
        self.output, self.errors = Tail(), Tail()
        self._poll = select.poll()
        for fd in (program.stdout, program.stderr, program.pidfd, wake.fd):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        if program.stdin is not None and payload:
            self._poll.register(program.stdin, select.POLLOUT)
        elif program.stdin is not None:
            program.close_pipe(program.stdin)

    def attend(self, timeout: float | None) -> None:
        """Waits for something to do, at most so many seconds, and does it."""
        if self._program.pidfd is None:
            timeout = BLIND_WAIT if timeout is None else min(timeout, BLIND_WAIT)
        for fd, _ in self._poll.poll(None if timeout is None else max(0.0, timeout) * 1000 + 1):
            self._serve(fd)

    def drain(self, within: float) -> None:
        """After the exit: reads what is left until its end, or as long as is given."""
        program, until = self._program, monotonic() + within
        for fd in (program.pidfd, program.stdin, self._wake.fd):
            self._forget(fd)
        while (program.stdout is not None or program.stderr is not None) and monotonic() < until:
            for fd, _ in self._poll.poll(max(0.0, until - monotonic()) * 1000):
                self._serve(fd)

    def _serve(self, fd: int) -> None:
        program = self._program
        if fd == program.stdin:
            self._write(fd)
        elif fd == program.stdout:
            self._read(fd, self.output)
        elif fd == program.stderr:
            self._read(fd, self.errors)
        elif fd == self._wake.fd:
            self._wake.clear()

    def _write(self, fd: int) -> None:
        try:
            self._left = self._left[os.write(fd, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it doesn't read, or not all: its own affair
            self._left = self._left[:0]
        if not self._left:
            self._drop(fd)

    def _read(self, fd: int, tail: Tail) -> None:
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            tail.add(chunk)
        else:
            self._drop(fd)

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._program.close_pipe(fd)

    def _forget(self, fd: int | None) -> None:
        try:
            if fd is not None:
                self._poll.unregister(fd)
        except KeyError:  # stdin, when there was no payload left
            return
