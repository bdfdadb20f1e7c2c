"""The small duties that share one thread and one connection, each at its own pace.

May import: service, store protocol and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qd.clock import monotonic, process_age
from qd.errors import OUT_OF_REACH, LockWait
from qd.maintenance.service import Service
from qd.store.protocol import ANNOUNCE_EVERY, DaemonRow, Store
from qd.stretch import SHARE, SLOW

POSTS_EVERY = 10.0
"""Seconds between looks after missing or moved posts."""

PURGE_EVERY = 60.0
"""Seconds between purges of old dead letters."""

PURGE_AT_ONCE = 1000
"""Dead letters a purge deletes in one transaction."""


LEAST_WAIT = 0.05
"""Seconds between two turns of a duty, however soon it wants the next."""

PUT_OFF_AT_MOST = 30.0
"""Seconds that a duty which failed late is put off at most: what it waited for may be over by then."""


class Duties:
    """Several services as one: each round does the one that has been due for longest, so that a round lasts no
    longer than one duty's statements may, whatever befalls the others'.

    Args:
        close_store: closes the connection that they share.
    """

    name = "maintenance"

    def __init__(
        self, duties: Sequence[Service], close_store: Callable[[], None], clock: Callable[[], float] = monotonic
    ) -> None:
        self._due = dict.fromkeys(duties, 0.0)
        self._close_store, self._clock = close_store, clock

    def run_once(self) -> float:
        """Does what is due; seconds until the next is. A duty that fails has its next turn behind the others'."""
        duty = min(self._due, key=self._due.__getitem__)
        if self._due[duty] <= self._clock():
            self._do(duty)
        return max(0.0, min(self._due.values()) - self._clock())

    def _do(self, duty: Service) -> None:
        began = self._clock()
        try:
            wait = duty.run_once()
        except Exception as error:
            self._due[duty] = self._clock() + put_off(self._clock() - began, error)
            raise
        self._due[duty] = self._clock() + max(LEAST_WAIT, wait)

    def close(self) -> None:
        """Closes each duty, then their connection."""
        for duty in self._due:
            duty.close()
        self._close_store()


def put_off(cost: float, error: Exception) -> float:
    """Seconds that a duty waits, over what its thread waits anyway, after it has failed so late.

    None where it waited for a lock or a server: that costs nothing, and soon after its end all has to be as it was.
    """
    waited = isinstance(error, (LockWait, *OUT_OF_REACH))
    return 0.0 if cost < SLOW or waited else min(PUT_OFF_AT_MOST, SHARE * cost)


class Announcer:
    """Writes this daemon's sign of life, and takes it back at the end."""

    name = "announcer"

    def __init__(self, store: Store, row: DaemonRow) -> None:
        self._store, self._row = store, row

    def run_once(self) -> float:
        """Seen now."""
        self._store.announce(self._row, process_age())
        return ANNOUNCE_EVERY

    def close(self) -> None:
        """Gone now."""
        self._store.withdraw(self._row.id)


class Posts:
    """Keeps the posts that end each lane's walk standing."""

    name = "posts"

    def __init__(self, store: Store, queues: Sequence[str]) -> None:
        self._store, self._queues = store, queues

    def run_once(self) -> float:
        """Puts back what is missing or moved."""
        self._store.ensure_posts(self._queues)
        return POSTS_EVERY

    def close(self) -> None:
        """Nothing to do: posts are for everybody."""


class Retention:
    """Deletes dead letters that are older than the configuration keeps them.

    Args:
        seconds: how long they are kept.
    """

    name = "retention"

    def __init__(self, store: Store, seconds: float) -> None:
        self._store, self._seconds = store, seconds

    def run_once(self) -> float:
        """One batch; soon again if there were more."""
        full = self._store.purge_failed(self._seconds, PURGE_AT_ONCE) >= PURGE_AT_ONCE
        return 1.0 if full else PURGE_EVERY

    def close(self) -> None:
        """Nothing to do."""
