"""The care for pools, as a service: it asks no database, so that it goes on whatever is locked or away.

It has a thread of its own until the last job of its engine has ended: threads may get stuck in a drain too.
May import: pool, events, setback, clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from qd.clock import monotonic
from qd.events import ClaimsResumed, ClaimsStalled, Events, Problem
from qd.pool import WorkerPool
from qd.setback import Setback

TEND_EVERY = 5.0
"""Seconds between looks at the pools."""

UNWOKEN = "idle threads aren't woken"
"""What it comes to where only the poller's looks fail."""


class Standstill:
    """Says once that claims stand still, and once that they go on; one for all engines that follow each other."""

    def __init__(self, events: Events) -> None:
        self._events, self._lock = events, threading.Lock()
        self._since: float | None = None

    def tell(self, why: str | None) -> None:
        """Says it if it is news.

        Args:
            why: they stand still; None: they don't.
        """
        with self._lock:
            now, since = monotonic(), self._since
            if why is not None and since is None:
                self._since = now
                self._events.publish(ClaimsStalled(why))
            elif why is None and since is not None:
                self._since = None
                self._events.publish(ClaimsResumed(now - since))


class Tender:
    """Lets pools forget threads that have ended and dismiss spare ones; says where claims stand still, and its end.

    Args:
        up: whether the database answers; an outage is told elsewhere.
        closed: whether nothing is to be claimed any more.

    Attributes:
        looking: the poller's setback.
        standing: whom a standstill is told to.
    """

    name = "tender"

    def __init__(
        self,
        pools: Sequence[WorkerPool],
        events: Events,
        up: Callable[[], bool] = lambda: True,
        closed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._pools, self._events, self._up, self._closed = pools, events, up, closed
        self.looking = Setback(up=up)
        self.standing = Standstill(events)
        self._said = False

    def run_once(self) -> float:
        """Tends each pool; one that lacks a thread costs no other its turn."""
        if self._up() and not self._closed():
            why = self.standstill()
            self.standing.tell(why)
            self._tell_of_looks(why)
        failed: Exception | None = None
        for pool in self._pools:
            try:
                pool.tend()
            except Exception as error:  # handed to the thread once the others had their turn
                failed = error
        if failed is not None:
            raise failed
        return TEND_EVERY

    def standstill(self) -> str | None:
        """Why a pool, or every pool, has claimed nothing for a while though it should; None: nothing keeps them."""
        unwoken = self.looking.lasting(UNWOKEN)
        held = [pool.standstill(unwoken) for pool in self._pools]
        if unwoken is not None and all(held):
            return self.looking.lasting()
        return next((why for why in held if why is not None), None)

    def trouble(self) -> Setback | None:
        """The longest of the setbacks behind a standstill, for who takes over; None: there is none."""
        if self.standstill() is None:
            return None
        return max((self.looking, *(each for pool in self._pools for each in pool.setbacks())), key=Setback.seconds)

    def take_over(self, before: Tender) -> Setback | None:
        """Goes on with what the engine before has told; the trouble to begin in, if it is in any."""
        self.standing = before.standing
        trouble = before.trouble()
        if trouble is not None:
            self.looking.take_over(before.looking)
        return trouble

    def _tell_of_looks(self, standstill: str | None) -> None:
        """Threads claim what they find by themselves, and yet those that rest aren't called: said once."""
        unwoken = self.looking.lasting(UNWOKEN)
        rest = any(pool.counts()[0] for pool in self._pools)
        if unwoken is not None and standstill is None and rest and not self._said:
            self._said = True
            self._events.publish(Problem("poller", unwoken))
        elif unwoken is None:
            self._said = False

    def close(self) -> None:
        """Nothing to do."""
