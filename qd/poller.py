"""The one poller of an engine: looks for all idle threads, in one non-locking statement.

Quick after work, slow when idle. Its looks begin at the low watermarks, so they are cheap; what was committed late is
found by the full look (qd.maintenance.full_look), which saves it a look of its own. It also proves the database:
nothing is claimed before the schema was checked.
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

UNASKED = 1.5
"""Seconds after which it looks though nobody waits, unless a full look has meanwhile: pools grow by what it finds."""

QUICK_FOR = 1.0
"""Seconds after work for which looks stay at their quickest: what comes is likely to come soon."""


AT_ONCE = 0.001
"""Seconds that are no wait."""


class Poller:
    """Looks for the threads that wait at the bell; a `Service`.

    Args:
        store: its own.
        grow: told the queues that have work which nobody is free for.
        setback: told of looks that fail.
        clock: the monotonic clock.
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
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._store, self._queues, self._bell, self._poll = store, queues, bell, poll
        self._grow, self._wake = grow, wake
        self._setback, self._clock = setback or Setback(), clock
        self._pause = poll.min
        self._rested = 0.0
        self._woken = False
        self._failed = False
        self._seen_at = float("-inf")

    def run_once(self) -> float:
        """Looks if anybody waits, or nobody has looked for long; seconds until the next look.

        Raises:
            StoreError: the look failed.
        """
        woken, self._woken = self._woken, False
        unseen = self._clock() - self._seen_at
        if (rest := self._pause - unseen) > AT_ONCE and not (woken or self._failed):
            return rest
        try:
            if self._bell.idle() or unseen >= UNASKED or self._failed:
                self.heed(self._store.look(self._queues, full=False))
        except StoreError as error:
            self._failed = True
            self._setback.met(error)
            raise
        finally:
            self._rested = self._clock() + self._poll.min
        self._failed = False
        self._setback.overcome()
        return self._pause

    def wait(self, seconds: float) -> bool:
        """Waits, but no longer than until a wake has come and `poll.min` since the last round is over; True then.

        What others are woken for, whose queues aren't served here, begins no look.
        """
        if not (self._woken or self._hears(seconds)):
            return False
        self._woken, self._pause = True, self._poll.min
        rest = self._rested - self._clock()
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

    def heed(self, look: Look) -> None:
        """Rings for what a look has just seen, its own or a full one; from any thread."""
        self._seen_at = self._clock()
        unserved = self._bell.ring(Sight(look))
        if unserved:
            self._grow(unserved)
        served = len(unserved) < len(look.hits)
        if served or self._clock() - self._bell.worked_at < QUICK_FOR:
            self._pause = self._poll.min
        else:
            self._pause = min(self._poll.max, self._pause * 1.5)
