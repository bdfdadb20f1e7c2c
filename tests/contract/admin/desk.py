"""A database of either kind with stores of qd on it and a plain way in, for the tests of the verbs' SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from qd.config.model import DatabaseConfig
from qd.events import Events
from qd.store import open_database
from qd.store.protocol import FullStore
from tests.support.server import Server

OWNER = "web1:7:abc:w:1"


class Desk:
    """A fresh, migrated database.

    Args:
        server: where it is, or None for SQLite.
    """

    def __init__(self, config: DatabaseConfig, server: Server | None = None) -> None:
        self.config, self.server = config, server
        self.database = open_database(config, Events())
        self._stores: list[FullStore] = []

    @property
    def mysql(self) -> bool:
        """Whether it is on a server."""
        return self.server is not None

    def store(self, name: str = "qd test") -> FullStore:
        """A new store, closed by `close`."""
        self._stores.append(self.database.store(name))
        return self._stores[-1]

    def close(self) -> None:
        """Closes all stores."""
        for store in self._stores:
            store.close()

    def connect(self, **more: Any) -> Any:
        """A plain connection of the database's own driver."""
        if self.server is not None:
            return self.server.connect(self.config.name, **more)
        return sqlite3.connect(self.config.path, isolation_level=None)

    def sql(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Runs one statement, commits, and returns its rows; placeholders are `%s`."""
        with closing(self.connect(**({"autocommit": True} if self.mysql else {}))) as connection:
            cursor = connection.cursor()
            cursor.execute(sql if self.mysql else sql.replace("%s", "?"), params)
            return list(cursor.fetchall()) if cursor.description else []

    def moment(self, seconds: float) -> str:
        """SQL for a moment that many seconds from the database's now."""
        if self.mysql:
            return f"NOW(6) + INTERVAL {round(seconds * 1e6)} MICROSECOND"
        return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+.3f} seconds')"

    def job(self, state: str = "ready", due: float | None = None, **columns: Any) -> int:
        """Inserts a job in a state; its id.

        Args:
            due: seconds from now, if not 10 s away on the state's side.
        """
        lane = {"ready": 0, "delayed": 0, "reserved": 1, "stale": 1, "blocked": 2}[state]
        seconds = due if due is not None else (10 if state in ("delayed", "reserved") else -10)
        values = {"type": "send", "lane": lane, "reserved_by": OWNER if lane == 1 else None, **columns}
        return self._insert("qd_jobs", values, {"available_at": self.moment(seconds)})

    def dead(self, failed: float = -10, **columns: Any) -> int:
        """Inserts a dead letter that failed at a moment from now; its own id."""
        values = {
            "job_id": 500, "queue": "default", "type": "send", "payload": "{}", "priority": 2, "attempts": 3,
            "reason": "error", "error": "boom", **columns,
        }  # fmt: skip
        return self._insert("qd_failed_jobs", values, {"failed_at": self.moment(failed)})

    def row(self, job_id: int, *columns: str) -> tuple[Any, ...] | None:
        """Columns of a job's row, or None."""
        rows = self.sql(f"SELECT {', '.join(columns)} FROM qd_jobs WHERE id = %s", job_id)
        return rows[0] if rows else None

    def ids(self, table: str = "qd_jobs") -> list[int]:
        """All ids of a table, posts left out."""
        return [row[0] for row in self.sql(f"SELECT id FROM {table} WHERE type <> 'qd.post' ORDER BY id")]

    def _insert(self, table: str, values: dict[str, Any], expressions: dict[str, str]) -> int:
        columns = ", ".join([*values, *expressions])
        marks: Sequence[str] = ["%s"] * len(values)
        made = ", ".join([*marks, *expressions.values()])
        with closing(self.connect(**({"autocommit": True} if self.mysql else {}))) as connection:
            cursor = connection.cursor()
            sql = f"INSERT INTO {table} ({columns}) VALUES ({made})"
            cursor.execute(sql if self.mysql else sql.replace("%s", "?"), tuple(values.values()))
            return int(cursor.lastrowid)
