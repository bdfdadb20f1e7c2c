"""The end of handlers that could not be ended: the process must exit right after it.

May import: everything below the daemon.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from qd.acknowledge import Acknowledger
from qd.batch import Done
from qd.clock import monotonic
from qd.events import LeasesLeft
from qd.executors import Attempt
from qd.lease import Lease
from qd.policy import abandoned
from qd.runner import Shop
from qd.store.protocol import Store
from qd.worker import Worker

BOUND = 1.0
"""Seconds that it may take."""


class LastAct:
    """One engine's.

    Args:
        workers: its threads that live.
    """

    def __init__(self, shop: Shop, workers: Callable[[], Sequence[Worker]]) -> None:
        self._shop, self._workers = shop, workers

    def stuck(self) -> bool:
        """Whether a handler runs that could not be ended."""
        return any(worker.runner.attempt is not None for worker in self._workers())

    def perform(self, store: Store) -> None:
        """Ends what stuck threads hold, as a time-out where it was one.

        A process that outlived its SIGKILL keeps its lease: it might outlive us too.
        """
        shop = self._shop
        running = [(worker.runner.lease, worker.runner.attempt) for worker in self._workers()]
        ending = [(lease, attempt) for lease, attempt in running if lease and attempt and attempt.ends_with_us]
        done = [self._abandoned(lease, attempt) for lease, attempt in ending]
        shop.gate.deadline = monotonic() + BOUND
        writer = Acknowledger(store, shop.keeper, shop.events, shop.gate, lambda: None)
        act = threading.Thread(target=writer.settle, args=(done,), name="qd last act", daemon=True)
        act.start()
        act.join(BOUND)
        self.say_what_is_left()

    def say_what_is_left(self) -> None:
        """Warns of jobs whose ends could not be written."""
        left = [lease for lease in self._shop.keeper.held() if not lease.lost.is_set()]
        if left:
            hint = "they are taken back once their leases have run out: those that had run may run again"
            self._shop.events.publish(LeasesLeft(len(left), hint))

    def _abandoned(self, lease: Lease, attempt: Attempt) -> Done:
        policy = self._shop.policies[lease.job.queue]
        return lease, abandoned(lease.job, attempt.abandoned(), policy.max_attempts, policy.backoff.backoff())
