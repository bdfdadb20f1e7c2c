"""A loop's promise to turn over again in time: what the watchdog's proof is made of. Pure."""

from __future__ import annotations

from qd.clock import monotonic


class Pulse:
    """One loop's deadline. The loop calls `beat`, the watchdog asks `overdue`.

    Args:
        name: the loop's, for the log.
        within: seconds that the loop has until its first beat.
    """

    def __init__(self, name: str, within: float) -> None:
        self.name = name
        self._due = monotonic() + within

    def beat(self, within: float) -> None:
        """Promises the next beat within this many seconds."""
        self._due = monotonic() + within

    def lapse(self) -> None:
        """The loop is gone: its promise is broken, from now at the latest."""
        self._due = min(self._due, monotonic())

    def overdue(self) -> float:
        """Seconds by which the promise is broken; 0.0: it holds."""
        return max(0.0, monotonic() - self._due)
