"""Finishing a job inside the handler's own transaction, fenced by the claim's token."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import mysql.connector
import pytest

from qd.errors import BadInput, QdError
from qd.store.callers.complete import complete
from tests.contract.enqueue.callers import CALLERS, Caller, sqlite_caller
from tests.support.server import Server

TOKEN = "host:7:nonce:worker:1"
RESERVED = "INSERT INTO qd_jobs (id, type, lane, attempts, reserved_by) VALUES ({}, 't', 1, 1, '{}')"


@pytest.fixture(params=[*CALLERS, "sqlite"])
def handler(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Caller]:
    """A handler's connection with each kind of cursor, on a database where job 5 is claimed."""
    if request.param == "sqlite":
        handler = sqlite_caller(tmp_path / "qd.sqlite3")
        handler.connection.execute(RESERVED.format(5, TOKEN))
        handler.connection.commit()
    else:
        server, database = request.getfixturevalue("mariadb"), request.getfixturevalue("mysql_database")
        server.run(RESERVED.format(5, TOKEN), database=database)
        handler = CALLERS[request.param](server, database, "qd")
    yield handler
    with suppress(Exception):  # a test may have broken it on purpose
        handler.connection.close()


def jobs(handler: Caller) -> list[int]:
    return [row[0] for row in handler.committed("SELECT id FROM qd_jobs ORDER BY id")]


def test_the_holder_finishes_its_job_with_its_transaction(handler: Caller) -> None:
    assert complete(handler.cursor(), 5, TOKEN) is True
    assert jobs(handler) == [5]
    handler.connection.commit()
    assert jobs(handler) == []


def test_a_rollback_leaves_the_job_as_if_complete_had_never_been_called(handler: Caller) -> None:
    assert complete(handler.cursor(), 5, TOKEN)
    handler.connection.rollback()
    row = "SELECT lane, reserved_by, attempts FROM qd_jobs WHERE id = 5"
    assert handler.committed(row) == [(1, TOKEN, 1)]
    assert complete(handler.cursor(), 5, TOKEN)


@pytest.mark.parametrize(("job_id", "token"), [(5, "host:7:nonce:worker:2"), (5, ""), (5, TOKEN + " x"), (6, TOKEN)])
def test_nobody_else_finishes_it(handler: Caller, job_id: int, token: str) -> None:
    assert complete(handler.cursor(), job_id, token) is False
    handler.connection.commit()
    assert jobs(handler) == [5]


def test_it_is_finished_once(handler: Caller) -> None:
    assert complete(handler.cursor(), 5, TOKEN)
    assert complete(handler.cursor(), 5, TOKEN) is False


def test_qds_tables_may_stand_in_another_database_of_the_server(mariadb: Server, mysql_database: str) -> None:
    mariadb.run(RESERVED.format(5, TOKEN), database=mysql_database)
    with closing(mariadb.connect("information_schema", user="qd")) as connection:
        assert complete(connection.cursor(), 5, TOKEN, database=mysql_database)
        connection.commit()
    assert mariadb.run("SELECT id FROM qd_jobs", database=mysql_database) == []


@pytest.mark.parametrize("rows", [1, 4, 20, 100])
def test_it_waits_for_no_other_transaction(mariadb: Server, mysql_database: str, rows: int) -> None:
    for number in range(rows):
        mariadb.run(RESERVED.format(10 + number, TOKEN), database=mysql_database)
    with closing(mariadb.connect(mysql_database)) as other, closing(mariadb.connect(mysql_database)) as own:
        theirs, ours = other.cursor(), own.cursor()
        ours.execute("SET SESSION innodb_lock_wait_timeout = 1")
        theirs.execute("INSERT INTO qd_jobs (id, type) VALUES (5, 't'), (1000, 't')")
        assert complete(ours, 10, TOKEN)
        own.commit()


class Refusing(sqlite3.Cursor):
    """Answers as MariaDB 11.6 and newer do when the row has changed since the snapshot."""

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        error = mysql.connector.OperationalError(
            msg="Record has changed since last read in table 'qd_jobs'", errno=1020
        )
        raise error


def test_a_snapshot_older_than_the_row_says_what_to_do(tmp_path: Path) -> None:
    with closing(sqlite_caller(tmp_path / "qd.sqlite3").connection) as connection:
        with pytest.raises(QdError, match="READ COMMITTED, or to be the transaction's first statement") as told:
            complete(connection.cursor(Refusing), 5, TOKEN)
        assert "\n" not in str(told.value)


def test_a_real_server_with_snapshot_isolation_is_understood(mariadb: Server, mysql_database: str) -> None:
    if not mariadb.run("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        pytest.skip("this server has no innodb_snapshot_isolation, so it never answers 1020 here")
    mariadb.run(RESERVED.format(5, TOKEN), database=mysql_database)
    with closing(mariadb.connect(mysql_database, user="qd")) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET SESSION innodb_snapshot_isolation = ON")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT COUNT(*) FROM qd_jobs")
        assert cursor.fetchall() == [(1,)]
        mariadb.run("UPDATE qd_jobs SET crashes = crashes + 1", database=mysql_database)  # as a renewal would
        with pytest.raises(QdError, match="READ COMMITTED"):
            complete(cursor, 5, TOKEN)
        connection.rollback()
        mariadb.run("UPDATE qd_jobs SET crashes = crashes + 1", database=mysql_database)
        assert complete(cursor, 5, TOKEN), "as the first statement it must pass"
        connection.rollback()
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        cursor.execute("SELECT COUNT(*) FROM qd_jobs")
        assert cursor.fetchall() == [(1,)]
        mariadb.run("UPDATE qd_jobs SET crashes = crashes + 1", database=mysql_database)
        assert complete(cursor, 5, TOKEN), "under READ COMMITTED it must pass"


def test_other_errors_of_the_driver_pass_through(mariadb: Server, mysql_database: str) -> None:
    mariadb.run("DROP TABLE qd_jobs", database=mysql_database)
    with closing(mariadb.connect(mysql_database)) as connection, pytest.raises(mysql.connector.ProgrammingError):
        complete(connection.cursor(), 5, TOKEN)


def test_what_is_no_cursor_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^cursor: "):
        complete(object(), 5, TOKEN)
