"""What all connections of one database know together: is it up, when was it last in trouble.

Says each outage once: `DatabaseLost` at the first failure, `DatabaseRestored` at the first success,
over all connections. A loss on a connection that was opened before the last outage began, and has not
worked since, belongs to that outage. May import: the pure modules.
"""

from __future__ import annotations

import threading

from qd.clock import monotonic
from qd.errors import DataRefused, ReadOnlyServer, ServerBusy, SetupWrong, StoreError, TransactionFailed
from qd.events import (
    DatabaseErrorSeen,
    DatabaseLost,
    DatabaseRestored,
    Event,
    Events,
    Problem,
    Reconnected,
    TransactionEnded,
)

NEVER_WAIT = frozenset({"poller", "lease keeper"})
"""Connections whose statements are short and wait for nobody's rows: where these are slow the
server has stalled. A count of millions of rows, or an end that waits for a stranger's lock, is slow
for reasons of its own, and must not keep the sweep from its work for as long as that goes on."""

SLOW = 1.0
"""Seconds after which a transaction counts as trouble."""

CROWDED = frozenset({1040, 1203, 1226})
"""What a server says that gives out no more connections, to anybody or to this user."""

CROWDED_FOR = 60.0
"""Seconds since such a refusal for which those that can do without a lasting connection give theirs back."""

ALIVE_FOR = 2.0
"""Seconds since a success on any connection for which a refusal of a further one is no outage."""

SETTLES = 5.0
"""Seconds after an outage's end in which older connections may still be lost one after the other, though
they worked meanwhile, and it stays the same outage."""

SAY_AGAIN_AFTER = 60.0
"""Seconds until the same complaint on a healthy connection is said again."""


class OutageRecord:
    """Shared by all sessions of one Database; every method may be called from any thread."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._down_since: float | None = None
        self._needs_write = False
        self._distrusted = 0.0
        self._crowded_at = -CROWDED_FOR
        self._succeeded_at = 0.0
        self._unsaid: tuple[float, str, StoreError] | None = None
        self._begun_by: int | None = None
        self._last_began = self._last_ended = 0.0
        self._troubled_at = 0.0
        self._said: dict[int | str, float] = {}

    def up(self) -> bool:
        """False from a failure until the next success on any connection."""
        return self._down_since is None

    def troubled_at(self) -> float:
        """Monotonic time of the last failed or slow statement; 0.0: none yet."""
        return self._troubled_at

    def distrusted(self, opened_at: float) -> bool:
        """Whether a connection opened then may lead to a server that is no longer the primary.

        One that only reads would never notice: it is to be replaced once a write has gone elsewhere.
        """
        return opened_at < self._distrusted

    def crowded(self) -> bool:
        """Whether connections were refused a moment ago for want of room."""
        return monotonic() - self._crowded_at < CROWDED_FOR

    def lost(self, connection: str, opened_at: float | None, error: StoreError, used_at: float = 0.0) -> None:
        """A connection was lost, or could not be opened (`opened_at` None).

        Args:
            used_at: monotonic, of its last success.
        """
        with self._lock:
            now = monotonic()
            if error.errno in CROWDED:
                self._crowded_at = now
            crowded = self._for_want_of_room(opened_at, error, now)
            if crowded:
                self._unsaid = (now, connection, error)
            if not crowded or connection in NEVER_WAIT:  # on a server that is always full the sweep still has its work
                self._troubled_at = now
            begins = not crowded and self._begins(opened_at, error, used_at)
            if begins:
                self._down_since = self._last_began = now
                self._begun_by = error.errno
            if self._down_since is not None:
                self._needs_write = self._needs_write or isinstance(error, ReadOnlyServer)
            explains = not begins and self._explains(error, now)
        said = DatabaseLost(connection, str(error)) if begins else None
        self._tell(error, Problem(connection, str(error)) if explains else said)

    def _for_want_of_room(self, opened_at: float | None, error: StoreError, now: float) -> bool:
        """Whether one more connection was refused while others seem to work: the next success tells."""
        alive = self._down_since is None and now - self._succeeded_at < ALIVE_FOR
        return opened_at is None and error.errno in CROWDED and alive

    def _begins(self, opened_at: float | None, error: StoreError, used_at: float) -> bool:
        """Whether this is the first that is seen of an outage."""
        old = opened_at is not None and opened_at < self._last_began and used_at < self._last_ended + SETTLES
        of_the_last = old and not isinstance(error, ReadOnlyServer)  # which is said by a server that is there
        return self._down_since is None and not of_the_last

    def _explains(self, error: StoreError, now: float) -> bool:
        """Whether an outage that began as a mere loss turns out to be one that a person must end."""
        refusal = isinstance(error, SetupWrong | ServerBusy) or error.errno in CROWDED
        return self._down_since is not None and refusal and error.errno != self._begun_by and self._news(error, now)

    def _news(self, error: StoreError, now: float) -> bool:
        """Whether this complaint wasn't said within the last minute."""
        key = error.errno if error.errno is not None else type(error).__name__
        if now - self._said.get(key, -SAY_AGAIN_AFTER) < SAY_AGAIN_AFTER:
            return False
        self._said[key] = now
        return True

    def refused(self, connection: str, error: StoreError, seconds: float = 0.0) -> None:
        """A statement failed on a connection that lives, after so long; said at most once a minute.

        A deadlock, a row lock or a refused row is everyday life, and no trouble unless it was slow.
        """
        ordinary = isinstance(error, TransactionFailed | DataRefused)
        with self._lock:
            now = monotonic()
            if not ordinary or self._stalled(connection, seconds):
                self._troubled_at = now
            says = not ordinary and self._news(error, now)
        self._tell(error, Problem(connection, str(error)) if says else None)

    def succeeded(self, connection: str, seconds: float, *, wrote: bool) -> None:
        """A transaction was committed; it took this long. Reads don't end a read-only outage."""
        if self._stalled(connection, seconds):
            self._troubled_at = monotonic()
        self._succeeded_at = monotonic()
        if self._unsaid is not None:
            self._say_unsaid()
        if self._down_since is None:
            return
        with self._lock:
            since = self._down_since
            if since is None or (self._needs_write and not wrote):
                return
            if monotonic() - seconds < since:  # sent before the loss: its answer was on its way already
                return
            self._last_ended = monotonic()
            if self._needs_write:
                self._distrusted = self._last_ended
            self._down_since, self._needs_write = None, False
        self._events.publish(DatabaseRestored(connection, monotonic() - since))

    def _say_unsaid(self) -> None:
        """Others work on while one was refused for want of room: no outage, but to be said."""
        with self._lock:
            unsaid, now = self._unsaid, monotonic()
            if unsaid is None or now - unsaid[0] < ALIVE_FOR / 2:
                return
            self._unsaid = None
            _, connection, error = unsaid
            says = self._down_since is None and self._news(error, now)
        if says:
            self._events.publish(Problem(connection, str(error)))

    def _stalled(self, connection: str, seconds: float) -> bool:
        return seconds > SLOW and connection in NEVER_WAIT

    def reopened(self, connection: str) -> None:
        """A session has a new connection in place of one that was lost."""
        self._events.publish(Reconnected(connection))

    def sent(self, statements: int, *, committed: bool) -> None:
        """A transaction has ended, after so many statements."""
        self._events.publish(TransactionEnded(statements, committed))

    def _tell(self, error: StoreError, event: Event | None) -> None:
        self._events.publish(DatabaseErrorSeen(error.kind))
        if event is not None:
            self._events.publish(event)
