"""One child process that runs Python handlers, seen from the daemon: started, talked to, ended.

A fresh interpreter (see docs/decisions/0003), never a fork of this threaded process. It gets an
end of a socket pair, a file for its last words (faulthandler's), and the reading end of a pipe whose
other end only this process holds: by it the kernel ends the child's group when we are gone. Used by
one thread, but for `ring`. May import: ring, spawn, wire, clock.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from qd.clock import monotonic
from qd.executors.ring import Ring
from qd.executors.spawn import BLIND_WAIT, Process, above, start
from qd.executors.wire import ANSWER_LIMIT, LAST_WORDS, OWNER, SOCKET, BadMessage, Frames, Message, frame

POLITE = 2.0
"""Seconds that a child gets to end by itself."""

TURN_LIMIT = 1 << 20
"""Bytes that are read of what it says before anything else has its turn: it may say more than anybody can read."""

_MOMENT = 1.0  # seconds between the end of its connection and its own
_WORDS_LIMIT = 64 * 1024


_living: set[Child] = set()


def _let_go() -> None:
    """In a fork of the daemon: it must neither speak to the children nor keep them alive."""
    for child in _living:
        child.forget()


os.register_at_fork(after_in_child=_let_go)


class Child:
    """A child process, until `kill` or `retire`.

    Args:
        label: stands in the process list.
        environ: all that it sees of the environment.

    Attributes:
        types: the handlers that it knows.
        jobs: how many it has run.
        closed: it has closed its end of the socket, or said what is no message.
        wrong: what it did that none may do, once that is known.
        garbled: what it has said isn't known to its end.

    Raises:
        OSError, ValueError: it can't be started.
    """

    def __init__(self, label: str, environ: Mapping[str, str], *, use_pidfd: bool = True) -> None:
        with ExitStack() as theirs, ExitStack() as ours:
            pid = self._start(_argv(label), environ, theirs, ours)
            self._open = ours.pop_all()
        self.process = Process(pid, use_pidfd=use_pidfd)
        self.closed, self.wrong, self.garbled = False, "", False
        self.types: frozenset[str] = frozenset()
        self.jobs = 0
        self._size: int | None = None
        self._said = ""
        self._frames, self._unsent, self._heard = Frames(ANSWER_LIMIT), bytearray(), list[Message]()
        self._poll = select.poll()
        for fd in (self._socket.fileno(), self._ring.fd, self.process.pidfd):
            if fd is not None:
                self._poll.register(fd, select.POLLIN)
        _living.add(self)

    def forget(self) -> None:
        """For a fork of this process: closes what it has got of it."""
        self._ring.renew_lock()
        self._open.close()

    def _start(self, argv: list[str], environ: Mapping[str, str], theirs: ExitStack, ours: ExitStack) -> int:
        def high(keeper: ExitStack, fd: int) -> int:
            fd = above(OWNER, fd)
            keeper.callback(os.close, fd)
            return fd

        self._ring = Ring()
        ours.callback(self._ring.close)
        one, other = socket.socketpair()
        self._socket = ours.enter_context(socket.socket(fileno=above(OWNER, one.detach())))
        self._socket.setblocking(False)
        socket_fd = high(theirs, other.detach())
        owner, ours_alone = os.pipe()
        owner, _ = high(theirs, owner), high(ours, ours_alone)
        self._words = high(ours, _unnamed_file())
        null = high(theirs, os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        outs = {number: number if _is_open(number) else null for number in (1, 2)}
        fds = {0: null, **outs, SOCKET: socket_fd, LAST_WORDS: self._words, OWNER: owner}
        return start(argv, environ, fds)

    # ------------------------------------------------------------------ talking

    def ring(self) -> None:
        """Ends `wait` early; from any thread."""
        self._ring.ring()

    def say(self, say: str, **fields: object) -> None:
        """Sends a message, now or as soon as it reads; never waits."""
        if not self.closed:
            self._unsent += frame(say, **fields)
            self._send()

    def silent(self) -> bool:
        """Whether it has read all that was sent, as far as can be seen from here."""
        return not self._unsent

    def wait(self, seconds: float) -> None:
        """Waits for a message, its end, or a ring."""
        if self.process.pidfd is None:
            seconds = min(seconds, BLIND_WAIT)
        for fd, happened in self._poll.poll(max(0.0, seconds) * 1000):
            if fd == self._ring.fd:
                self._ring.clear()
            elif fd != self.process.pidfd:
                self._serve(happened)

    def heard(self) -> list[Message]:
        """What it has said since; after `kill` also what it was about to say."""
        heard, self._heard = self._heard, []
        return heard

    def gone(self) -> bool:
        """Whether it has exited; what it said before is heard then."""
        if not self.process.exited():
            return False
        self._receive()
        return True

    @property
    def ended(self) -> bool:
        """Whether `kill` or `retire` has ended it."""
        return self._socket.fileno() < 0

    def fit(self) -> bool:
        """Whether it can take a job."""
        return not self.closed and not self.wrong and not self.process.exited() and self.silent()

    def _serve(self, happened: int) -> None:
        if happened & select.POLLOUT:
            self._send()
        if happened & ~select.POLLOUT:
            self._receive()

    def _send(self) -> None:
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it is gone: seen where it is looked for
            self._unsent.clear()
        if not self.closed:
            self._poll.modify(self._socket, select.POLLIN | (select.POLLOUT if self._unsent else 0))

    def _receive(self) -> None:
        left = TURN_LIMIT
        try:
            while not self.closed and left > 0:
                data = self._socket.recv(1 << 16)
                left -= len(data)
                self._heard.extend(self._frames.feed(data))
                if not data:
                    self._close_down()
        except BlockingIOError:
            pass
        except BadMessage as error:
            self.garbled = True
            self._close_down(f"wrote into its connection to the daemon ({error})")
        except OSError:
            self._close_down()

    def _close_down(self, wrong: str = "") -> None:
        self.closed, self.wrong = True, wrong or self.wrong
        self._poll.unregister(self._socket)

    # ------------------------------------------------------------------ its end

    def last_words(self) -> str:
        """After `kill`: what faulthandler, or the child itself, wrote before its end."""
        return self._said

    def memory(self) -> int | None:
        """Bytes that it occupies, resident or swapped out; None where the system doesn't tell."""
        return memory_of(self.process.pid)

    def grown(self) -> int | None:
        """Bytes by which it has grown since it was first asked, after its first job; None: not known."""
        if not self.jobs:
            return None
        size = self.memory()
        if self._size is None:
            self._size = size
        return size - self._size if size is not None and self._size is not None else None

    def died(self) -> str:
        """After `kill`: how it ended, in words: `killed by SIGSEGV`."""
        status = self.process.status
        if self.wrong or status is None:
            return self.wrong or "ended, and its exit status was taken by somebody else"
        if status >= 0:
            return f"exited with status {status}"
        hint = ""
        if status == -signal.SIGKILL:
            own = self.last_words().strip()
            hint = f" ({own or 'by the kernel for want of memory, perhaps: see its log'})"
        return f"killed by {self.signal()}{hint}"

    def signal(self) -> str | None:
        """The signal that killed it."""
        status = self.process.status
        if status is None or status >= 0:
            return None
        try:
            return signal.Signals(-status).name
        except ValueError:  # a real-time signal
            return f"signal {-status}"

    def interrupt(self) -> None:
        """SIGTERM to its group, also to what is stopped."""
        self.process.signal_group(signal.SIGTERM)
        self.process.signal_group(signal.SIGCONT)

    def kill(self) -> None:
        """Kills its whole group, reaps it and closes everything. Idempotent."""
        if self.ended:
            return
        if self.closed and not self.wrong:  # it is ending, in all likelihood: how, is worth a moment
            self._await_exit(_MOMENT)
            if not self.process.exited():
                self.wrong = "closed its connection to the daemon (became another program, or closed all descriptors)"
        self.process.exited()  # for its status
        self.process.end_group()
        self._receive()
        with suppress(OSError):
            self._said = os.pread(self._words, _WORDS_LIMIT, 0).decode(errors="backslashreplace")
        self._shut()

    def retire(self, patience: float = POLITE) -> None:
        """Lets it end by itself, its atexit functions run; kills it if it doesn't in time."""
        if self.ended:
            return
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._await_exit(patience)
        if not self.process.exited() or self.process.status != 0:
            self.kill()
        else:  # what jobs that succeeded have left behind stays
            self.process.reap()
            self._shut()

    def _await_exit(self, seconds: float) -> None:
        until = monotonic() + seconds
        while not self.process.exited() and monotonic() < until:
            self.wait(until - monotonic())
            self._heard.clear()  # nobody listens any more

    def _shut(self) -> None:
        self.closed = True
        _living.discard(self)
        self._open.close()
        self.process.close()


def memory_of(pid: int) -> int | None:
    """Bytes that a process occupies, resident or swapped out; None where it is gone or the system doesn't tell."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) for line in lines if line.startswith((b"VmRSS:", b"VmSwap:"))]
    return sum(sizes) * 1024 if sizes else None


def _argv(label: str) -> list[str]:
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return [sys.executable, *flags, str(Path(__file__).with_name("start_child.py")), label]


def _unnamed_file() -> int:
    try:
        fd = os.memfd_create("qd-last-words")
    except (AttributeError, OSError):  # another system, an old kernel
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    return fd


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
