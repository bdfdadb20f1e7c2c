"""Many jobs from an iterator: a statement's worth at a time, none kept, told as they go in."""

from __future__ import annotations

import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

import qd
from qd.errors import BadInput
from tests.contract.enqueue.callers import CALLERS, Caller, sqlite_caller
from tests.support.server import Server

ROWS = 1000
"""Of one statement, as docs/enqueueing.md says."""


class Payload(dict):  # type: ignore[type-arg]
    """A payload whose end can be seen."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def enqueue_each(cursor: Any, jobs: Iterator[qd.NewJob]) -> list[list[int]]:
    """Enqueues; the ids as they were told."""
    told: list[list[int]] = []
    assert qd.enqueue_many(cursor, jobs, each=told.append) is None
    return told


def test_each_is_told_the_ids_of_every_statement_in_order(caller: Caller) -> None:
    told = enqueue_each(caller.cursor(), (qd.NewJob("t", n) for n in range(2500)))
    caller.connection.commit()
    ids = [job_id for part in told for job_id in part]
    rows = dict(caller.committed("SELECT id, payload FROM qd_jobs"))
    assert [int(rows[job_id]) for job_id in ids] == list(range(2500))
    assert max(map(len, told)) <= ROWS and len(told) >= 3


def test_an_iterator_is_asked_for_no_more_than_the_next_statement_takes(plain_caller: Caller) -> None:
    taken = 0

    def jobs() -> Iterator[qd.NewJob]:
        nonlocal taken
        for n in range(3 * ROWS):
            taken = n + 1
            yield qd.NewJob("t")

    seen: list[tuple[int, int]] = []
    told = 0

    def each(ids: list[int]) -> None:
        nonlocal told
        told += len(ids)
        seen.append((taken, told))

    qd.enqueue_many(plain_caller.cursor(), jobs(), each=each)
    assert seen == [(ROWS * n, ROWS * n) for n in (1, 2, 3)]


def test_no_job_is_kept_once_its_statement_was_sent(plain_caller: Caller) -> None:
    alive: weakref.WeakSet[Payload] = weakref.WeakSet()

    def jobs() -> Iterator[qd.NewJob]:
        for n in range(3 * ROWS):
            payload = Payload(n=n)
            alive.add(payload)
            yield qd.NewJob("t", payload)

    seen: list[int] = []
    qd.enqueue_many(plain_caller.cursor(), jobs(), each=lambda ids: seen.append(len(alive)))
    assert len(seen) == 3 and max(seen) <= ROWS


def test_five_times_as_many_jobs_need_no_more_memory(plain_caller: Caller) -> None:
    def peak(count: int) -> int:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        qd.enqueue_many(cursor, (qd.NewJob("t", {"n": n}) for n in range(count)), each=lambda ids: None)
        return tracemalloc.get_traced_memory()[1] - before

    cursor = plain_caller.cursor()
    tracemalloc.start()
    try:
        peak(ROWS)  # what is made once
        few, many = peak(2 * ROWS), peak(10 * ROWS)
    finally:
        tracemalloc.stop()
    assert many < few + 100_000, (few, many)


def test_a_bad_job_in_the_middle_of_an_iterator_leaves_it_to_the_callers_transaction(caller: Caller) -> None:
    def jobs() -> Iterator[qd.NewJob]:
        for n in range(3000):
            yield qd.NewJob("t" if n != 2345 else "a b")

    with pytest.raises(BadInput, match=r"^job 2345: type: "):
        qd.enqueue_many(caller.cursor(), jobs())
    assert caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(0,)]
    caller.connection.rollback()
    assert qd.enqueue(caller.cursor(), "t") > 0
    caller.connection.commit()
    assert caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(1,)]


@pytest.mark.parametrize("collection", [list, tuple, lambda jobs: dict(enumerate(jobs)).values()])
def test_a_bad_job_in_a_collection_is_found_before_anything_is_written(
    mysql_autocommit: Caller, collection: Callable[[Any], Any]
) -> None:
    jobs = [qd.NewJob("t") for _ in range(2500)]
    jobs[2345].queue = "a b"
    with pytest.raises(BadInput, match=r"^job 2345: queue: "):
        qd.enqueue_many(mysql_autocommit.cursor(), collection(jobs))
    assert mysql_autocommit.committed("SELECT COUNT(*) FROM qd_jobs") == [(0,)]


@pytest.mark.parametrize("at", [0, 1, 1999])
def test_what_the_iterator_or_each_raises_passes_through(plain_caller: Caller, at: int) -> None:
    def jobs() -> Iterator[qd.NewJob]:
        for n in range(2000):
            if n == at:
                raise KeyError("mine")
            yield qd.NewJob("t")

    def each(ids: list[int]) -> None:
        raise LookupError("mine too")

    with pytest.raises(KeyError, match="mine"):
        qd.enqueue_many(plain_caller.cursor(), jobs())
    with pytest.raises(LookupError, match="mine too"):
        qd.enqueue_many(plain_caller.cursor(), iter([qd.NewJob("t")]), each=each)
    plain_caller.connection.rollback()
    assert plain_caller.committed("SELECT COUNT(*) FROM qd_jobs") == [(0,)]


def test_the_iterator_and_each_run_in_the_sessions_own_time_zone(mysql_caller: Caller) -> None:
    with closing(mysql_caller.connection.cursor()) as plain:
        plain.execute("SET time_zone = '+03:00'")

    def zone() -> str:
        with closing(mysql_caller.connection.cursor()) as other:
            other.execute("SELECT @@session.time_zone")
            (row,) = other.fetchall()
        return str(row[0])

    zones: set[str] = set()

    def jobs() -> Iterator[qd.NewJob]:
        for n in range(1050):
            if n % 350 == 0:
                zones.add(zone())
            yield qd.NewJob("t", delay=5 if n % 2 else 0)

    qd.enqueue_many(mysql_caller.cursor(), jobs(), each=lambda ids: zones.add(zone()))
    mysql_caller.connection.commit()
    assert zones == {"+03:00"}
    span = "TIMESTAMPDIFF(SECOND, created_at, available_at)"
    assert sorted(mysql_caller.committed(f"SELECT DISTINCT {span} FROM qd_jobs")) == [(0,), (5,)]


def test_an_iterator_without_jobs_writes_nothing(caller: Caller) -> None:
    assert qd.enqueue_many(caller.cursor(), iter(())) == []
    assert enqueue_each(caller.cursor(), iter(())) == []


def test_every_kind_of_value_is_written_as_in_a_single_enqueue(caller: Caller) -> None:
    """Many rows are written in another way than one."""
    payload = {"text": 'Zoë\'s "50 %" %s \\ 😀\n\x1a'}
    jobs = [
        qd.NewJob("a.B-1:x_y", payload, "q.A-1:x_y", 0, "urgent", "é'%s\\", 9),
        qd.NewJob("t"),
        qd.NewJob("t", payload, delay=60, priority=3, max_attempts=65535),
    ]
    qd.enqueue_many(caller.cursor(), jobs)
    for job in jobs:
        key = None if job.unique_key is None else job.unique_key + "2"
        qd.enqueue(
            caller.cursor(), job.type, job.payload, queue=job.queue, delay=job.delay, priority=job.priority,
            unique_key=key, max_attempts=job.max_attempts,
        )  # fmt: skip
    caller.connection.commit()
    shown = "queue, type, payload, priority, max_attempts, available_at > created_at, lane, attempts, reserved_by"
    rows = caller.committed(f"SELECT {shown} FROM qd_jobs ORDER BY queue, payload, max_attempts, id")
    assert len(rows) == 6 and rows[::2] == rows[1::2]
    keys = caller.committed("SELECT unique_key FROM qd_jobs WHERE unique_key IS NOT NULL ORDER BY unique_key")
    assert keys == [("é'%s\\",), ("é'%s\\2",)]


@pytest.fixture
def mysql_autocommit(mariadb: Server, mysql_database: str) -> Iterator[Caller]:
    """An application whose every statement is a transaction."""
    caller = CALLERS["connector"](mariadb, mysql_database)
    caller.connection.autocommit = True
    yield caller
    caller.connection.close()


def test_a_generators_own_use_of_the_connection_harms_nothing(tmp_path: Any) -> None:
    with closing(sqlite_caller(tmp_path / "qd.sqlite3").connection) as connection:
        source = connection.execute(
            "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT 2500) SELECT v FROM n"
        )
        assert len(qd.enqueue_many(connection.cursor(), (qd.NewJob("t", value) for (value,) in source))) == 2500
