"""Signals as an exception, so that a bench clears up after itself. May import: nothing of qd."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asked the bench to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Each signal raises Interrupted: the first begins the clearing up, another one ends that too.

    Those that are ignored stay so: under nohup the terminal's end is nobody's business.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    numbers = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
