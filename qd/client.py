"""The verbs of `qd.enqueue` with a connection of their own, for who has no transaction to join.

May import: store, waking, config, the pure modules, and for `drain` the daemon's engine, at its first use.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from qd.backoff import Backoff
from qd.config import load_config
from qd.config.model import Config
from qd.errors import TransactionFailed
from qd.job import NewJob, plain
from qd.store import open_session
from qd.store.callers.enqueue import ROWS, checked, enqueue, insert
from qd.store.callers.new_row import NewRow
from qd.store.dialect import Cursor
from qd.waking import wake

if TYPE_CHECKING:
    from qd.daemon.work import WorkReport

T = TypeVar("T")

TRIES = 5
"""How often an enqueue is sent that the server undid as a whole (a deadlock, a lock not given)."""

AGAIN = Backoff(base=0.01, factor=3.0, cap=0.5, jitter=0.5)
"""Between these."""


class Client:
    """Enqueues in transactions of its own, and wakes this host's daemons after each commit.

    May be shared between threads: its one connection, opened at the first call, serves them one
    after the other. Use it as a context manager, or call `close`.

    Every verb raises `qd.BadInput` (nothing was written) or a `qd.StoreError`. One of these deserves
    care: a `ConnectionLost` whose `outcome_unknown` is True came from the COMMIT; the job may or may
    not be there, and only a unique key makes enqueuing it again harmless.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._session = open_session(config.database, "client")
        self._lock = threading.Lock()

    @classmethod
    def from_config(cls, path: str | None = None) -> Client:
        """A client of the database that a configuration file names.

        Args:
            path: the file; None looks for it as the command line does.

        Raises:
            ConfigError: with every problem of the file.
        """
        return cls(load_config(path))

    def enqueue(
        self,
        type: str,
        payload: Any = None,
        *,
        queue: str = "default",
        delay: float | timedelta = 0,
        priority: str | int = "normal",
        unique_key: str | None = None,
        max_attempts: int | None = None,
        at: datetime | None = None,
    ) -> int:
        """Adds a job, committed; its id. The arguments are those of `qd.enqueue`."""

        def work(cursor: Cursor) -> int:
            return enqueue(
                cursor, type, payload, queue=queue, delay=delay, priority=priority,
                unique_key=unique_key, max_attempts=max_attempts, at=at,
            )  # fmt: skip

        job_id = self._committed(work)
        if not delay and at is None:
            wake(queue)
        return job_id

    @overload
    def enqueue_many(self, jobs: Iterable[NewJob]) -> list[int]: ...
    @overload
    def enqueue_many(self, jobs: Iterable[NewJob], *, each: Callable[[list[int]], object]) -> None: ...
    def enqueue_many(
        self, jobs: Iterable[NewJob], *, each: Callable[[list[int]], object] | None = None
    ) -> list[int] | None:
        """Adds many jobs, committed: in one transaction, or with `each` in one for every 1,000.

        Without `each` all of them are held until the commit, to be sent again should the server undo it.
        With it, and an iterator such as a generator, a thousand are held at a time, and any number needs
        the same memory. What was committed stays if a later job, the iterator or `each` raises.

        Args:
            jobs: as for `qd.enqueue_many`.
            each: called with the ids of each thousand, in order, when they are committed.

        Returns:
            The ids in order; None with `each`, which has got them.
        """
        rows = iter(checked(jobs))
        if each is None:
            return self._insert(list(rows), 0)
        first = 0
        while batch := list(islice(rows, ROWS)):
            each(self._insert(batch, first))
            first += len(batch)
        return None

    def drain(self, queues: Sequence[str]) -> WorkReport:
        """Runs jobs of these queues here until none is ready; delayed ones aren't waited for.

        In this process, or in a child of it where a worker of one of them has `executor: process`. The
        handlers are those of the configuration and those that this process has registered; a child knows
        only those that a module registers which it can import.

        Returns:
            How many attempts succeeded, failed and were given back.

        Raises:
            StoreError: the database can't be used.
            ConfigError: a handler can't be loaded.
            HandlerError: or not in a child, and jobs are left for want of it.
        """
        from qd.daemon.work import drain

        return drain(self._config, [plain(queue) for queue in ([queues] if isinstance(queues, str) else queues)])

    def close(self) -> None:
        """Closes the connection; the next call would open a new one."""
        with self._lock:
            self._session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _insert(self, rows: list[NewRow], first: int) -> list[int]:
        """Inserts rows in one transaction and wakes the daemons; `first` is the first one's number."""
        ids = self._committed(lambda cursor: [job_id for made in insert(cursor, rows, first=first) for job_id in made])
        wake(*{row.queue for row in rows if not row.waits})
        return ids

    def _committed(self, work: Callable[[Cursor], T]) -> T:
        with self._lock:
            for failures in range(1, TRIES):
                try:
                    return self._session.transaction(work)
                except TransactionFailed:  # undone as a whole: nothing stands that could be there twice
                    time.sleep(AGAIN.delay(failures))  # what came first may have to arrive on this node first
            return self._session.transaction(work)
