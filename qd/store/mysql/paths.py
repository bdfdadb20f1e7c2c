"""Which claim path a server takes: found out once, and again when another server answers.

May import: probe, the pure modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from qd.events import ClaimPathChosen, Events
from qd.store.mysql.connection import Connection
from qd.store.mysql.probe import probe
from qd.store.protocol import ClaimPath


class Paths:
    """Shared by all stores of a database; every method may be called from any thread.

    Args:
        connect: opens a connection of a given name.
        forced: takes this path whatever the server can.
    """

    def __init__(self, connect: Callable[[str], Connection], events: Events, forced: ClaimPath | None) -> None:
        self._connect, self._events = connect, events
        self._forced = forced
        self._chosen = forced
        self._said: ClaimPath | None = None
        self._version = ""
        self._lock = threading.Lock()

    @property
    def known(self) -> ClaimPath | None:
        """The path, if it is known by now."""
        return self._chosen

    def find(self) -> ClaimPath:
        """The path; probed for if it isn't known.

        Raises:
            StoreError: the probe found nothing out.
        """
        chosen = self._chosen
        if chosen is not None:
            return chosen
        with self._lock:  # one probe at a time; the others wait for its bounded statements
            if self._chosen is None:
                self._choose(*probe(self._connect))
            return self._chosen or ClaimPath.CONDITIONAL

    def give_up_skip_locked(self, why: str) -> None:
        """The server refused SKIP LOCKED after all."""
        with self._lock:
            if self._chosen is ClaimPath.SKIP_LOCKED:
                self._choose(ClaimPath.CONDITIONAL, why)

    def server_seen(self, version: str) -> None:
        """A connection was opened; another version than before makes the path unknown again."""
        if self._version and version != self._version:
            self._chosen = self._forced
        self._version = version

    def _choose(self, path: ClaimPath, why: str) -> None:
        self._chosen = path
        if path is not self._said:
            self._said = path
            self._events.publish(ClaimPathChosen(path.value, why))
