"""Why a running handler is told to end, and what every way of running one offers.

May import: clock, outcome.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from qd.clock import monotonic
from qd.outcome import JobInterrupted, JobTimeout, Outcome

STOP_GRACE = 0.5
"""Seconds from SIGTERM to SIGKILL at a stop: a process must be gone before its job is handed back, and
the daemon has a second for both."""

KILL_MARGIN = 2.0
"""Seconds from SIGKILL to the end of a process, before the attempt counts as stuck."""


class Interruption(Enum):
    """Why a running handler is told to end."""

    TIMEOUT = "timeout"  # its time is up
    STOP = "stop"  # the daemon's grace has ended

    @property
    def exception(self) -> type[BaseException]:
        """What is raised inside a Python handler."""
        return JobTimeout if self is Interruption.TIMEOUT else JobInterrupted


class Countdown:
    """When a process that was told to end is killed.

    Attributes:
        hurried: whether a stop wants it gone.
    """

    def __init__(self, kill_grace: float) -> None:
        self._kill_grace, self._until = kill_grace, float("inf")
        self.hurried = False

    def begin(self, why: Interruption) -> None:
        """It is told now; whichever end is sooner holds."""
        stopping = why is Interruption.STOP
        self.hurried = self.hurried or stopping
        grace = min(STOP_GRACE, self._kill_grace) if stopping else self._kill_grace
        self._until = min(self._until, monotonic() + grace)

    def left(self) -> float | None:
        """Seconds until it is to be killed, 0.0 from then on; None: it hasn't begun."""
        return None if self._until == float("inf") else max(0.0, self._until - monotonic())


class Run(Protocol):
    """One way to run one attempt; `Attempt` is its only caller.

    Attributes:
        ends_with_us: whether the end of this process is surely the handler's end too.
        patience: seconds after an interruption by which the handler should have ended.
    """

    ends_with_us: bool
    patience: float

    @property
    def entered(self) -> bool:
        """Whether the handler was entered, or may have been."""
        ...

    def run(self) -> Outcome:
        """Runs the handler to its end in the calling thread."""
        ...

    def interrupt(self, why: Interruption) -> None:
        """Tells the handler to end; from any thread, one caller at a time. The first reason holds."""
        ...

    def insist(self) -> None:
        """A harder word for a handler that hasn't ended half its patience after the first."""
        ...
