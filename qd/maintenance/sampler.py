"""Counts the rows now and then, so that a scrape never has to.

However many ask for the metrics page, the rows are counted by this one service, in one statement, and
so rarely that counting costs at most 2 % of the time. Owns the snapshot that the depth gauges show: as
large as the configuration, however many queues the rows name.
May import: store protocol, metrics (for the snapshot's type) and the pure modules.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

from qd.clock import monotonic
from qd.errors import NotFound, StoreError
from qd.events import Events, Problem
from qd.metrics.catalogue import OTHER
from qd.metrics.depths import DepthSnapshot, by_queue
from qd.store.protocol import DaemonRow, QueueDepth

SHARE = 50
"""An interval is at least this many times what a count costs: 2 % of the time."""

BELIEVED = 3
"""A count that took more than this many times what the other of the last two took is believed so far only."""

FIRST_STRETCH = 60.0
"""Seconds that the first count, which may have met cold caches, can stretch the interval to."""

SLOW = 0.5
"""Seconds after which a failed count is asked whether the tables are out of reach or the count too dear; the
least time limit is longer."""

NO_JOB = 0
"""An id that no row has."""

SAY_AGAIN = 600.0
"""Seconds between two warnings about the same thing."""

ASK_AGAIN = 60.0
"""Seconds until qd_daemons is asked again whether others serve what we don't know."""


NAMED = 3
"""Queues that a warning names."""


class Counts(Protocol):
    """What the sampler asks of a store; every store offers it."""

    def depths(self, known: Collection[str]) -> list[QueueDepth]:
        """Counts of the known queues, and of all others together."""
        ...

    def strangers(self, known: Collection[str], limit: int) -> list[tuple[str, int]]:
        """The fullest of the other queues, and how many jobs wait in each."""
        ...

    def daemons(self) -> list[DaemonRow]:
        """Who runs."""
        ...

    def job(self, job_id: int) -> object:
        """Raises NotFound: an answer that costs nothing, and waits as a count does where the table is locked."""
        ...

    def failed(self, job_id: int) -> object:
        """The same of the dead letters."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


class Sampler:
    """The service (qd.maintenance.service) behind `qd_queue_jobs` and its neighbours.

    Args:
        store: its own, with a connection of its own.
        refresh: `http.refresh`, seconds between two counts where they are cheap.
        queues: the configured ones; rows in others are warned of.
        events: where it warns.
        clock: seconds that never run backwards.
    """

    name = "sampler"

    def __init__(
        self,
        store: Counts,
        refresh: float,
        queues: Collection[str],
        events: Events,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store, self._events, self._clock = store, events, clock
        self._refresh, self._known = refresh, tuple(queues)
        self._costs: deque[float] = deque(maxlen=2)
        self._snapshot = DepthSnapshot(interval=refresh)
        self._quiet: dict[str, float] = {}

    def snapshot(self) -> DepthSnapshot:
        """What the last count found; never changes in the reader's hands. From any thread."""
        return self._snapshot

    def run_once(self) -> float:
        """Counts the rows; seconds until the next count is wanted.

        Raises:
            StoreError: the database is away, or a table locked. A count that is merely too dear for its time limit
                raises nothing: it is made more rarely.
        """
        begun = self._clock()
        try:
            found = self._store.depths(self._known)
        except StoreError as error:
            return self._too_dear(self._clock() - begun, error)
        rows = by_queue(found, (*self._known, OTHER))
        interval = self._interval(self._clock() - begun)
        # The age counts from before the count: never younger than the rows were.
        self._snapshot = DepthSnapshot(tuple(rows.values()), interval, stamp=time.time(), taken=begun)
        if _waiting(rows[OTHER]):
            self._warn_of_strangers()
        return interval

    def close(self) -> None:
        """Closes the connection."""
        self._store.close()

    def _interval(self, cost: float) -> float:
        """The wait that keeps the cost at 2 %, by the dearer of the last two counts, within reason.

        By the cheaper one it would come to more than 2 % wherever counts vary. But one that is dear
        alone says little: the server stood still, or this process did. Were it believed whole, the
        gauges would stay away long after the trouble.
        """
        first = not self._costs
        self._costs.append(cost)
        stretched = SHARE * min(max(self._costs), BELIEVED * min(self._costs))
        if first:
            stretched = min(stretched, FIRST_STRETCH)
        return max(self._refresh, stretched)

    def _too_dear(self, spent: float, error: StoreError) -> float:
        """Tells tables that are out of reach (raises) from a count that its time limit ended (a longer wait).

        The interval that is shown stays as it was, so that the old numbers vanish in time.
        """
        if spent < SLOW:
            raise error
        self._reach()
        wait = self._interval(spent)
        text = f"counting the rows was given up after {spent:.1f} s ({error}); the depth metrics are missing"
        if self._due("dear"):
            self._say("dear", text)
        return wait

    def _reach(self) -> None:
        """Raises if the server is away, or a table locked as a whole: waiting for either costs it nothing."""
        for find in (self._store.job, self._store.failed):
            with suppress(NotFound):
                find(NO_JOB)

    def _warn_of_strangers(self) -> None:
        """Says that jobs wait where no daemon serves them: mostly a typo at the enqueue."""
        if not self._due("strangers"):
            return
        served = {queue for daemon in self._store.daemons() for queue in daemon.queues}
        unserved = self._store.strangers(sorted({*self._known, *served}), NAMED + 1)
        if unserved:
            self._say("strangers", _names(unserved))
        else:
            self._quiet["strangers"] = self._clock() + ASK_AGAIN

    def _due(self, what: str) -> bool:
        return self._clock() >= self._quiet.get(what, 0.0)

    def _say(self, what: str, text: str) -> None:
        self._quiet[what] = self._clock() + SAY_AGAIN
        self._events.publish(Problem(self.name, text))


def _waiting(row: QueueDepth) -> int:
    return row.ready + row.delayed + row.reserved + row.stale + row.blocked


def _names(fullest: Sequence[tuple[str, int]]) -> str:
    """The warning; the names come from anybody's INSERT, so they are quoted and cut."""
    named = ", ".join(f"{queue[:64]!a} ({jobs})" for queue, jobs in fullest[:NAMED])
    more = " and more" if len(fullest) > NAMED else ""
    return f"jobs wait in queues that neither this configuration nor a running daemon knows: {named}{more}"
