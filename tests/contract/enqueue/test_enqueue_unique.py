"""Unique keys in callers' transactions: one job a key, and nobody else kept waiting."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pymysql
import pytest

import qd
from tests.contract.enqueue.callers import old_snapshots_may_write
from tests.support.server import PASSWORD, Server

LEVELS = ["READ COMMITTED", "REPEATABLE READ"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("keys", [["a"], ["a", "m", "z"]])
@pytest.mark.parametrize("many", [False, True])
def test_a_transaction_that_met_a_taken_key_keeps_no_other_enqueue_waiting(
    mariadb: Server, mysql_database: str, level: str, keys: list[str], many: bool
) -> None:
    def enqueue(cursor: Any, key: str | None, queue: str = "default") -> int:
        if many:
            return qd.enqueue_many(cursor, [qd.NewJob("t", queue=queue, unique_key=key)])[0]
        return qd.enqueue(cursor, "t", queue=queue, unique_key=key)

    with closing(mariadb.connect(mysql_database)) as other, closing(mariadb.connect(mysql_database)) as own:
        theirs, ours = other.cursor(), own.cursor()
        for cursor in (theirs, ours):
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        held = [enqueue(theirs, key) for key in (None, *keys)]
        other.commit()
        assert enqueue(theirs, "a") == held[1]
        for key in (None, "0", "b", "y", "zz"):
            assert enqueue(ours, key) not in held
            own.rollback()
        assert enqueue(ours, "a") == held[1]
        assert enqueue(ours, None, "another") not in held


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("others", [0, 1])
def test_new_keys_that_are_not_committed_yet_keep_no_other_enqueue_waiting(
    mariadb: Server, mysql_database: str, level: str, many: bool, others: int
) -> None:
    with closing(mariadb.connect(mysql_database)) as other, closing(mariadb.connect(mysql_database)) as own:
        theirs, ours = other.cursor(), own.cursor()
        for cursor in (theirs, ours):
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        qd.enqueue_many(ours, [qd.NewJob("t", unique_key="m")] * others)
        own.commit()
        if many:
            qd.enqueue_many(theirs, [qd.NewJob("t", unique_key=key) for key in ("b", "k", "b", "x")])
        else:
            qd.enqueue(theirs, "t", unique_key="b")
        for key in (None, "a", "c", "n", "z"):
            qd.enqueue(ours, "t", unique_key=key)


def test_a_race_for_one_of_many_keys_leaves_one_job_a_key(mariadb: Server, mysql_database: str) -> None:
    class Racing(pymysql.cursors.Cursor):
        """Before the first INSERT somebody else takes a key."""

        raced = False

        def execute(self, query: str, args: Any = None) -> int:
            if query.startswith("INSERT") and not self.raced:
                self.raced = True
                mariadb.run("INSERT INTO qd_jobs (id, type, unique_key) VALUES (7, 't', 'b')", database=mysql_database)
            return int(super().execute(query, args))

    place = {"host": mariadb.host, "port": mariadb.port, "database": mysql_database}
    account = {"user": f"{mariadb.prefix}shop", "password": PASSWORD}
    with closing(pymysql.connect(**place, **account)) as connection:
        old_snapshots_may_write(connection.cursor())  # MariaDB 11.8 would answer 1020: the whole again
        ids = qd.enqueue_many(connection.cursor(Racing), [qd.NewJob("t", unique_key=key) for key in "abcb"])
        connection.commit()
    assert ids[1] == ids[3] == 7
    rows = mariadb.run("SELECT unique_key, id FROM qd_jobs ORDER BY unique_key", database=mysql_database)
    assert rows == list(zip("abc", ids, strict=False))


def test_a_key_that_an_old_snapshot_still_shows_taken_is_free(mariadb: Server, mysql_database: str) -> None:
    mariadb.run(
        "INSERT INTO qd_jobs (id, type, unique_key) VALUES (41, 't', 'k'), (42, 't', 'l')", database=mysql_database
    )
    with closing(mariadb.connect(mysql_database, user="shop")) as connection:
        cursor = connection.cursor()
        old_snapshots_may_write(cursor)
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT COUNT(*) FROM qd_jobs")
        assert cursor.fetchall() == [(2,)]
        mariadb.run("DELETE FROM qd_jobs", database=mysql_database)  # both are finished
        ids = [qd.enqueue(cursor, "t", unique_key="k"), *qd.enqueue_many(cursor, [qd.NewJob("t", unique_key="l")])]
        connection.commit()
    assert mariadb.run("SELECT id FROM qd_jobs ORDER BY id", database=mysql_database) == [(job,) for job in ids]
    assert min(ids) > 42
