"""Enqueuing in sessions of any time zone, isolation level, sql_mode and increment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import mysql.connector
import pymysql
import pytest

import qd
from qd.errors import BadInput
from tests.contract.enqueue.callers import old_snapshots_may_write, sqlite_caller
from tests.support.mariadb import MariaDB
from tests.support.server import PASSWORD, Server

BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3"
AUTUMN = 1792888200  # 2026-10-25 00:30 UTC: 02:30 in Berlin, which comes again an hour later
SPRING = 1774745880  # 2026-03-29 00:58 UTC: 01:58 in Berlin, two minutes before 03:00
LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


@pytest.fixture
def berlin(own_mariadb: Callable[..., MariaDB]) -> Iterator[tuple[MariaDB, str]]:
    """A server whose system time zone has daylight saving time, and a database on it."""
    server = own_mariadb(zone=BERLIN)
    yield server, server.new_database()


def epochs(server: Server, database: str) -> list[float]:
    """Due times of all jobs by id, as seconds since 1970, which no time zone changes."""
    rows = server.run("SELECT UNIX_TIMESTAMP(available_at) FROM qd_jobs ORDER BY id", database=database)
    return [float(row[0]) for row in rows]


@pytest.mark.parametrize("now", [AUTUMN, AUTUMN + 1500, AUTUMN + 3600, SPRING])
@pytest.mark.parametrize("zone", ["SYSTEM", "+05:30", "-11:00", "+00:00"])
def test_a_delay_is_exact_in_every_zone_and_around_changes_of_clocks(
    berlin: tuple[MariaDB, str], zone: str, now: int
) -> None:
    server, database = berlin
    with closing(server.connect(database, user="shop")) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = %s", (zone,))
        cursor.execute("SET timestamp = %s", (now,))
        qd.enqueue(cursor, "t", delay=300)
        qd.enqueue(cursor, "t")
        qd.enqueue_many(cursor, [qd.NewJob("t", delay=7200), qd.NewJob("t"), qd.NewJob("t", delay=1, unique_key="k")])
        cursor.execute("SELECT @@session.time_zone")
        assert cursor.fetchall() == [(zone,)]
        connection.commit()
    offsets = [due - now for due in epochs(server, database)]
    assert offsets == [300, 0, 7200, 0, 1]


def test_plain_sql_with_the_sessions_zone_at_utc_is_exact_too(berlin: tuple[MariaDB, str]) -> None:
    server, database = berlin
    with closing(server.connect(database, user="shop")) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SET timestamp = %s", (AUTUMN,))
        cursor.execute("INSERT INTO qd_jobs (type, available_at) VALUES ('t', NOW(6) + INTERVAL 5 MINUTE)")
        connection.commit()
    assert epochs(server, database) == [AUTUMN + 300]


def test_the_zone_is_restored_when_the_insert_fails(mariadb: Server, mysql_database: str) -> None:
    with closing(mariadb.connect(mysql_database)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute("SET time_zone = '+03:00'")
        cursor.execute("DROP TABLE qd_jobs")
        for act in (
            lambda: qd.enqueue(cursor, "t", delay=5),
            lambda: qd.enqueue_many(cursor, [qd.NewJob("t", delay=5)]),
        ):
            with pytest.raises(mysql.connector.ProgrammingError):
                act()
            cursor.execute("SELECT @@session.time_zone")
            assert cursor.fetchall() == [("+03:00",)]


def test_a_plain_job_is_one_statement_and_one_with_a_key_is_two(mariadb: Server, mysql_database: str) -> None:
    with closing(mariadb.connect(mysql_database)) as connection, closing(connection.cursor()) as cursor:

        def questions() -> int:
            cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
            return int(cursor.fetchall()[0][1])

        for key, statements in ((None, 1), ("free", 2), ("free", 2)):
            before = questions()
            qd.enqueue(cursor, "t", {"a": 1}, unique_key=key)
            assert questions() - before == statements + 1  # and this question


@pytest.mark.parametrize("mode", ["", "ANSI,TRADITIONAL", "NO_BACKSLASH_ESCAPES", "NO_AUTO_VALUE_ON_ZERO"])
def test_any_sql_mode_will_do(mariadb: Server, mysql_database: str, mode: str) -> None:
    with closing(mariadb.connect(mysql_database, user="shop", sql_mode=mode)) as connection:
        cursor = connection.cursor()
        plain = [qd.enqueue(cursor, "t", {"a": 1}, unique_key=key, delay=5) for key in (None, "k", "k")]
        many = qd.enqueue_many(cursor, [qd.NewJob("t"), qd.NewJob("t", unique_key="k")])
        connection.commit()
    assert plain[1] == plain[2] == many[1]
    assert mariadb.run("SELECT COUNT(*) FROM qd_jobs", database=mysql_database) == [(3,)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("autocommit", [False, True])
def test_eight_at_once_with_one_key_make_one_job(
    mariadb: Server, mysql_database: str, level: str, autocommit: bool
) -> None:
    def enqueue(cursor: Any, number: int) -> int:
        if number % 2:
            return qd.enqueue(cursor, "t", number, unique_key="k")
        return qd.enqueue_many(cursor, [qd.NewJob("t", number, unique_key="k")])[0]

    def act(number: int) -> int:
        with closing(mariadb.connect(mysql_database, user="shop", autocommit=autocommit)) as connection:
            cursor = connection.cursor()
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            gate.wait(20)
            while True:
                try:
                    job = enqueue(cursor, number)
                    connection.commit()
                    return job
                except mysql.connector.Error as error:
                    # SERIALIZABLE locks whatever is read, so that these may deadlock, and MariaDB 11.6 and newer
                    # refuse what has changed since the snapshot; the caller tries the whole again
                    assert error.errno in (1213, 1020) and level != "READ COMMITTED", error
                    connection.rollback()

    gate = threading.Barrier(8)
    ids = together([lambda number=number: act(number) for number in range(8)])
    assert mariadb.run("SELECT id FROM qd_jobs", database=mysql_database) == [(ids[0],)]
    assert ids == [ids[0]] * 8


def test_eight_at_once_with_one_key_make_one_job_in_sqlite(tmp_path: Path) -> None:
    sqlite_caller(tmp_path / "qd.sqlite3").connection.close()
    gate = threading.Barrier(8)

    def act() -> int:
        with closing(sqlite_caller(tmp_path / "qd.sqlite3", create=False).connection) as connection:
            gate.wait(20)
            job = qd.enqueue(connection.cursor(), "t", unique_key="k")
            connection.commit()
            return job

    assert together([act] * 8) == [1] * 8


def together(acts: list[Callable[[], int]]) -> list[Any]:
    """What the acts return, or raise, each run in a thread of its own."""
    results: list[Any] = [None] * len(acts)

    def run(place: int) -> None:
        try:
            results[place] = acts[place]()
        except Exception as error:  # to be seen by the test, which compares it
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_a_key_taken_after_the_transactions_snapshot_is_found(mariadb: Server, mysql_database: str) -> None:
    with closing(mariadb.connect(mysql_database, user="shop")) as connection:
        cursor = connection.cursor()
        old_snapshots_may_write(cursor)
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT COUNT(*) FROM qd_jobs")
        assert cursor.fetchall() == [(0,)]
        mariadb.run("INSERT INTO qd_jobs (id, type, unique_key) VALUES (41, 't', 'k')", database=mysql_database)
        assert qd.enqueue_many(cursor, [qd.NewJob("t", unique_key="k")]) == [41]
        assert qd.enqueue(cursor, "t", unique_key="k") == 41


@pytest.mark.parametrize(("increment", "offset"), [(1, 1), (7, 3), (2, 2)])
def test_ids_are_right_under_any_auto_increment(
    mariadb: Server, mysql_database: str, increment: int, offset: int
) -> None:
    with closing(mariadb.connect(mysql_database)) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET SESSION auto_increment_increment = {increment}, SESSION auto_increment_offset = {offset}")
        jobs = [qd.NewJob("t", n, unique_key=f"k{n}" if n % 5 == 0 else None) for n in range(1500)]
        ids = qd.enqueue_many(cursor, jobs)
        connection.commit()
    rows = dict(mariadb.run("SELECT id, payload FROM qd_jobs", database=mysql_database))
    assert [int(rows[job_id]) for job_id in ids] == list(range(1500))


@pytest.mark.parametrize("level", LEVELS[:2])
@pytest.mark.parametrize("before", [0, 1, 4, 20, 100])
def test_no_enqueue_waits_for_another_transactions_open_insert(
    mariadb: Server, mysql_database: str, level: str, before: int
) -> None:
    with closing(mariadb.connect(mysql_database)) as other, closing(mariadb.connect(mysql_database)) as own:
        theirs, ours = other.cursor(), own.cursor()
        for cursor in (theirs, ours):
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        held = qd.enqueue_many(ours, [qd.NewJob("t", n, unique_key=f"k{n}") for n in range(before)])
        own.commit()
        qd.enqueue(theirs, "t", unique_key="a")
        qd.enqueue(theirs, "t", unique_key="z")
        again = qd.enqueue_many(ours, [qd.NewJob("t", n, unique_key=f"k{n}") for n in range(before + 3)])
        qd.enqueue(theirs, "t", unique_key="l")
        qd.enqueue(ours, "t", unique_key="m", delay=1)
        own.commit()
        other.commit()
    assert again[:before] == held
    assert mariadb.run("SELECT COUNT(*) FROM qd_jobs", database=mysql_database) == [(before + 7,)]


@pytest.fixture
def small(own_mariadb: Callable[..., MariaDB]) -> Iterator[tuple[MariaDB, str]]:
    """A server that takes statements of a megabyte, and a database on it."""
    server = own_mariadb("--max-allowed-packet=1M")
    yield server, server.new_database()


def test_a_payload_over_the_servers_packet_is_refused_and_the_connection_lives(small: tuple[MariaDB, str]) -> None:
    server, database = small
    with closing(server.connect(database, user="shop")) as connection, closing(connection.cursor()) as cursor:
        for payload in ("x" * 5_000_000, '"' * 400_000, "x" * 1_048_000):
            with pytest.raises(BadInput, match=r"^payload: \d+ bytes [^\n]*allowed: 1048576, [^\n]*max_allowed_packet"):
                qd.enqueue(cursor, "t", payload)
            with pytest.raises(BadInput, match=r"^job 1: payload: "):
                qd.enqueue_many(cursor, [qd.NewJob("t"), qd.NewJob("t", payload)])
        assert qd.enqueue(cursor, "t", "x" * 1_040_000) == 1
        connection.commit()
    assert server.run("SELECT COUNT(*) FROM qd_jobs", database=database) == [(1,)]


def test_many_large_jobs_are_sent_in_statements_that_the_server_takes(small: tuple[MariaDB, str]) -> None:
    server, database = small
    with closing(server.connect(database, user="shop")) as connection, closing(connection.cursor()) as cursor:
        jobs = [qd.NewJob("t", '"\\' * 1500, unique_key="k" if n % 400 == 7 else None) for n in range(800)]
        ids = qd.enqueue_many(cursor, [*jobs, qd.NewJob("t", "x" * 1_040_000), qd.NewJob("t")])
        connection.commit()
    assert len(ids) == 802 and ids[7] == ids[407]
    assert server.run("SELECT COUNT(*) FROM qd_jobs", database=database) == [(801,)]


def test_the_right_to_insert_is_enough_without_unique_keys(mariadb: Server, mysql_database: str) -> None:
    account = f"'{mariadb.prefix}narrow_{mysql_database}'@'%'"
    mariadb.run(f"CREATE USER {account} IDENTIFIED BY 'change-me'")
    mariadb.run(f"GRANT INSERT ON {mysql_database}.qd_jobs TO {account}")
    with closing(mariadb.connect(mysql_database, user=f"narrow_{mysql_database}")) as connection:
        cursor = connection.cursor()
        ids = [qd.enqueue(cursor, "t"), qd.enqueue(cursor, "t", delay=5)]
        ids += qd.enqueue_many(cursor, [qd.NewJob("t")] * 2)
        connection.commit()
    assert mariadb.run("SELECT id FROM qd_jobs ORDER BY id", database=mysql_database) == [(job,) for job in ids]
    mariadb.run(f"DROP USER {account}")


def test_a_job_that_is_finished_at_once_still_has_its_id_where_each_statement_commits(
    mariadb: Server, mysql_database: str
) -> None:
    class Racing(pymysql.cursors.Cursor):
        """After each INSERT a daemon is quicker than the caller's next statement."""

        def execute(self, query: str, args: Any = None) -> int:
            changed = super().execute(query, args)
            if query.startswith("INSERT"):
                mariadb.run("DELETE FROM qd_jobs", database=mysql_database)
            return int(changed)

    place = {"host": mariadb.host, "port": mariadb.port, "database": mysql_database}
    account = {"user": f"{mariadb.prefix}shop", "password": PASSWORD}
    with closing(pymysql.connect(**place, **account, autocommit=True)) as connection:
        ids = qd.enqueue_many(connection.cursor(Racing), [qd.NewJob("t", unique_key=key) for key in ("a", None, "b")])
    assert len(set(ids)) == 3
