"""Jobs that one thread claimed together: how many, what still waits, what waits to be settled.

The thread that owns a batch works through it; another may meanwhile take what has waited too
long, so that a long job in a batch holds up neither its neighbours nor their acknowledgement.
May import: lease and the pure modules.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from qd.clock import monotonic
from qd.lease import Lease
from qd.outcome import Settlement

Done = tuple[Lease, Settlement]

TOGETHER = 0.1
"""Seconds that jobs claimed together should take together (`batch: auto`)."""

START_WITHIN = 0.25
"""Seconds after its claim until a job that hasn't started is handed back for others (`batch: auto`)."""

ACKNOWLEDGE_WITHIN = 0.1
"""Seconds that a finished job waits for its batch before its end is written."""

MOST = 100
"""Jobs claimed at once, at most, with `batch: auto`."""


class Batch:
    """What one claim brought.

    Args:
        leases: in the order of the claim.
        start_within: seconds until what hasn't started is overdue; None: never.
    """

    def __init__(self, leases: Iterable[Lease], start_within: float | None) -> None:
        self._lock = threading.Lock()
        self._waiting = deque(leases)
        self._done: list[Done] = []
        self._done_since = 0.0
        self._start_within = start_within
        self._claimed_at = monotonic()

    def next(self) -> Lease | None:
        """The next job to start, or None."""
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def add(self, done: Done) -> list[Done]:
        """A job has ended and waits for its settlement to be written, no longer than ACKNOWLEDGE_WITHIN.

        Returns:
            what is due by now; it is the caller's. Nothing once all have started: then `take_done` is near.
        """
        with self._lock:
            if not self._done:
                self._done_since = monotonic()
            self._done.append(done)
            if not self._waiting or monotonic() - self._done_since < ACKNOWLEDGE_WITHIN:
                return []
            due, self._done = self._done, []
            return due

    def take_done(self) -> list[Done]:
        """All that waits to be written; it is the caller's now."""
        with self._lock:
            done, self._done = self._done, []
            return done

    def take_late(self) -> list[Done]:
        """What has waited ACKNOWLEDGE_WITHIN to be written while a longer job runs."""
        with self._lock:
            if not self._done or monotonic() - self._done_since < ACKNOWLEDGE_WITHIN:
                return []
            done, self._done = self._done, []
            return done

    def take_unstarted(self, *, all_of_it: bool = False) -> list[Lease]:
        """Jobs that should have started by now, or all that haven't; they are the caller's now."""
        overdue = self._start_within is not None and monotonic() - self._claimed_at > self._start_within
        if not (overdue or all_of_it):
            return []
        with self._lock:
            unstarted, self._waiting = list(self._waiting), deque()
            return unstarted


class BatchSize:
    """How many jobs of one queue a thread should claim at once.

    Args:
        fixed: the configured number, or None for auto: from the measured durations, so that
            jobs claimed together take about TOGETHER seconds together.
    """

    def __init__(self, fixed: int | None) -> None:
        self._fixed = fixed
        self._mean: float | None = None
        self._size = 1

    @property
    def start_within(self) -> float | None:
        """What a batch of this size gives its jobs to start: nothing is late in a fixed batch."""
        return None if self._fixed else START_WITHIN

    def size(self) -> int:
        """Jobs to claim now; grows at most fourfold from one batch to the next."""
        if self._fixed:
            return self._fixed
        if self._mean is None:
            return 1
        wanted = int(TOGETHER / max(self._mean, 1e-6))
        self._size = max(1, min(wanted, MOST, self._size * 4))
        return self._size

    def measured(self, seconds: float) -> None:
        """Takes in one job's duration: slow ones at once, quick ones gradually."""
        mean = self._mean
        if mean is None or seconds > mean * 10:
            self._mean = seconds
        else:
            self._mean = mean + 0.1 * (seconds - mean)
