"""What verbs and console ask of the rows: the AdminStore half of a store, as a mixin.

Each method is one transaction on the store's own session, tried again where the database undid it
(a deadlock, a lock not given in time, a unique key taken in the same moment). A look that waited for a lock
in vain isn't made again: only a lock on the whole table is in its way, and that one stays.
May import: the pure modules, protocol, dialect, the other admin modules, candidate, tending, texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar, cast

from qd.errors import BadInput, DataRefused, LockWait, Refused, StoreError, TransactionFailed
from qd.outcome import Verdict
from qd.store.admin import dead_letters, holding, inspection, jobs, measures, own
from qd.store.claim.candidate import POST
from qd.store.dialect import Cursor, Dialect, Session
from qd.store.listed import chunks
from qd.store.protocol import DaemonRow, Demand, FailedRow, Filter, Finding, Holder, JobRow, StaleRow, Store
from qd.store.settle.texts import as_text
from qd.store.tending import live

T = TypeVar("T")

TRIES = 3
"""How often a transaction is begun before its failure is told."""

TAKEN_JUST_NOW = 1062
"""The server's number for a key that another transaction took between our look and our insert."""

RECOVER_BATCH = 500
"""Stale rows read at once by `recover`."""

NO_LIMIT = 65_535
"""As many attempts as the column holds: for a row whose queue's policy isn't known."""


class AdminVerbs:
    """Every AdminStore method, see qd.store.protocol; the class that inherits is a Store itself."""

    _session: Session
    _fresh: Callable[[], Session]

    def list_jobs(self, where: Filter) -> list[JobRow]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: jobs.list_jobs(cursor, dialect, where))

    def job(self, job_id: int) -> JobRow:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: jobs.find_job(cursor, dialect, job_id))

    def release_job(self, job_id: int, max_attempts: int | None = None) -> None:
        """See AdminStore."""
        stale = self._act(lambda cursor, dialect: jobs.release(cursor, dialect, job_id, max_attempts))
        if stale is not None and self._store().reclaim(stale, NO_LIMIT) is Verdict.LOST:
            raise Refused(f"job {job_id} was changed by another just now; look at it again")

    def delete_job(self, job_id: int) -> None:
        """See AdminStore."""
        self._act(lambda cursor, dialect: jobs.delete(cursor, dialect, job_id))

    def count_jobs(self, where: Filter) -> tuple[int, int]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: jobs.count_jobs(cursor, dialect, where))

    def job_ids(self, where: Filter) -> list[int]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: jobs.job_ids(cursor, dialect, where))

    def delete_jobs(self, ids: Sequence[int], where: Filter) -> int:
        """See AdminStore."""
        return self._act(lambda cursor, dialect: jobs.delete_many(cursor, dialect, ids, where))

    def list_failed(self, where: Filter) -> list[FailedRow]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: dead_letters.list_failed(cursor, dialect, where))

    def count_failed(self, where: Filter) -> int:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: dead_letters.count_failed(cursor, dialect, where))

    def failed(self, job_id: int) -> FailedRow:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: dead_letters.find_failed(cursor, dialect, job_id))

    def retry_failed(self, job_id: int, up_to: int | None = None) -> int:
        """See AdminStore."""
        try:
            return self._act(lambda cursor, dialect: dead_letters.retry(cursor, dialect, job_id, up_to))
        except DataRefused as error:
            raise Refused(
                f"job {job_id}: the schema refuses it as it is ({error}); nothing was changed. "
                "Correct its row in qd_failed_jobs, then retry it"
            ) from error

    def delete_failed(self, job_id: int, up_to: int | None = None) -> None:
        """See AdminStore."""
        self._act(lambda cursor, dialect: dead_letters.delete(cursor, dialect, job_id, up_to))

    def failed_ids(self, where: Filter) -> list[tuple[int, int]]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: dead_letters.failed_ids(cursor, dialect, where))

    def pause(self, queue: str) -> None:
        """See AdminStore."""
        _check_queue(queue)
        self._act(lambda cursor, dialect: cursor.execute(_PAUSE[dialect.name].format(now=dialect.now), (queue,)))

    def resume(self, queue: str) -> None:
        """See AdminStore."""
        _check_queue(queue)
        self._act(lambda cursor, _: cursor.execute("UPDATE qd_queues SET paused_at = NULL WHERE name = %s", (queue,)))

    def recover(self, queue: str | None, max_attempts: Mapping[str, int], default: int) -> tuple[int, int]:
        """See AdminStore."""
        back = buried = 0
        for name in [queue] if queue is not None else self._look(_queues_with_stale):
            for verdict in self._recovered(name, max_attempts.get(name, default)):
                back += verdict is Verdict.SETTLED
                buried += verdict is Verdict.BURIED
        return back, buried

    def daemons(self) -> list[DaemonRow]:
        """See AdminStore."""
        return self._look(live)

    def position(self, job_id: int) -> int:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: jobs.position(cursor, dialect, job_id))

    def now(self) -> datetime:
        """See AdminStore."""
        return self._look(_now)

    def holders(self, queues: Sequence[str]) -> list[Holder]:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: holding.holders(cursor, dialect, queues))

    def key_holder(self, queue: str, unique_key: str) -> int | None:
        """See AdminStore."""
        return self._look(lambda cursor, dialect: holding.key_holder(cursor, dialect, queue, unique_key))

    def inspect(self, demand: Demand | None = None) -> Iterator[Finding]:
        """See AdminStore."""
        return inspection.inspect(self._fresh, demand)

    def own_queues(self, prefix: str) -> list[str]:
        """See AdminStore."""
        own.refuse_foreign(prefix)
        return self._look(lambda cursor, _: own.own_queues(cursor, prefix))

    def clear_own(self, queue: str) -> int:
        """See AdminStore."""
        own.refuse_foreign(queue)
        jobs_gone, letters_gone = (self._cleared(table, queue) for table in own.TABLES)
        for daemon in self._look(lambda cursor, _: own.daemons_of(cursor, queue)):
            self._store().withdraw(daemon)
        return jobs_gone + letters_gone

    def rows_read(self) -> int | None:
        """See AdminStore."""
        return measures.rows_read(self._session)

    def settings(self) -> dict[str, str]:
        """See AdminStore."""
        return measures.settings(self._session)

    def _cleared(self, table: str, queue: str) -> int:
        """Deletes all rows of a table in one of qd's own queues; how many."""
        count = 0
        while ids := self._look(lambda cursor, _: own.found(cursor, table, queue)):
            for some in chunks(ids, own.DELETED_AT_ONCE):
                self._act(partial(own.delete, table=table, queue=queue, ids=some))
            count += len(ids)
        return count

    def _store(self) -> Store:
        """The other half of the class that inherits this one."""
        return cast(Store, self)

    def _recovered(self, queue: str, max_attempts: int) -> Iterator[Verdict]:
        """Takes back what is stale; a row that another holds locked is tried once, not without end."""
        passed: set[StaleRow] = set()
        while rows := set(self._store().stale([queue], RECOVER_BATCH + len(passed))) - passed:
            for row in sorted(rows, key=lambda row: row.job_id):
                post = row.type == POST  # one that somebody moved; `ensure_posts` puts it back
                verdict = Verdict.LOST if post else self._store().reclaim(row, max_attempts)
                if verdict is Verdict.LOST:
                    passed.add(row)
                yield verdict

    def _act(self, work: Callable[[Cursor, Dialect], T]) -> T:
        """One transaction, begun anew where the database undid it."""
        dialect = self._session.dialect
        return _again(lambda: self._session.transaction(lambda cursor: work(cursor, dialect)))

    def _look(self, work: Callable[[Cursor, Dialect], T]) -> T:
        """The same for work that only reads."""
        dialect = self._session.dialect
        return _again(lambda: self._session.read(lambda cursor: work(cursor, dialect)), waits=1)


def _again(run: Callable[[], T], waits: int = TRIES) -> T:
    """Args: waits: how many waits for a lock may be in vain before that is told."""
    for tried in range(1, TRIES):
        try:
            return run()
        except StoreError as error:
            if not (isinstance(error, TransactionFailed) or error.errno == TAKEN_JUST_NOW):
                raise
            if isinstance(error, LockWait) and tried >= waits:
                raise
    return run()


_PAUSE = {
    "mysql": "INSERT INTO qd_queues (name, paused_at) VALUES (%s, {now}) "
    "ON DUPLICATE KEY UPDATE paused_at = COALESCE(paused_at, {now})",
    "sqlite": "INSERT INTO qd_queues (name, paused_at) VALUES (%s, {now}) "
    "ON CONFLICT (name) DO UPDATE SET paused_at = COALESCE(paused_at, {now})",
}
"""A queue that is paused already keeps the time of its pause."""


def _check_queue(queue: str) -> None:
    jobs.equalities({"queue": queue})
    if len(queue) > 64:
        raise BadInput(f"queue {queue!r}: a name has at most 64 characters")


def _queues_with_stale(cursor: Cursor, dialect: Dialect) -> list[str]:
    cursor.execute(f"SELECT DISTINCT queue FROM qd_jobs WHERE {jobs.in_state(dialect, 'stale')} ORDER BY queue")
    return [as_text(row[0]) for row in cursor.fetchall()]


def _now(cursor: Cursor, dialect: Dialect) -> datetime:
    cursor.execute(f"SELECT {dialect.now}")
    now = dialect.moment(cursor.fetchone()[0])
    assert now is not None  # NOW() is never NULL
    return now
