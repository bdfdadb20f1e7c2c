"""The care for pools, as a service. May import: pool, events, setback, clock."""

from __future__ import annotations

from collections.abc import Sequence

from qd.clock import monotonic
from qd.events import ClaimsResumed, ClaimsStalled, Events
from qd.pool import WorkerPool
from qd.setback import Setback

TEND_EVERY = 5.0
"""Seconds between looks at the pools."""


class Tender:
    """Lets pools forget threads that have ended and dismiss spare ones; says where claims stand still, and its end.

    Attributes:
        looking: the poller's setback.
    """

    name = "tender"

    def __init__(self, pools: Sequence[WorkerPool], events: Events) -> None:
        self._pools, self._events = pools, events
        self.looking = Setback()
        self._stalled_at: float | None = None

    def run_once(self) -> float:
        """Tends each pool."""
        for pool in self._pools:
            pool.tend()
        self._tell(self.standstill())
        return TEND_EVERY

    def standstill(self) -> str | None:
        """Why a pool, or every pool, has claimed nothing for a while though it should; None: nothing keeps them."""
        pools = (pool.standstill() for pool in self._pools)
        return self.looking.lasting() or next((why for why in pools if why is not None), None)

    def _tell(self, why: str | None) -> None:
        now = monotonic()
        if why is not None and self._stalled_at is None:
            self._stalled_at = now
            self._events.publish(ClaimsStalled(why))
        elif why is None and self._stalled_at is not None:
            self._events.publish(ClaimsResumed(now - self._stalled_at))
            self._stalled_at = None

    def close(self) -> None:
        """Nothing to do."""
