"""What a store test stands on: a database of one kind, its stores and events, and plain SQL beside them."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from qd.config.model import DatabaseConfig
from qd.events import Event, Events
from qd.job import ClaimedJob
from qd.outcome import Action, Outcome, OutcomeKind, Settlement
from qd.store.mysql.database import MySqlDatabase
from qd.store.protocol import Claim
from qd.store.store import SqlStore
from tests.support.server import Server

SUCCEEDED = Outcome(OutcomeKind.SUCCEEDED, seconds=0.1)
FAILED = Outcome(OutcomeKind.FAILED, error="it broke", traceback="Traceback ...", seconds=0.1)

_tokens = itertools.count(1)


@dataclass
class Bench:
    """One fresh database.

    Attributes:
        kind: `sqlite`, `mariadb` or `conditional` (MariaDB, claims without SKIP LOCKED).
        server: None for SQLite.
        again: another Database object on the same rows, as another process would have.
    """

    kind: str
    config: DatabaseConfig
    again: Callable[..., Any]
    server: Server | None = None
    seen: list[Event] = field(default_factory=list)
    _stores: list[SqlStore] = field(default_factory=list)
    database: Any = None

    def __post_init__(self) -> None:
        self.database = self.again(Events(self.seen.append))
        self.store = self.new_store("test")

    def new_store(self, name: str, database: Any = None) -> SqlStore:
        """A store with a connection of its own; closed at the end."""
        store: SqlStore = (database or self.database).store(name)
        self._stores.append(store)
        return store

    def close(self) -> None:
        """Closes all stores."""
        for store in self._stores:
            store.close()

    def again_with(self, **more: Any) -> Bench:
        """Another bench on the same MariaDB database, its configuration changed."""
        config = self.config.model_copy(update=more)
        return Bench(self.kind, config, lambda events: MySqlDatabase(config, events), self.server)

    def sql(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """A statement by a stranger, committed; `%s` placeholders everywhere."""
        if self.server is not None:
            return self.server.run(sql, params, self.config.name)
        with closing(sqlite3.connect(self.config.path, timeout=10)) as connection, connection:
            return list(connection.execute(sql.replace("%s", "?"), params).fetchall())

    def one(self, sql: str, *params: Any) -> Any:
        """The first column of the first row."""
        return self.sql(sql, *params)[0][0]

    @contextmanager
    def stranger(self, *statements: str, **more: Any) -> Iterator[Any]:
        """A MySQL connection with an open transaction in which these statements were run; rolled back."""
        assert self.server is not None
        with closing(self.server.connect(self.config.name, autocommit=False, **more)) as connection:
            with closing(connection.cursor(buffered=True)) as cursor:
                for statement in statements:
                    cursor.execute(statement)
                yield cursor
            connection.rollback()

    def add(self, count: int = 1, *, due: float = -1.0, **columns: Any) -> list[int]:
        """Jobs of type `noop`, due `due` seconds from now; their ids in order."""
        columns = {"type": "noop", "payload": "{}", **columns}
        names, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        if self.server is not None:
            moment = f"NOW(6) + INTERVAL {round(due * 1e6)} MICROSECOND"
        else:
            moment = f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{due:+.3f} seconds')"
        row = f"({marks}, {moment})"
        insert = f"INSERT INTO qd_jobs ({names}, available_at) VALUES "
        with self._transaction() as run:  # the ids are read before anybody can finish the jobs
            before = run("SELECT COALESCE(MAX(id), 0) FROM qd_jobs")[0][0]
            for start in range(0, count, 1000):
                rows = min(1000, count - start)
                run(insert + ", ".join([row] * rows), *list(columns.values()) * rows)
            return [row[0] for row in run("SELECT id FROM qd_jobs WHERE id > %s ORDER BY id", before)]

    @contextmanager
    def _transaction(self) -> Iterator[Callable[..., list[Any]]]:
        """Runs a stranger's statements in one transaction, committed at the end."""
        if self.server is None:
            with closing(sqlite3.connect(self.config.path, timeout=10)) as connection, connection:
                yield lambda sql, *params: list(connection.execute(sql.replace("%s", "?"), params))
            return
        with closing(self.server.connect(self.config.name, autocommit=False)) as connection:
            with closing(connection.cursor(buffered=True)) as cursor:

                def run(sql: str, *params: Any) -> list[Any]:
                    cursor.execute(sql, params)
                    return list(cursor.fetchall()) if cursor.description else []

                yield run
            connection.commit()

    def claim(self, limit: int = 10, store: SqlStore | None = None, **more: Any) -> list[ClaimedJob]:
        """Claims from `default` under a token of its own."""
        claim = {"queue": "default", "lease": 60.0, "token": new_token(), "max_attempts": 3, **more}
        return (store or self.store).claim(Claim(limit=limit, **claim))

    def row(self, job_id: int, *columns: str) -> tuple[Any, ...] | None:
        """Columns of a job's row, or None."""
        rows = self.sql(f"SELECT {', '.join(columns)} FROM qd_jobs WHERE id = %s", job_id)
        return rows[0] if rows else None

    def shift(self, job_id: int, seconds: float) -> None:
        """Moves a row's due time."""
        if self.server is not None:
            moment = f"NOW(6) + INTERVAL {round(seconds * 1e6)} MICROSECOND"
        else:
            moment = f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+.3f} seconds')"
        self.sql(f"UPDATE qd_jobs SET available_at = {moment} WHERE id = %s", job_id)

    def is_mariadb(self) -> bool:
        """Whether the server is a MariaDB; some names differ."""
        return "MariaDB" in str(self.one("SELECT VERSION()"))

    def lock_waits(self) -> int:
        """Statements that wait for a row lock now. (INNODB_TRX is no use in a loop: it is a cache.)"""
        return int(self.sql("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")[0][1])

    def rows_locked(self, connection: int) -> int:
        """Row locks that the open transaction of a connection holds now, as InnoDB itself tells it."""
        status = str(self.sql("SHOW ENGINE INNODB STATUS")[0][2])
        for transaction in status.split("---TRANSACTION")[1:]:
            if re.search(rf"thread id {connection},", transaction):
                locks = re.search(r"(\d+) row lock", transaction)
                return int(locks[1]) if locks else 0
        return 0

    def jobs(self) -> int:
        """Rows of qd_jobs that are jobs."""
        return int(self.one("SELECT COUNT(*) FROM qd_jobs WHERE type <> 'qd.post'"))

    def dead(self) -> int:
        """Rows of qd_failed_jobs."""
        return int(self.one("SELECT COUNT(*) FROM qd_failed_jobs"))

    def events(self, kind: type[Event]) -> list[Any]:
        """What was published of one kind."""
        return [event for event in self.seen if isinstance(event, kind)]


def sequence(count: int) -> str:
    """A derived table `s` with a column `seq` from 1 to count, on every server."""
    digits = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(10))
    total = " + ".join(f"{10**place} * d{place}.n" for place in range(6))
    tables = " JOIN ".join(f"({digits}) d{place}" for place in range(6))
    return f"(SELECT 1 + {total} AS seq FROM {tables} HAVING seq <= {count}) s"


def new_token() -> str:
    """A token that no claim had before."""
    return f"host:1:nonce:default-1:{next(_tokens)}"


def ended(job: ClaimedJob, action: Action, outcome: Outcome = FAILED, delay: float = 0.0) -> Settlement:
    """An end of a claim."""
    return Settlement(job, action, outcome, delay)


def finished(job: ClaimedJob) -> Settlement:
    """A job that succeeded."""
    return Settlement(job, Action.FINISH, SUCCEEDED)
