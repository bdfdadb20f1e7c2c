"""The full look: finds what was committed so long after its due time that the poller's looks begin above it.

It has no lower bound, so it walks what was deleted and isn't purged yet, and can't be kept cheap: it has its period
stretched, and stands beside the poller, on the duties' connection, so that it holds up no pickup however long it
takes. What it finds sets the low watermarks back, which the stores of one database share: the next ordinary look
begins there. May import: reach, store protocol and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from qd.clock import monotonic
from qd.errors import StoreError
from qd.events import Events, LooksCutShort, LooksRestored
from qd.maintenance.reach import Reachable, reach
from qd.store.protocol import Look, Store
from qd.stretch import JOBS_WAIT, SLOW, StretchedPeriod

FULL_LOOK_EVERY = 1.0
"""Seconds between full looks while they are cheap."""


class Lookable(Reachable, Store, Protocol):
    """What is asked of a store; every store offers it."""


class FullLook:
    """One engine's duty.

    Args:
        store: shared with the other duties of the maintenance thread.
        found: told what a look saw, unless that is old by its end.
        clock: the monotonic clock.
    """

    name = "full look"

    def __init__(
        self,
        store: Lookable,
        queues: Sequence[str],
        found: Callable[[Look], None],
        events: Events,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store, self._queues, self._found = store, queues, found
        self._events, self._clock = events, clock
        self._period = StretchedPeriod(FULL_LOOK_EVERY, first=FULL_LOOK_EVERY, most=JOBS_WAIT)
        self._cut_since: float | None = None

    def run_once(self) -> float:
        """Looks; seconds until the next.

        Raises:
            StoreError: the database is away, or a table locked. A look that is merely too dear for its time limit
                raises nothing: it is made more rarely, and said once.
        """
        begun = self._clock()
        try:
            look = self._store.look(self._queues, full=True)
        except StoreError as error:
            return self._cut_short(self._clock() - begun, error)
        cost = self._clock() - begun
        self._through()
        if cost < SLOW:
            self._found(look)
        return self._period.after(cost)

    def close(self) -> None:
        """Nothing of its own to close."""

    def _cut_short(self, cost: float, error: StoreError) -> float:
        wait = self._period.given_up(cost, error, partial(reach, self._store))
        if self._cut_since is None:
            self._cut_since = self._clock()
            self._events.publish(LooksCutShort(cost, str(error)))
        return wait

    def _through(self) -> None:
        if self._cut_since is not None:
            self._events.publish(LooksRestored(self._clock() - self._cut_since))
            self._cut_since = None
