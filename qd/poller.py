"""The one poller of an engine: looks for all idle threads, in one non-locking statement.

Quick after work, slow when idle; every so often it looks without a lower bound, which finds what
was committed late. It also proves the database: nothing is claimed before the schema was checked.
A `Service`, but with a wait of its own: a datagram on the wake socket that names a queue of this daemon's begins the
next look, at once if `poll.min` has passed since the last.
May import: bell, sight, waking, config, store protocol and the pure modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from qd.bell import Bell
from qd.clock import monotonic
from qd.config.model import PollConfig
from qd.errors import StoreError
from qd.readiness import readable
from qd.setback import Setback
from qd.sight import Sight
from qd.store.protocol import Look, Store
from qd.waking import WakeSocket

FULL_LOOK_EVERY = 1.0
"""Seconds between full looks while they are cheap."""

FULL_LOOK_AT_LATEST = 30.0
"""Seconds between full looks at most, however dear they are: so late may a job be found whose
transaction was committed long after its due time."""

FULL_LOOK_SHARE = 0.02
"""Share of the time that full looks may take."""


QUICK_FOR = 1.0
"""Seconds after work for which looks stay at their quickest: what comes is likely to come soon."""


class Poller:
    """Looks for the threads that wait at the bell; a `Service`.

    Args:
        store: its own.
        grow: told the queues that have work which nobody is free for.
        setback: told of looks that fail.
    """

    name = "poller"

    def __init__(
        self,
        store: Store,
        queues: Sequence[str],
        bell: Bell,
        poll: PollConfig,
        grow: Callable[[set[str]], None],
        wake: WakeSocket | None = None,
        setback: Setback | None = None,
    ) -> None:
        self._store, self._queues, self._bell, self._poll = store, queues, bell, poll
        self._grow, self._wake = grow, wake
        self._setback = setback or Setback()
        self._pause = poll.min
        self._rested = 0.0
        self._woken = False
        self._full_at = 0.0
        self._full_cost = 0.0
        self.paused: frozenset[str] = frozenset()

    def run_once(self) -> float:
        """Looks if anybody waits or a full look is due; seconds until the next look.

        Raises:
            StoreError: the look failed.
        """
        self._woken = False
        try:
            self._look()
        except StoreError as error:
            self._setback.met(error)
            raise
        finally:
            self._rested = monotonic() + self._poll.min
        self._setback.overcome()
        return self._pause

    def wait(self, seconds: float) -> bool:
        """Waits, but no longer than until a wake has come and `poll.min` since the last round is over; True then.

        What others are woken for, whose queues aren't served here, begins no look.
        """
        if not (self._woken or self._hears(seconds)):
            return False
        self._woken, self._pause = True, self._poll.min
        rest = self._rested - monotonic()
        time.sleep(max(0.0, min(rest, seconds)))
        return rest <= seconds

    def _hears(self, seconds: float) -> bool:
        """Whether a wake came for a queue that is served."""
        if self._wake is None:
            time.sleep(seconds)
            return False
        return bool(readable(self._wake, within=seconds)) and not self._wake.read().isdisjoint(self._queues)

    def close(self) -> None:
        """Closes its connection and the wake socket."""
        if self._wake is not None:
            self._wake.close()
        self._store.close()

    def _look(self) -> None:
        if monotonic() >= self._full_at:
            self._take(self._look_fully())
        elif self._bell.idle():
            self._take(self._store.look(self._queues, full=False))

    def _look_fully(self) -> Look:
        started = monotonic()
        look = self._store.look(self._queues, full=True)
        cost, before = monotonic() - started, self._full_cost
        self._full_cost = cost
        self._full_at = monotonic() + full_look_pause(cost, before)
        return look

    def _take(self, look: Look) -> None:
        self.paused = look.paused
        unserved = self._bell.ring(Sight(look))
        if unserved:
            self._grow(unserved)
        served = len(unserved) < len(look.hits)
        if served or monotonic() - self._bell.worked_at < QUICK_FOR:
            self._pause = self._poll.min
        else:
            self._pause = min(self._poll.max, self._pause * 1.5)


def full_look_pause(cost: float, before: float) -> float:
    """Seconds until the next full look, by what this one and the one before it took (seconds).

    The cheaper of the two decides: a single dear one opened a connection, or stood in a stall.
    """
    return min(FULL_LOOK_AT_LATEST, max(FULL_LOOK_EVERY, min(cost, before) / FULL_LOOK_SHARE))
