"""The small duties that share one thread and one connection, each at its own pace.

May import: service, store protocol and the pure modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qd.clock import monotonic, process_age
from qd.maintenance.service import Service
from qd.store.protocol import ANNOUNCE_EVERY, DaemonRow, Store

POSTS_EVERY = 10.0
"""Seconds between looks after missing or moved posts."""

PURGE_EVERY = 60.0
"""Seconds between purges of old dead letters."""

PURGE_AT_ONCE = 1000
"""Dead letters a purge deletes in one transaction."""


class Duties:
    """Several services as one: each round does those that are due.

    Args:
        close_store: closes the connection that they share.
    """

    name = "maintenance"

    def __init__(self, duties: Sequence[Service], close_store: Callable[[], None]) -> None:
        self._due = dict.fromkeys(duties, 0.0)
        self._close_store = close_store

    def run_once(self) -> float:
        """Does what is due; seconds until the next is. A duty that fails doesn't cost the others theirs."""
        failed: Exception | None = None
        for duty, due in self._due.items():
            if due <= monotonic():
                try:
                    self._due[duty] = monotonic() + duty.run_once()
                except Exception as error:  # handed to the thread once the others had their turn
                    failed = error
        if failed is not None:
            raise failed
        return max(0.05, min(self._due.values()) - monotonic())

    def close(self) -> None:
        """Closes each duty, then their connection."""
        for duty in self._due:
            duty.close()
        self._close_store()


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
