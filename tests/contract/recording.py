"""Records the statements that a store sends, so that the very same ones can be explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from qd.store.dialect import Cursor, Dialect, Session
from tests.contract.bench import Bench

T = TypeVar("T")

Statement = tuple[str, tuple[Any, ...]]


class RecordingSession:
    """A session that keeps each statement it passes on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.dialect: Dialect = session.dialect
        self.sent: list[Statement] = []
        self.urgent = False

    def transaction(self, work: Callable[[Cursor], T]) -> T:
        """Passes it on."""
        return self._session.transaction(lambda cursor: work(RecordingCursor(cursor, self.sent)))

    def read(self, work: Callable[[Cursor], T]) -> T:
        """Passes it on."""
        return self._session.read(lambda cursor: work(RecordingCursor(cursor, self.sent)))

    def close(self) -> None:
        """Passes it on."""
        self._session.close()


class RecordingCursor:
    """A cursor that keeps each statement it passes on."""

    def __init__(self, cursor: Cursor, sent: list[Statement]) -> None:
        self._cursor, self._sent = cursor, sent

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    def execute(self, sql: str, params: Sequence[Any] = ()) -> Any:
        """Passes it on."""
        self._sent.append((sql, tuple(params)))
        return self._cursor.execute(sql, params)

    def fetchone(self) -> Any:
        """Passes it on."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Passes it on."""
        return self._cursor.fetchall()


def explained(bench: Bench, statement: Statement) -> list[dict[str, Any]]:
    """The plan's lines that read qd_jobs."""
    assert bench.server is not None
    sql, params = statement
    plain = re.sub(r"^SET STATEMENT .*? FOR ", "", sql)
    with bench.stranger() as cursor:
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {plain}", params)
        names = [column[0] for column in cursor.description]
        lines = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [line for line in lines if line["table"] in ("qd_jobs", "j")]
