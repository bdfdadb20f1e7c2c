"""The clock over running handlers and the care for pools, as services. May import: executors, pool, clock."""

from __future__ import annotations

from collections.abc import Sequence

from qd.clock import monotonic
from qd.executors import Timekeeper
from qd.executors.timekeeper import IDLE_WAIT
from qd.pool import WorkerPool

TICK = 0.1
"""Seconds between looks at the running handlers: so late may a time-out be noticed."""

TEND_EVERY = 5.0
"""Seconds between looks at the pools."""


class TimekeeperService:
    """Gives the timekeeper its turns."""

    name = "timekeeper"

    def __init__(self, timekeeper: Timekeeper) -> None:
        self._timekeeper = timekeeper

    def run_once(self) -> float:
        """Interrupts what is past its time-out."""
        wait = self._timekeeper.tick(monotonic())
        return wait if wait == IDLE_WAIT else max(0.005, min(TICK, wait))

    def close(self) -> None:
        """Nothing to do."""


class Tender:
    """Lets pools forget threads that have ended and dismiss spare ones."""

    name = "tender"

    def __init__(self, pools: Sequence[WorkerPool]) -> None:
        self._pools = pools

    def run_once(self) -> float:
        """Tends each pool."""
        for pool in self._pools:
            pool.tend()
        return TEND_EVERY

    def close(self) -> None:
        """Nothing to do."""
