"""Plain-SQL producers that go on while servers fail: what an application does, with its own retries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from qd.clock import monotonic
from tests.faults.jobs import NewJob, put
from tests.support.server import Server


class Producer:
    """Puts jobs in through one server, three a transaction, until it is stopped; undone ones are put in again.

    Args:
        pause: seconds between transactions.

    Attributes:
        conflicts: transactions that the server undid.
        lost: transactions of which nobody can say whether they stand; they aren't repeated.
    """

    def __init__(self, server: Server, database: str, seed: int, pause: float = 0.03) -> None:
        self._server, self._database, self._pause = server, database, pause
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self.conflicts = self.lost = self.put = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it, after the transaction that is under way."""
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            jobs = [NewJob(seconds=self._rng.choice([0.0, 0.0, 0.0, 0.05, 0.3])) for _ in range(3)]
            try:
                put(self._server, self._database, jobs)
                self.put += len(jobs)
            except Exception as error:  # the driver raises more than its own errors
                self.conflicts += getattr(error, "errno", None) == 1213
                self.lost += getattr(error, "errno", None) != 1213


@contextmanager
def producing(servers: Sequence[Server], database: str, seed: int = 1) -> Any:
    """A producer on each of these servers for as long as the block lasts."""
    producers = [Producer(server, database, seed + number) for number, server in enumerate(servers)]
    try:
        yield producers
    finally:
        for producer in producers:
            producer.stop()


def elapsed(seconds: float) -> Callable[[], bool]:
    """A condition that comes true after so many seconds."""
    end = monotonic() + seconds
    return lambda: monotonic() >= end
