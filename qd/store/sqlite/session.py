"""A session on a SQLite file: one connection, short write transactions, every wait bounded.

May import: dialect, outage, sqlite errors, the pure modules.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from qd.clock import monotonic
from qd.errors import SetupWrong, UnknownError
from qd.store.dialect import SQLITE, Cursor
from qd.store.outage import OutageRecord
from qd.store.sqlite.errors import sort

T = TypeVar("T")

STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""


@lru_cache(maxsize=1024)
def translated(sql: str) -> str:
    """The package's `%s` placeholders as SQLite's."""
    return sql.replace("%s", "?").replace("%%", "%")


class SqliteCursor:
    """A cursor that takes the package's SQL."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.in_driver = False
        self.statements = 0

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Runs one statement."""
        self.statements += 1
        self.in_driver = True
        self._cursor.execute(translated(sql), tuple(params))
        self.in_driver = False

    def fetchone(self) -> Any:
        """The next row, or None."""
        self.in_driver = True
        row = self._cursor.fetchone()
        self.in_driver = False
        return row

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        self.in_driver = True
        rows = self._cursor.fetchall()
        self.in_driver = False
        return rows


class SqliteSession:
    """See `qd.store.dialect.Session`. Belongs to one thread.

    Args:
        name: in messages.
        path: of the file.
        timeout: seconds for one transaction's wait and for each of its statements.
        make: the file and its folder, where they aren't there. Who only looks, or enqueues, makes neither.
    """

    dialect = SQLITE

    def __init__(self, name: str, path: str, timeout: float, record: OutageRecord, *, make: bool = False) -> None:
        self.name, self._path, self._timeout, self._record, self._make = name, path, timeout, record, make
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self.urgent = False
        self._opened_at = self._deadline = 0.0

    def transaction(self, work: Callable[[Cursor], T]) -> T:
        """See Session. Takes the write lock at its beginning, so that it never has to be run twice."""
        return self._run("BEGIN IMMEDIATE", work)

    def read(self, work: Callable[[Cursor], T]) -> T:
        """See Session."""
        return self._run("BEGIN", work)

    def close(self) -> None:
        """See Session."""
        held, self._connection = self._connection, None
        if held is not None and self._pid == os.getpid():
            held.close()

    def _run(self, begin: str, work: Callable[[Cursor], T]) -> T:
        connection = self._connected()
        started = monotonic()
        self._deadline = started + self._timeout
        cursor = SqliteCursor(connection.cursor())
        try:
            cursor.execute(begin)
            result = work(cursor)
            cursor.execute("COMMIT")
        except Exception as error:  # all of them: each ends the transaction, and is raised again
            self._record.sent(cursor.statements, committed=False)
            raise self._ended(cursor, error, monotonic() - started) from error
        except BaseException:  # an interrupt may have hit in the middle of a statement
            self.close()
            raise
        self._record.sent(cursor.statements, committed=True)
        self._record.succeeded(self.name, monotonic() - started, wrote=begin != "BEGIN")
        return result

    def _ended(self, cursor: SqliteCursor, error: Exception, took: float) -> Exception:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            try:
                connection.rollback()
            except sqlite3.Error:  # then closing it does
                self.close()
        if not cursor.in_driver:  # the work's own: NotFound, Refused, a bug
            return error
        said = sort(error, f"{self.name} on {self._path}")
        if isinstance(said, UnknownError):
            self.close()
            self._record.lost(self.name, self._opened_at, said)
        else:
            self._record.refused(self.name, said, took)
        return said

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            return self._connection
        self._connection = None  # a forked child's copy is the parent's
        try:
            self._connection = self._open()
        except Exception as error:  # sorted and raised again
            said = sort(error, f"opening {self._path}")
            self._record.lost(self.name, None, said)
            raise said from error
        self._pid, self._opened_at = os.getpid(), monotonic()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        file = Path(self._path).absolute()
        if self._make:
            file.parent.mkdir(parents=True, exist_ok=True)
        elif not file.exists():
            raise SetupWrong(f"there is no file {self._path}: run `qd migrate`")
        connection = sqlite3.connect(
            f"{file.as_uri()}?mode={'rwc' if self._make else 'rw'}", uri=True, timeout=self._timeout,
            isolation_level=None, check_same_thread=False, cached_statements=256,
        )  # fmt: skip
        self._deadline = monotonic() + self._timeout
        connection.set_progress_handler(self._late, STEPS)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _late(self) -> bool:
        """Interrupts a statement that has run too long."""
        return monotonic() > self._deadline
