"""What a bench wants to know of a daemon's events: when the first claim began, when the last job had ended.

A listener, so it runs in the workers' threads, for each job: it takes the time and adds one.
May import: events, clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qd import events
from qd.clock import monotonic
from qd.events import Event

Start = tuple[int, float]
"""A job's id and the monotonic time of its start."""

Trouble = tuple[str, str]
"""`lost` (the database) or `broken` (the daemon), and why."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen so far.

    Attributes:
        finished: jobs whose success is written.
        failed: attempts that ended in any other way, but for those that were given back.
        first: when the first claim that brought something began; None: there was none. Monotonic, as all
            processes of this machine have it.
        last: when the end of the last job had been written.
    """

    finished: int = 0
    failed: int = 0
    first: float | None = None
    last: float | None = None


class Timeline:
    """Hears a daemon's events.

    Args:
        starts: whether each job's start is noted.
    """

    def __init__(self, *, starts: bool) -> None:
        self._lock = threading.Lock()
        self._finished = self._failed = 0
        self._first: float | None = None
        self._last: float | None = None
        self._starts: list[Start] = []
        self._troubles: list[Trouble] = []
        self._heard: dict[type[Event], Callable[[Any], None]] = {
            **dict.fromkeys(set(events.ENDINGS) - {events.JobReleased}, self._ended_badly),
            events.JobsClaimed: self._claimed,
            events.JobSucceeded: self._succeeded,
            events.DatabaseLost: self._lost,
            events.DaemonFailed: self._broken,
        }
        if starts:
            self._heard[events.JobStarted] = self._started

    def __call__(self, event: Event) -> None:
        """Takes in one event."""
        hear = self._heard.get(type(event))
        if hear is not None:
            hear(event)

    def seen(self) -> Seen:
        """What was seen so far."""
        with self._lock:
            return Seen(self._finished, self._failed, self._first, self._last)

    def take_starts(self) -> list[Start]:
        """The starts since the last call."""
        with self._lock:
            starts, self._starts = self._starts, []
            return starts

    def take_troubles(self) -> list[Trouble]:
        """What went wrong since the last call."""
        with self._lock:
            troubles, self._troubles = self._troubles, []
            return troubles

    def _claimed(self, event: events.JobsClaimed) -> None:
        if event.jobs and self._first is None:
            began = monotonic() - event.seconds
            with self._lock:
                self._first = began if self._first is None else min(self._first, began)

    def _succeeded(self, event: events.JobSucceeded) -> None:
        with self._lock:
            self._finished += 1
            self._last = monotonic()

    def _ended_badly(self, event: events.AttemptEnded) -> None:
        with self._lock:
            self._failed += 1

    def _started(self, event: events.JobStarted) -> None:
        at = monotonic()
        with self._lock:
            self._starts.append((event.job_id, at))

    def _lost(self, event: events.DatabaseLost) -> None:
        with self._lock:
            self._troubles.append(("lost", event.error))

    def _broken(self, event: events.DaemonFailed) -> None:
        with self._lock:
            self._troubles.append(("broken", f"{event.where}: {event.error}"))
