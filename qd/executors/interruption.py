"""Why a running handler is told to end, and what every way of running one offers. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from qd.outcome import JobInterrupted, JobTimeout, Outcome


class Interruption(Enum):
    """Why a running handler is told to end."""

    TIMEOUT = "timeout"  # its time is up
    STOP = "stop"  # the daemon's grace has ended

    @property
    def exception(self) -> type[BaseException]:
        """What is raised inside a Python handler."""
        return JobTimeout if self is Interruption.TIMEOUT else JobInterrupted


class Run(Protocol):
    """One way to run one attempt; `Attempt` is its only caller.

    Attributes:
        patience: seconds after an interruption by which the handler should have ended.
    """

    patience: float

    def run(self) -> Outcome:
        """Runs the handler to its end in the calling thread."""
        ...

    def interrupt(self, why: Interruption) -> None:
        """Tells the handler to end; from any thread, one caller at a time. The first reason holds."""
        ...

    def insist(self) -> None:
        """A harder word for a handler that hasn't ended half its patience after the first."""
        ...
