"""Which claim path a server takes: found out once, and again when another server answers.

May import: connection, probe, errors, outage, pacing, protocol, the pure modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from qd.errors import ConnectionLost, ReadOnlyServer, StoreError
from qd.events import ClaimPathChosen, Events
from qd.store.mysql.connection import Connection
from qd.store.mysql.errors import SLOW_TO_HEAL
from qd.store.mysql.probe import probe
from qd.store.outage import OutageRecord
from qd.store.pacing import Pacing
from qd.store.protocol import ClaimPath


class Paths:
    """Shared by all stores of a database; every method may be called from any thread.

    Args:
        connect: opens a connection of a given name.
        record: told of what kept a probe from finding out.
        forced: takes this path whatever the server can.
    """

    def __init__(
        self, connect: Callable[[str], Connection], events: Events, record: OutageRecord, forced: ClaimPath | None
    ) -> None:
        self._connect, self._events, self._record = connect, events, record
        self._pacing = Pacing()
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
            return self._chosen or self._probed()

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

    def _probed(self) -> ClaimPath:
        waiting = self._pacing.waiting()
        if waiting is not None:
            raise waiting.with_traceback(None)
        try:
            path, why = probe(self._connect)
        except StoreError as error:
            self._pacing.failed(error, later=error.errno in SLOW_TO_HEAL)
            if isinstance(error, ConnectionLost | ReadOnlyServer):
                self._record.lost("probe", None, error)
            else:
                self._record.refused("probe", error)
            raise
        self._pacing.succeeded()
        self._choose(path, why)
        return path

    def _choose(self, path: ClaimPath, why: str) -> None:
        self._chosen = path
        if path is not self._said:
            self._said = path
            self._events.publish(ClaimPathChosen(path.value, why))
