"""Enqueuing in the caller's own transaction, with every driver's cursor."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import qd
from qd.errors import BadInput
from qd.payload import RawJson
from tests.contract.enqueue.callers import CALLERS, MYSQLCLIENT, Caller
from tests.support.missing import without

GIVEN = "SELECT id, queue, type, payload, priority, unique_key, max_attempts, lane, attempts, reserved_by FROM qd_jobs"


def test_a_job_is_written_as_it_was_given(caller: Caller) -> None:
    payload = {"to": 7, "text": 'Zoë\'s "50 %" \\ 😀\n'}
    job = qd.enqueue(
        caller.cursor(), "send_email", payload, queue="mails", priority="high", unique_key="é'%s\\", max_attempts=9
    )
    caller.connection.commit()
    (row,) = caller.committed(GIVEN)
    assert row == (job, "mails", "send_email", json.dumps(payload), 1, "é'%s\\", 9, 0, 0, None)
    assert isinstance(job, int)


def test_a_job_needs_no_more_than_a_type(caller: Caller) -> None:
    job = qd.enqueue(caller.cursor(), "tick")
    caller.connection.commit()
    assert caller.committed(GIVEN) == [(job, "default", "tick", "{}", 2, None, None, 0, 0, None)]


def test_raw_json_is_kept_byte_for_byte(caller: Caller) -> None:
    text = '{"b":1,  "a":1.0, "a":1, "c": "\\u00e9"}'
    qd.enqueue(caller.cursor(), "t", RawJson(text))
    caller.connection.commit()
    assert caller.committed("SELECT payload FROM qd_jobs") == [(text,)]


def test_a_rollback_takes_the_jobs_back(caller: Caller) -> None:
    cursor = caller.cursor()
    qd.enqueue(cursor, "t", delay=5)
    qd.enqueue(cursor, "t", unique_key="k", delay=5)
    qd.enqueue_many(cursor, [qd.NewJob("t"), qd.NewJob("t", unique_key="k"), qd.NewJob("t", delay=3)])
    assert caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(0,)]
    caller.connection.rollback()
    assert caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(0,)]


def test_a_taken_unique_key_returns_the_job_that_holds_it(caller: Caller) -> None:
    cursor = caller.cursor()
    others = [qd.enqueue(cursor, "t", n, queue="mails") for n in range(3)]
    first = qd.enqueue(cursor, "t", 1, queue="mails", unique_key="k")
    qd.enqueue(cursor, "t", queue="mails", unique_key="other")
    assert qd.enqueue(cursor, "t", 2, queue="mails", unique_key="k") == first
    assert qd.enqueue(cursor, "t", 2, queue="mails", unique_key="k", delay=60) == first
    assert qd.enqueue(cursor, "t", 3, queue="reports", unique_key="k") != first
    caller.connection.commit()
    assert qd.enqueue(caller.cursor(), "t", 4, queue="mails", unique_key="k") == first
    caller.connection.commit()
    assert caller.committed("SELECT payload FROM qd_jobs WHERE queue = 'mails' AND unique_key = 'k'") == [("1",)]
    assert caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(len(others) + 3,)]


def ids_are_right(caller: Caller, jobs: list[qd.NewJob]) -> list[int]:
    """Enqueues and commits; each returned id must be the row of its own payload, or its key's."""
    ids = qd.enqueue_many(caller.cursor(), jobs)
    caller.connection.commit()
    rows = {row[0]: row for row in caller.committed("SELECT id, payload, queue, unique_key FROM qd_jobs")}
    assert len(ids) == len(jobs)
    for job, job_id in zip(jobs, ids, strict=True):
        _, payload, queue, key = rows[job_id]
        assert (queue, key) == (job.queue, job.unique_key)
        assert key is not None or payload == json.dumps(job.payload)
    return ids


def test_many_jobs_come_back_with_their_own_ids_in_order(caller: Caller) -> None:
    assert qd.enqueue_many(caller.cursor(), []) == []
    ids = ids_are_right(caller, [qd.NewJob("t", n) for n in range(2500)])
    assert ids == sorted(set(ids))


def test_many_jobs_of_every_kind_come_back_with_their_own_ids(caller: Caller) -> None:
    held = qd.enqueue(caller.cursor(), "t", -1, unique_key="k5")
    caller.connection.commit()
    jobs = [qd.NewJob("t", n, unique_key=f"k{n}" if n % 3 == 0 or n == 5 else None, delay=n % 2) for n in range(1200)]
    jobs += [qd.NewJob("t", -2, unique_key="k0"), qd.NewJob("t", -3, queue="other", unique_key="k0")]
    ids = ids_are_right(caller, jobs)
    assert ids[5] == held
    assert ids[1200] == ids[0] != ids[1201]
    assert len(set(ids)) == 1201


def test_enqueue_many_takes_any_iterable(caller: Caller) -> None:
    assert len(qd.enqueue_many(caller.cursor(), (qd.NewJob("t", n) for n in range(3)))) == 3


def dues(caller: Caller) -> list[Any]:
    """For each job by id: seconds from its enqueue to its due time, by the database."""
    sqlite = "sqlite" in type(caller.connection).__module__
    span = "(julianday(available_at) - julianday(created_at)) * 86400"
    if not sqlite:
        span = "TIMESTAMPDIFF(MICROSECOND, created_at, available_at) / 1e6"
    return [float(row[0]) for row in caller.committed(f"SELECT {span} FROM qd_jobs ORDER BY id")]


def test_a_delay_counts_from_the_databases_now(caller: Caller) -> None:
    cursor = caller.cursor()
    qd.enqueue(cursor, "t")
    qd.enqueue(cursor, "t", delay=300)
    qd.enqueue(cursor, "t", delay=1.5)
    qd.enqueue(cursor, "t", delay=timedelta(days=400, seconds=1))
    qd.enqueue_many(cursor, [qd.NewJob("t", delay=timedelta(minutes=1)), qd.NewJob("t")])
    caller.connection.commit()
    assert dues(caller) == pytest.approx([0, 300, 1.5, 400 * 86400 + 1, 60, 0], abs=0.1)


def test_at_is_a_moment_in_any_zone_and_never_in_the_past(caller: Caller) -> None:
    cursor = caller.cursor()
    now = datetime.now(timezone.utc)
    india = timezone(timedelta(hours=5, minutes=30))
    qd.enqueue(cursor, "t", at=(now + timedelta(hours=2)).astimezone(india))
    qd.enqueue(cursor, "t", at=now - timedelta(days=30))
    qd.enqueue(cursor, "t", at=datetime.min.replace(tzinfo=india))
    caller.connection.commit()
    assert dues(caller) == pytest.approx([7200, 0, 0], abs=10)


def test_the_database_can_be_named(mysql_caller: Caller, mysql_database: str) -> None:
    with closing(mysql_caller.connection.cursor()) as plain:
        plain.execute("USE information_schema")
    cursor = mysql_caller.cursor()
    one = qd.enqueue(cursor, "t", database=mysql_database)
    two, three = qd.enqueue_many(cursor, [qd.NewJob("t"), qd.NewJob("t", unique_key="k")], database=mysql_database)
    mysql_caller.connection.commit()
    assert mysql_caller.committed("SELECT id FROM qd_jobs ORDER BY id") == [(one,), (two,), (three,)]


def test_an_attached_database_of_sqlite_can_be_named(tmp_path: Any) -> None:
    from tests.contract.enqueue.callers import sqlite_caller

    sqlite_caller(tmp_path / "qd.sqlite3").connection.close()
    with closing(sqlite_caller(tmp_path / "shop.sqlite3", create=False).connection) as shop:
        shop.execute("ATTACH DATABASE ? AS queue", (str(tmp_path / "qd.sqlite3"),))
        job = qd.enqueue(shop.cursor(), "t", database="queue", unique_key="k")
        shop.commit()
        assert shop.execute("SELECT id FROM queue.qd_jobs").fetchall() == [(job,)]


@pytest.mark.parametrize("database", ["", "a`b", "a'b", "x" * 65, 7])
def test_a_database_that_cannot_be_named_so_is_refused(caller: Caller, database: Any) -> None:
    for act in (lambda: qd.enqueue(caller.cursor(), "t", database=database),
                lambda: qd.enqueue_many(caller.cursor(), [qd.NewJob("t")], database=database)):  # fmt: skip
        with pytest.raises(BadInput, match=r"^database: [^\n]*bare name"):
            act()


def test_mysqlclient_is_among_the_drivers_where_it_is_installed() -> None:
    if not MYSQLCLIENT:
        without("mysqlclient, which has to be compiled, is not installed here; the other drivers were tested")
    assert "mysqlclient" in CALLERS
