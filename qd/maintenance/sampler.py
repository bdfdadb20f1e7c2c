"""Counts the rows now and then, so that a scrape never has to.

However many ask for the metrics page, the rows are counted by this one service, in one statement, and
so rarely that counting costs at most 2 % of the time. Owns the snapshot that the depth gauges show: as
large as the configuration, however many queues the rows name.
May import: reach, store protocol, metrics (for the snapshot's type) and the pure modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Protocol

from qd.clock import monotonic
from qd.errors import StoreError
from qd.events import Events, Problem
from qd.maintenance.reach import Reachable, reach
from qd.metrics.catalogue import OTHER
from qd.metrics.depths import DepthSnapshot, by_queue
from qd.store.protocol import Count, DaemonRow
from qd.stretch import SHARE, StretchedPeriod

FIRST_STRETCH = 60.0
"""Seconds that the first count, which may have met cold caches, can stretch the interval to."""

SAY_AGAIN = 600.0
"""Seconds between two warnings about the same thing."""

ASK_AGAIN = 60.0
"""Seconds until qd_daemons is asked again what others serve, if nothing has to be said before."""

NAMED = 3
"""Queues that a warning names."""


class Counts(Reachable, Protocol):
    """What the sampler asks of a store; every store offers it."""

    def count(self, known: Collection[str]) -> Count:
        """Counts of the known queues, and of all others together."""
        ...

    def daemons(self) -> list[DaemonRow]:
        """Who runs."""
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
        self._known = tuple(queues)
        self._period = StretchedPeriod(refresh, FIRST_STRETCH)
        self._snapshot = DepthSnapshot(interval=refresh)
        self._quiet: dict[str, float] = {}
        self._served: frozenset[str] = frozenset()

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
            found = self._store.count(sorted({*self._known, *self._served}))
        except StoreError as error:
            return self._too_dear(self._clock() - begun, error)
        rows = by_queue(found.depths, (*self._known, OTHER))
        interval = self._period.after(self._clock() - begun)
        # The age counts from before the count: never younger than the rows were.
        self._snapshot = DepthSnapshot(tuple(rows.values()), interval, stamp=time.time(), taken=begun)
        if rows[OTHER].jobs:
            interval += SHARE * self._warn_of_strangers(found)
            self._snapshot = replace(self._snapshot, interval=interval)
        return interval

    def close(self) -> None:
        """Closes the connection."""
        self._store.close()

    def _too_dear(self, spent: float, error: StoreError) -> float:
        """Tells tables that are out of reach (raises) from a count that its time limit ended (a longer wait).

        The interval that is shown stays as it was, so that the old numbers vanish in time.
        """
        wait = self._period.given_up(spent, error, partial(reach, self._store))
        text = f"counting the rows was given up after {spent:.1f} s ({error}); the depth metrics are missing"
        if self._due("dear"):
            self._say("dear", text)
        return wait

    def _warn_of_strangers(self, found: Count) -> float:
        """Says that jobs wait where no daemon serves them: mostly a typo at the enqueue.

        The count itself names them. Only who serves what is asked, of qd_daemons, which is small; where that has
        changed, the next count tells those queues apart.

        Returns:
            seconds that this took of the database's time.
        """
        waiting = sum(depth.jobs for depth in found.depths if depth.queue == OTHER)
        tell = waiting > 0 and self._due("strangers")
        if not (tell or self._due("daemons")):
            return 0.0
        before, (told, spent) = self._served, self._ask_who_serves()
        if tell and not told:
            self._quiet["strangers"] = self._quiet["daemons"]
        elif tell and self._served == before:
            self._say("strangers", _names(found.others, waiting))
        # What failed has waited for a lock, most likely: it is tried again late, and holds up no count.
        return spent if told else 0.0

    def _ask_who_serves(self) -> tuple[bool, float]:
        """Learns which queues running daemons serve; whether it could be told, and what it took."""
        begun, told = self._clock(), False
        self._quiet["daemons"] = begun + ASK_AGAIN  # whatever becomes of it
        with suppress(StoreError):  # what was known holds on; if the database is away, the next count says so
            self._served = frozenset(queue for daemon in self._store.daemons() for queue in daemon.queues)
            told = True
        spent = self._clock() - begun
        self._quiet["daemons"] += SHARE * spent
        return told, spent

    def _due(self, what: str) -> bool:
        return self._clock() >= self._quiet.get(what, 0.0)

    def _say(self, what: str, text: str) -> None:
        self._quiet[what] = self._clock() + SAY_AGAIN
        self._events.publish(Problem(self.name, text))


def _names(queues: Sequence[str], jobs: int) -> str:
    """The warning; the names come from anybody's INSERT, so they are quoted and cut."""
    named = ", ".join(f"{queue[:64]!a}" for queue in queues[:NAMED])
    waits = "1 job waits" if jobs == 1 else f"{jobs:,} jobs wait"
    return f"{waits} in queues that neither this configuration nor a running daemon knows, among them {named}"
