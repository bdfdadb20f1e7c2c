"""The real tables beside the model, and owners: processes that claim, renew, sweep and settle.

An owner's COMMIT may be lost: before the server has it, or after, with only the answer missing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from qd.config.model import QueueConfig
from qd.errors import ConnectionLost
from qd.events import Event, Events
from qd.maintenance.duties import Announcer
from qd.maintenance.sweep import StaleSweep
from qd.store.protocol import ClaimPath, DaemonRow
from qd.store.store import SqlStore
from tests.contract.bench import Bench
from tests.contract.protocol_model import Entry, Letter, Row

QUEUES = ("default", "other")
LEASE = 1000.0
"""Seconds: nothing runs out by itself while an example runs."""

_JOB = "id, queue, payload, priority, max_attempts, unique_key, lane, attempts, crashes, reserved_by"
_LETTER = "job_id, queue, payload, priority, max_attempts, unique_key, attempts, history, reason, error, reserved_by"


class Tables:
    """Looks at the rows and moves due times, as a stranger with a connection of its own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._connection = self.connect(autocommit=True)

    def connect(self, *, autocommit: bool = False) -> Any:
        """A plain connection, to be closed by the caller."""
        bench = self.bench
        if bench.server is not None:
            return bench.server.connect(bench.config.name, autocommit=autocommit)
        return sqlite3.connect(bench.config.path, timeout=10, isolation_level=None if autocommit else "IMMEDIATE")

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def run(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """One statement, committed."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(sql if self.bench.server else sql.replace("%s", "?"), params)
            return list(cursor.fetchall()) if cursor.description else []

    def clear(self) -> None:
        """As in the beginning; posts stay."""
        for table in ("qd_jobs WHERE type <> 'qd.post'", "qd_failed_jobs", "qd_queues"):
            self.run(f"DELETE FROM {table}")

    def jobs(self) -> dict[int, Row]:
        """Every job."""
        times = f"available_at > {self._now()}, reserved_at IS NOT NULL"
        found = self.run(f"SELECT {_JOB}, {times}, last_error, history FROM qd_jobs WHERE type <> 'qd.post'")
        for row in found:
            assert row[11] == (row[6] == 1), f"job {row[0]}: reserved_at disagrees with its lane"
        return {
            row[0]: Row(*row[1:10], later=bool(row[10]), last_error=row[12], history=_history(row[13])) for row in found
        }

    def letters(self) -> dict[int, Letter]:
        """Every dead letter; no job may have two."""
        found = self.run(f"SELECT {_LETTER} FROM qd_failed_jobs")
        letters = {row[0]: Letter(*row[1:7], _history(row[7]), *row[8:]) for row in found}
        assert len(letters) == len(found), "one job, two dead letters"
        return letters

    def dues(self) -> dict[int, str]:
        """Every job's due time, as a claim orders by."""
        return {job: str(due) for job, due in self.run("SELECT id, available_at FROM qd_jobs")}

    def posts(self) -> int:
        """The rows at the lanes' ends."""
        return int(self.run("SELECT COUNT(*) FROM qd_jobs WHERE type = 'qd.post'")[0][0])

    def move(self, job: int, seconds: float) -> None:
        """Makes a row due so many seconds from now."""
        self.run(f"UPDATE qd_jobs SET available_at = {self._moment(seconds)} WHERE id = %s", job)

    def outdate(self, job: int) -> None:
        """Makes a dead letter old."""
        self.run(f"UPDATE qd_failed_jobs SET failed_at = {self._moment(-1000.0)} WHERE job_id = %s", job)

    @contextmanager
    def locked(self, jobs: list[int]) -> Iterator[None]:
        """A stranger's open transaction that has locked these rows; on servers."""
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for job in jobs:
                cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (job,))
                cursor.fetchall()
            yield
            connection.rollback()

    def _now(self) -> str:
        return self._moment(0.0)

    def _moment(self, seconds: float) -> str:
        if self.bench.server is not None:
            return f"NOW(6) + INTERVAL {round(seconds * 1e6)} MICROSECOND"
        return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+.3f} seconds')"


class Unanswered:
    """A session whose next COMMIT, or a later one, is lost as `lose` says: `before` or `after` it took effect."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.dialect = inner, inner.dialect
        self.lose: str | None = None
        self.spared = 0

    def transaction(self, work: Callable[[Any], Any]) -> Any:
        """As of the inner one, and lost if it is its turn."""
        if self.lose is None or self.spared:
            self.spared -= self.lose is not None
            return self._inner.transaction(work)
        how = self.lose
        with suppress(_Undone):
            self._inner.transaction(work if how == "after" else lambda cursor: _undone(work, cursor))
        self.lose = None
        raise ConnectionLost("the COMMIT had no answer", outcome_unknown=True)

    def read(self, work: Callable[[Any], Any]) -> Any:
        """As of the inner one."""
        return self._inner.read(work)

    def close(self) -> None:
        """As of the inner one."""
        self._inner.close()


class _Undone(Exception):
    """Ends a transaction without a COMMIT."""


def _undone(work: Callable[[Any], Any], cursor: Any) -> None:
    work(cursor)
    raise _Undone


class Owner:
    """One process: a Database object of its own, so low watermarks of its own.

    Attributes:
        patient: it bears with jobs of unknown type.
        published: its events.
        clock: its monotonic clock, which only the machine moves.
        seen: when its sweep first saw each (id, token, due), as the model has it.
    """

    def __init__(
        self, bench: Bench, name: str, path: ClaimPath, policies: Mapping[str, QueueConfig], *, patient: bool
    ) -> None:
        more: dict[str, Any] = {} if bench.server is None or bench.kind == "conditional" else {"claim_path": path}
        if not patient:
            more["unknown_type_patience"] = 0.0
        self.patient = patient
        self.published: list[Event] = []
        events = Events(self.published.append)
        database = bench.again(events, **more)
        self.session = Unanswered(database._session(name))
        self.store = SqlStore(name, self.session, database._shared, lambda: database._session(name))
        self.clock, self.troubled = 1000.0, 0.0
        self.seen: dict[tuple[int, str, str], float] = {}
        announcer = Announcer(self.store, DaemonRow(name, "host", 1, "1", tuple(policies), ()))
        troubled_at, clock = lambda: self.troubled, lambda: self.clock
        self.sweep = StaleSweep(self.store, policies, events, troubled_at, announcer.run_once, clock)


def _history(text: str | None) -> list[Entry]:
    entries = json.loads(text) if text else []
    for one in entries:
        assert one["end"].endswith("Z") and one["start"] <= one["end"], f"times that can't be: {one}"
    return [Entry(one["attempt"], one["worker"], one["outcome"], one["error"]) for one in entries]
