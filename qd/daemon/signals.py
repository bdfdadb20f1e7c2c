"""Signals of the process: handlers only queue, the main loop takes them when it is ready to.

A handler that logs, locks or raises can meet the main thread inside the very same code; so ours
append to a deque and that is all. The wakeup descriptor ends the main loop's wait.
May import: the standard library and readiness, so that it can be installed before anything heavy is loaded.
Owns: the process's signal dispositions and one pipe.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

from qd.readiness import readable

STOPS = (signal.SIGTERM, signal.SIGINT)
RELOAD = signal.SIGHUP
SHOW_STACKS = signal.SIGQUIT
IGNORED = (signal.SIGUSR1, signal.SIGUSR2)
"""Taken and dropped. Not SIG_IGN: what is ignored stays ignored in the programs that handlers start."""

TAKEN = (*STOPS, RELOAD, SHOW_STACKS, *IGNORED)


Handler = Callable[[int, "FrameType | None"], None]


class Signals:
    """The queue of signals that the process was sent. Main thread only, except `wake`."""

    def __init__(self) -> None:
        self._queued: deque[int] = deque()
        self._ends_at_once = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def install(self) -> None:
        """Takes over the signals; may be called again, should someone's module have taken them meanwhile.

        None stays blocked, and the end of children isn't ignored, whoever started us or was imported: a
        blocked SIGTERM would never stop us, and of ignored children no exit status can be read.
        """
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in TAKEN:
            signal.signal(number, self.queue)
            signal.siginterrupt(number, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        faulthandler.enable(file=sys.stderr)  # a crash, or the watchdog's SIGABRT, shows where everybody was

    def queue(self, number: int, _: FrameType | None) -> None:
        """The handler of them all."""
        if self._ends_at_once and number in STOPS:
            os._exit(0)
        self._queued.append(number)

    def wake(self) -> None:
        """Ends the main loop's wait; from any thread."""
        with contextlib.suppress(BlockingIOError):  # full: it will wake anyway
            os.write(self._write, b"\0")

    def wait(self, timeout: float) -> None:
        """Waits for a signal or a wake; at once over while signals are queued.

        Args:
            timeout: seconds at most.
        """
        if not self._queued:
            readable(self._read, within=timeout)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass

    def take(self) -> list[int]:
        """The signals queued since the last call, in order."""
        return [self._queued.popleft() for _ in range(len(self._queued))]

    def stop_asked(self) -> bool:
        """Whether a SIGTERM or SIGINT waits to be taken; it stays queued."""
        return any(number in STOPS for number in self._queued)

    @contextlib.contextmanager
    def ending_at_once(self) -> Iterator[None]:
        """While foreign code is imported, which may take for ever: a stop ends the process there and then, with 0.

        Nothing is claimed yet, so there is nothing to hand back. A thread looks after it: a handler of
        Python's own waits for the end of the call that the main thread is in, or about to begin.
        """
        over, end = os.pipe()
        watch = threading.Thread(target=self._end_at_stop, args=(over,), name="qd import", daemon=True)
        self._ends_at_once = True
        watch.start()
        try:
            if self.stop_asked():
                os._exit(0)
            yield
        finally:
            self._ends_at_once = False
            os.close(end)
            watch.join()
            os.close(over)

    def _end_at_stop(self, over: int) -> None:
        """Ends the process at the first stop that the interpreter has been sent, until `over` is closed."""
        while over not in readable(self._read, over):
            if not set(os.read(self._read, 4096)).isdisjoint(STOPS):
                os._exit(0)

    def ignore(self) -> None:
        """The process is about to end with its own status: no late signal may change it."""
        for number in TAKEN:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)


def free_children(numbers: Sequence[signal.Signals], handler: Handler) -> None:
    """Lets signals with this handler do to children that are forked from now on what they do to any program.

    Else a child would queue its SIGTERM for ever, and who waits for its end with it. None is handled
    between the fork and that: it waits until the child has let go.
    """
    forking = threading.local()

    def hold() -> None:
        forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, forking.mask)

    def let_go() -> None:
        for number in numbers:
            if signal.getsignal(number) == handler:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=let_go)


_installed: Signals | None = None


def install() -> Signals:
    """Takes over the process's signals and returns their queue; the same one at every call."""
    global _installed
    if _installed is None:
        _installed = Signals()
        free_children(TAKEN, _installed.queue)
    _installed.install()
    return _installed
