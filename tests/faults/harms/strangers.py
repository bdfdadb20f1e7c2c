"""Others in the same database: they lock rows and tables, keep transactions open, and make deadlocks."""

from __future__ import annotations

import random
from contextlib import closing, suppress

import mysql.connector

from tests.faults.harms.base import Harms, Lasting
from tests.faults.jobs import LEASE

_FILLED = (
    "CREATE TABLE IF NOT EXISTS ballast (n INT AUTO_INCREMENT PRIMARY KEY, words VARCHAR(20))",
    "INSERT INTO ballast (words) VALUES " + ", ".join(["('x')"] * 200),
)
"""Makes a stranger's transaction the heavier one, so that the server lets it win a deadlock."""


class StrangerHarms(Harms):
    """What people and other programs do."""

    def rows_locked(self, rng: random.Random) -> Lasting:
        """Rows, or a whole stretch of the index, are locked, now and then for longer than a lease."""
        stretch = "WHERE queue = 'default' AND priority = 2 ORDER BY lane, available_at LIMIT 20 FOR UPDATE"
        some = "ORDER BY RAND() LIMIT 3 FOR UPDATE"
        held = "WHERE lane = 1 ORDER BY RAND() LIMIT 3 FOR UPDATE"
        which = rng.choice([stretch, some, held])
        with closing(self._connection()) as connection:
            connection.cursor(buffered=True).execute(f"SELECT id FROM qd_jobs {which} SKIP LOCKED")
            yield rng.choice([0.3, 2.0, 4.0, 2 * LEASE + 2])

    def dead_letters_locked(self, rng: random.Random) -> Lasting:
        """Nothing can be moved to the dead letters."""
        with closing(self._connection()) as connection:
            connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            connection.cursor(buffered=True).execute(
                "SELECT id FROM qd_failed_jobs ORDER BY id DESC LIMIT 5 FOR UPDATE"
            )
            yield rng.choice([0.3, 2.0, 5.0])

    def table_locked(self, rng: random.Random) -> Lasting:
        """The whole table is locked, as by a dump or an ALTER."""
        with closing(self._connection()) as connection:
            connection.cursor().execute(f"LOCK TABLES qd_jobs {rng.choice(['READ', 'WRITE'])}")
            yield rng.choice([0.2, 1.0, 3.0])

    def insert_left_open(self, rng: random.Random) -> Lasting:
        """A job was put in, but not yet committed; it never will be."""
        with closing(self._connection()) as connection:
            connection.cursor().execute("INSERT INTO qd_jobs (type, payload) VALUES ('work', '{}')")
            yield rng.choice([0.3, 2.0, 5.0])

    def deadlock(self, rng: random.Random) -> Lasting:
        """Two rows that one claim holds are locked crosswise to the order in which they are settled or renewed."""
        for _ in range(rng.choice([1, 5, 20])):
            with (
                closing(self._connection()) as connection,
                suppress(mysql.connector.Error),
            ):  # it lost, or waited too long
                self._lock_crosswise(connection)
        yield 0.0

    def _lock_crosswise(self, connection: mysql.connector.MySQLConnection) -> None:
        cursor = connection.cursor(buffered=True)
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        cursor.execute(
            "SELECT MIN(id), MAX(id) FROM qd_jobs WHERE lane = 1 GROUP BY reserved_by HAVING COUNT(*) > 1 "
            "ORDER BY RAND() LIMIT 1"
        )
        pair = cursor.fetchone()
        connection.rollback()
        if pair is None:
            return
        for statement in _FILLED[1:]:
            cursor.execute(statement)
        for number in reversed(pair):
            cursor.execute("SELECT id FROM qd_jobs WHERE id = %s FOR UPDATE", (number,))
        connection.rollback()

    def prepare(self) -> None:
        """Makes the table that the stranger writes to."""
        self.server.run(_FILLED[0], (), self.fleet.database)

    def _connection(self) -> mysql.connector.MySQLConnection:
        return self.server.connect(self.fleet.database, autocommit=False, read_timeout=30)
