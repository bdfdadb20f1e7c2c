"""A named session: opens its connection, runs transactions on it, sorts what goes wrong.

After a time-out or a loss the connection is discarded, never used again. A connection that was
found dead at a transaction's first statement (killed while idle) is replaced at once and the
transaction run once more; nothing else is retried here. May import: connection, errors, limits,
outage, pacing, dialect, the pure modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from qd.clock import monotonic
from qd.errors import (
    ConnectionLost,
    DataRefused,
    ReadOnlyServer,
    ServerBusy,
    SetupWrong,
    StoreError,
    UnknownError,
)
from qd.store.dialect import MYSQL, Cursor
from qd.store.mysql.connection import Connection
from qd.store.mysql.errors import SLOW_TO_HEAL, sort
from qd.store.mysql.limits import UNUSED
from qd.store.outage import CROWDED, SLOW, OutageRecord
from qd.store.pacing import Pacing

T = TypeVar("T")

IDLE_LONG = 10.0
"""Seconds without a statement after which a connection that is found dead may have been cut for idling: no
proxy or firewall is set to less, and what dies sooner was ended by somebody."""

KEEPER = "lease keeper"

LASTING = frozenset({KEEPER, "poller"})
"""Sessions that keep their connection where a server gives out too few. All others give theirs back after
each use, so that none that rests keeps one from another that has an end to write."""


READING = frozenset({"poller", "sampler", "schema"})
"""Sessions that ask one question at a time: each is a transaction of its own, with no COMMIT to be sent behind it, and
none keeps a lock on a table's definition from the question before."""


class WatchedCursor:
    """The connection's cursor during one transaction, with what is needed to judge a failure."""

    def __init__(self, connection: Connection) -> None:
        self._cursor, self._commit = connection.quick, connection.commit
        self.statements = 0
        self.wrote = False
        self.in_driver = False
        self.sent_at = 0.0
        self.sent: tuple[str, Sequence[Any]] = ("", ())

    @property
    def rowcount(self) -> int:
        return int(self._cursor.rowcount)

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid  # type: ignore[no-any-return]

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Sends one statement."""
        self.statements += 1
        self.sent = (sql, params)
        self.wrote = self.wrote or not sql.startswith("SELECT") or "FOR UPDATE" in sql
        self.in_driver = True
        self.sent_at = monotonic()
        self._cursor.execute(sql, params)
        self.in_driver = False

    def commit(self) -> None:
        """Commits; whoever asks for the last statement still sees what came before it."""
        self.statements += 1
        self.in_driver = True
        self.sent_at = monotonic()
        self._commit()

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._fetched(self._cursor.fetchone)

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        return list(self._fetched(self._cursor.fetchall))

    def _fetched(self, fetch: Callable[[], Any]) -> Any:
        self.in_driver = True
        rows = fetch()
        self.in_driver = False
        return rows

    def unwritable(self) -> bool:
        """Whether a parameter of the last statement can't be encoded; the driver says it in many ways."""
        try:
            for value in self.sent[1]:
                if isinstance(value, str):
                    value.encode()
        except UnicodeError:
            return True
        return False

    def size(self) -> int:
        """Bytes of the last statement, at most its real size."""
        sql, params = self.sent
        return len(sql) + sum(len(value) for value in params if isinstance(value, str | bytes))


class MySqlSession:
    """See `qd.store.dialect.Session`. Belongs to one thread.

    Args:
        name: of the connection, in messages and on the server.
        connect: opens a connection, or raises a StoreError.
        opened: told of each new connection, and whether another server may answer than the session's last one had.
    """

    dialect = MYSQL

    def __init__(
        self,
        name: str,
        connect: Callable[[], Connection],
        record: OutageRecord,
        opened: Callable[[Connection, bool], None],
    ) -> None:
        self.name = name
        self._connect, self._record, self._opened = connect, record, opened
        self._connection: Connection | None = None
        self._pacing = Pacing()
        self.urgent = name == KEEPER
        self._reading = name in READING
        self._first = True
        self._given_back_at: float | None = None

    def transaction(self, work: Callable[[Cursor], T]) -> T:
        """See Session."""
        return self._run(work, reads=False)

    def read(self, work: Callable[[Cursor], T]) -> T:
        """See Session."""
        return self._run(work, reads=True)

    def connected(self) -> Connection:
        """The connection, opened if there is none.

        Raises:
            StoreError: it can't be opened, or may not be tried yet.
        """
        held = self._connection
        if held is not None and held.pid == os.getpid():
            distrusted = self._record.distrusted(held.opened_at)
            if monotonic() - held.used_at < UNUSED and not distrusted:
                return held
            self.close()
            return self._open(lost=False, moved=distrusted)
        self._connection = None  # a forked child's copy is the parent's: not closed, see forked.py
        back = self._given_back_at
        return self._open(lost=back is None, moved=back is None or self._record.distrusted(back))

    def close(self) -> None:
        """See Session."""
        held, self._connection = self._connection, None
        if held is not None and held.pid == os.getpid():
            held.discard()

    def _run(self, work: Callable[[Cursor], T], *, reads: bool) -> T:
        connection = self.connected()
        cursor = WatchedCursor(connection)
        try:
            return self._once(connection, cursor, work, reads)
        except ConnectionLost as error:
            if not self._dead_on_arrival(cursor, error):
                raise
        connection = self._open()
        return self._once(connection, WatchedCursor(connection), work, reads)

    def _once(self, connection: Connection, cursor: WatchedCursor, work: Callable[[Cursor], T], reads: bool) -> T:
        started, in_commit = monotonic(), False
        try:
            if self._reading and not reads:
                cursor.execute("START TRANSACTION")
            result = work(cursor)
            if not (self._reading and reads):
                in_commit = True
                cursor.commit()
        except Exception as error:  # all of them: each ends the transaction, and is raised again
            self._record.sent(cursor.statements, committed=False)
            raise self._ended(connection, cursor, error, in_commit) from error
        except BaseException:  # an interrupt may have hit in the middle of an answer
            self.close()
            raise
        connection.used_at = monotonic()
        self._pacing.succeeded()
        self._record.sent(cursor.statements, committed=in_commit)
        self._record.succeeded(self.name, monotonic() - started, wrote=cursor.wrote and not reads)
        if self.name not in LASTING and self._record.crowded():
            self.close()
            self._given_back_at = monotonic()
        return result

    def _ended(self, connection: Connection, cursor: WatchedCursor, error: Exception, in_commit: bool) -> Exception:
        """Undoes the transaction, or discards the connection; the error to be raised."""
        if not cursor.in_driver:  # the work's own: NotFound, Refused, a bug
            self._roll_back(connection)
            return error
        took = monotonic() - cursor.sent_at
        timed_out = took >= connection.limits.statement * 0.95
        where = self._where(cursor, in_commit)
        said = sort(error, where, timed_out=timed_out, in_commit=in_commit)
        if cursor.unwritable():
            said = DataRefused(f"{where}: a text isn't valid Unicode and can't be sent")
        if isinstance(said, ConnectionLost) and not in_commit and cursor.size() > connection.max_packet:
            size, most = cursor.size(), connection.max_packet
            said = DataRefused(f"{where}: {size} bytes are more than the server's max_allowed_packet of {most}", 1153)
        self._note(connection, said, took, quietly=self._cut_while_idle(connection, cursor, said))
        return said

    def _note(self, connection: Connection, error: StoreError, took: float, *, quietly: bool) -> None:
        if isinstance(error, ConnectionLost | ReadOnlyServer):
            self.close()
            if quietly:
                return
            if isinstance(error, ReadOnlyServer):
                self._pacing.failed(error, later=False)
            self._record.lost(self.name, connection.opened_at, error, connection.used_at)
            return
        if isinstance(error, UnknownError):
            self.close()
            self._pacing.failed(error, later=False)
        else:
            self._roll_back(connection)
        self._record.refused(self.name, error, took)

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except Exception:  # then it isn't alive, and the server rolls back by itself
            self.close()

    def _dead_on_arrival(self, cursor: WatchedCursor, error: ConnectionLost) -> bool:
        """Whether nothing had been done yet, and it was no time-out: then it was dead before."""
        return cursor.statements <= 1 and not error.outcome_unknown and error.kind != "timeout"

    def _cut_while_idle(self, connection: Connection, cursor: WatchedCursor, error: StoreError) -> bool:
        """Whether a proxy or firewall has ended a connection that was of no use for a while: everyday life,
        and neither an outage nor trouble, if another can be opened at once."""
        idle = cursor.sent_at - connection.used_at >= IDLE_LONG
        at_once = monotonic() - cursor.sent_at < SLOW  # else it was alive, and died in the statement
        return idle and at_once and isinstance(error, ConnectionLost) and self._dead_on_arrival(cursor, error)

    def _open(self, *, lost: bool = True, moved: bool = True) -> Connection:
        """A new connection in place of one that was lost, or that another server may have taken over (`moved`)."""
        waiting = self._pacing.waiting()
        if waiting is not None:
            raise waiting.with_traceback(None)
        try:
            connection = self._connect()
        except StoreError as error:
            self._given_back_at = None
            later = error.errno in SLOW_TO_HEAL or isinstance(error, SetupWrong | ServerBusy)
            if self.urgent and error.errno in CROWDED:
                later = False
            self._pacing.failed(error, later=later)
            self._record.lost(self.name, None, error)
            raise
        self._connection = connection
        first, self._first, self._given_back_at = self._first, False, None
        if lost and not first:
            self._record.reopened(self.name)
        self._opened(connection, moved and not first)
        return connection

    def _where(self, cursor: WatchedCursor, in_commit: bool) -> str:
        return f"{self.name}: {'COMMIT' if in_commit else cursor.sent[0].split(' ', 1)[0]}"
