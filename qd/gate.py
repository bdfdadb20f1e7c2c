"""Whether claims may be made, how many more, and until when what is claimed must be settled. Pure."""

from __future__ import annotations

import threading
from time import sleep

from qd.clock import monotonic


class Gate:
    """One engine's way to stop: closed once, for good.

    Args:
        limit: jobs that may be started in all, or None for any number.
        leave_when_empty: threads end once they find nothing ready.
    """

    def __init__(self, limit: int | None = None, *, leave_when_empty: bool = False) -> None:
        self._lock = threading.Lock()
        self._left = limit
        self._closed = threading.Event()
        self.leave_when_empty = leave_when_empty
        self.deadline = float("inf")

    @property
    def closed(self) -> bool:
        """No claim may be made any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """From now on nothing is claimed."""
        self._closed.set()

    def wait(self, seconds: float) -> bool:
        """Waits for it to be closed; True if it is."""
        return self._closed.wait(seconds)

    def take(self, wanted: int) -> int:
        """How many of the wanted jobs may be claimed now; 0 once the limit is used up."""
        with self._lock:
            if self._left is None:
                return wanted
            granted = min(wanted, self._left)
            self._left -= granted
            return granted

    def refund(self, jobs: int) -> None:
        """Gives back what was granted but not started."""
        with self._lock:
            if self._left is not None:
                self._left += jobs

    @property
    def spent(self) -> bool:
        """The limit is used up."""
        with self._lock:
            return self._left == 0

    def late(self) -> bool:
        """The time for writing ends is over: what isn't settled keeps its lease until it runs out."""
        return monotonic() > self.deadline

    def pause(self, seconds: float) -> None:
        """Waits this long, or until the deadline should that be sooner."""
        end = monotonic() + seconds
        while (left := min(end, self.deadline) - monotonic()) > 0:
            sleep(min(left, 0.1))
