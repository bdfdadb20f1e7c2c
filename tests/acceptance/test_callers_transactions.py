"""A job that is enqueued in its caller's transaction exists exactly when that does: never before, never without it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

import qd as library
from qd.clock import monotonic
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

NAP = {"seconds": 0}


def by_api(cursor: Any) -> int:
    """The documented function."""
    return library.enqueue(cursor, "nap", NAP)


def by_sql(cursor: Any) -> int:
    """The documented statement."""
    cursor.execute("INSERT INTO qd_jobs (type, payload) VALUES ('nap', %s)", (json.dumps(NAP),))
    return int(cursor.lastrowid)


WAYS = pytest.mark.parametrize("enqueue", [by_api, by_sql])


@contextmanager
def caller(qd: Qd) -> Iterator[tuple[Any, Any]]:
    """An application's connection as it comes from the server: REPEATABLE READ, no autocommit."""
    connection = qd.server.connect(qd.database, autocommit=False)
    with closing(connection), closing(connection.cursor(buffered=True)) as cursor:
        yield connection, cursor


def rounds(qd: Qd, seconds: float) -> Callable[[], bool]:
    """Whether so long has passed, with the daemon at work: a job of its own ran meanwhile."""
    end = monotonic() + seconds
    (probe,) = qd.enqueue("nap", seconds=seconds)
    return lambda: monotonic() >= end and bool(qd.ran("end", probe))


@WAYS
def test_a_job_starts_after_its_callers_commit_and_not_before(qd: Qd, enqueue: Callable[[Any], int]) -> None:
    qd.sql("CREATE TABLE orders (id INT)")
    daemon = qd.start()
    with caller(qd) as (connection, cursor):
        cursor.execute("INSERT INTO orders VALUES (7)")
        job = enqueue(cursor)
        assert connection.in_transaction
        wait_for(rounds(qd, 3), 20, "three seconds with the transaction open")
        assert not qd.ran("start", job) and qd.sql("SELECT * FROM orders") == []
        connection.commit()
        wait_for(lambda: qd.ran("end", job), 5, "the job after the commit")
    assert daemon.stop() == 0


@WAYS
def test_a_rollback_takes_the_job_back(qd: Qd, enqueue: Callable[[Any], int]) -> None:
    daemon = qd.start()
    with caller(qd) as (connection, cursor):
        job = enqueue(cursor)
        connection.rollback()
    wait_for(rounds(qd, 2), 20, "two seconds after the rollback")
    wait_for(lambda: qd.jobs() == 0, 5, "no row to be left")
    assert not qd.ran("start", job) and daemon.stop() == 0


@WAYS
def test_a_lower_id_that_is_committed_later_runs_all_the_same(qd: Qd, enqueue: Callable[[Any], int]) -> None:
    daemon = qd.start()
    with caller(qd) as (slow, its_cursor), caller(qd) as (quick, other):
        low = enqueue(its_cursor)
        high = enqueue(other)
        assert low < high
        quick.commit()
        wait_for(lambda: qd.ran("end", high), 5, "the higher id")
        wait_for(rounds(qd, 3), 20, "three seconds in which the daemon's looks go on above it")
        assert not qd.ran("start", low)
        slow.commit()
        wait_for(lambda: qd.ran("end", low), 5, "the lower id")
    assert daemon.stop() == 0


def test_the_api_neither_ends_the_callers_transaction_nor_opens_a_connection(qd: Qd) -> None:
    count = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = %s"
    with caller(qd) as (connection, cursor):
        before = qd.one(count, (qd.database,))
        cursor.execute("SELECT trx_id FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()")
        library.enqueue(cursor, "nap", NAP)
        library.enqueue(cursor, "nap", NAP, delay=60, unique_key="k", priority="high")
        library.enqueue_many(cursor, [library.NewJob("nap", NAP) for _ in range(1500)])
        assert connection.in_transaction and qd.one(count, (qd.database,)) == before
        assert qd.jobs() == 0
        cursor.execute("SELECT @@autocommit, @@time_zone, @@tx_isolation")
        assert cursor.fetchall() == [(0, "SYSTEM", "REPEATABLE-READ")]
        connection.rollback()
    assert qd.jobs() == 0


def test_a_producer_that_commits_by_itself_has_its_job_run_before_it_goes_on(qd: Qd) -> None:
    daemon = qd.start()
    with closing(qd.server.connect(qd.database, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        job = library.enqueue(cursor, "nap", NAP)
        wait_for(lambda: qd.ran("end", job), 5, "the job, with nothing left to commit")
    assert daemon.stop() == 0
