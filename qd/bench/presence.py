"""Who is at work in benches' queues: how a bench shows that it lives, and which queues nobody lives in any more.

A bench has a row of its own in qd_daemons, beside those of its daemons, for these aren't there all the time.
May import: store protocol, identity, the plan, clock.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from qd.bench.plan import QUEUES
from qd.clock import monotonic, process_age
from qd.identity import Identity
from qd.store.protocol import ANNOUNCE_EVERY, DaemonRow, FullStore
from qd.version import __version__


class Presence:
    """A bench's sign of life.

    Args:
        queue: that it is at work in; clearing it removes the row.
    """

    def __init__(self, store: FullStore, queue: str) -> None:
        own = Identity()
        self._store, self._due = store, 0.0
        self._row = DaemonRow(f"{own.name}:bench", own.host, own.pid, __version__, (queue,), ())

    def show(self) -> None:
        """Seen now; cheap where it was shown a moment ago."""
        if monotonic() >= self._due:
            self._store.announce(self._row, process_age())
            self._due = monotonic() + ANNOUNCE_EVERY


@dataclass(frozen=True, slots=True)
class Found:
    """Benches' queues.

    Attributes:
        left: nobody is at work in them any more.
        busy: somebody is, or was within the last minute on another machine.
    """

    left: list[str]
    busy: list[str]


def found(store: FullStore) -> Found:
    """The queues of all benches that have left anything in the database, or are about to be done."""
    busy = {queue for row in store.daemons() if _lives(row) for queue in row.queues}
    queues = store.own_queues(QUEUES)
    return Found([queue for queue in queues if queue not in busy], [queue for queue in queues if queue in busy])


def _lives(row: DaemonRow) -> bool:
    """Whether it may still run: on this machine its process tells."""
    if row.host != Identity().host:
        return True
    with suppress(PermissionError):  # another user's
        try:
            os.kill(row.pid, 0)
        except ProcessLookupError:
            return False
    return True
