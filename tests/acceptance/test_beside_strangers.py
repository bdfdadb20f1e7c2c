"""A daemon beside others' sessions: it costs producers no lock, and strangers' locks cost it only the locked rows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.support.answering import AnsweringProxy, Talk
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

INSERT = "INSERT INTO qd_jobs (queue, type, payload) VALUES (%s, 'nap', '{\"seconds\": 0}')"
FOUR = [{"queues": ["default"], "threads": 4}]

OLD_TRANSACTIONS = (
    "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist ON id = trx_mysql_thread_id"
    " WHERE db = %s AND user = %s AND trx_started < NOW() - INTERVAL 2 SECOND"
)
"""trx_started has whole seconds: more than one has passed for sure."""


@contextmanager
def transaction(qd: Qd, *statements: str) -> Iterator[Any]:
    """A stranger's open transaction, as an application leaves it; rolled back at the end unless committed."""
    with closing(qd.server.connect(qd.database, autocommit=False)) as connection:
        with closing(connection.cursor(buffered=True)) as cursor:
            for statement in statements:
                cursor.execute(statement)
            yield connection
        connection.rollback()


def produce(qd: Qd, queue: str, count: int) -> list[int]:
    """Single inserts, each committed, with the shortest patience; raises the first 1205 or 1213."""
    ids = []
    with closing(qd.server.connect(qd.database, autocommit=False)) as producer, closing(producer.cursor()) as cursor:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for _ in range(count):
            cursor.execute(INSERT, (queue,))
            ids.append(int(cursor.lastrowid))
            producer.commit()
    return ids


def test_two_thousand_inserts_meet_no_lock_of_an_idle_daemon_nor_of_one_that_takes_them(qd: Qd) -> None:
    """Under the server's default isolation an empty locking read would lock the gap that producers insert into."""
    assert qd.one("SELECT @@global.tx_isolation") == "REPEATABLE-READ"
    qd.write(
        workers=FOUR,
        poll={"min": "10ms", "max": "100ms"},
        queues={"default": {"lease": "6s"}, "other": {"lease": "6s"}},
    )
    daemon = qd.start()
    stop, old = threading.Event(), []

    def watch() -> None:
        while not stop.wait(0.2):
            old.append(int(qd.one(OLD_TRANSACTIONS, (qd.database, qd.user))))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        produce(qd, "other", 1000)  # nobody takes these: the daemon stays idle
        taken = produce(qd, "default", 1000)
        wait_for(lambda: qd.jobs("queue = 'default'") == 0, 60, "the second thousand to be done")
        looks = len(old)
        wait_for(lambda: len(old) >= looks + 12, 60, "a look at an idle daemon's transactions for over two seconds")
    finally:
        stop.set()
        watcher.join(10)
    assert sorted(qd.ran("start")) == taken
    assert max(old) == 0, "a transaction of the daemon was open for over a second"
    assert not daemon.lines("database.lost") and daemon.stop() == 0


def test_an_open_claim_of_another_costs_eight_threads_nothing_but_its_own_row(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 8}], batch=1)
    ids = [job for _ in range(10) for job in qd.enqueue("nap", 1000, seconds=3)]
    claim = (
        "SELECT id FROM qd_jobs FORCE INDEX (qd_jobs_claim) WHERE queue = 'default' AND lane = 0 AND priority = 2 "
        "AND available_at <= NOW(6) ORDER BY available_at, id LIMIT 1 FOR UPDATE"
    )
    with transaction(qd, claim):
        daemon = qd.start()
        wait_for(lambda: len(qd.ran("start")) - len(qd.ran("end")) == 8, 20, "eight jobs to run at a time")
        assert ids[0] not in qd.ran("start")
    assert daemon.stop() == 0


@pytest.fixture
def without_skip_locked(qd: Qd) -> Iterator[AnsweringProxy]:
    """The daemon's way to the database: a server that doesn't know SKIP LOCKED."""
    proxy = AnsweringProxy(int(qd.server.port), _refuse_skip_locked)
    qd.write(database={"port": proxy.port, "tls": {"mode": "disabled"}}, workers=FOUR)
    yield proxy
    proxy.close()


def _refuse_skip_locked(talk: Talk, statement: bytes) -> int | None:
    return 1064 if b"SKIP LOCKED" in statement else None


def test_without_skip_locked_committed_jobs_run_while_a_producer_keeps_its_insert_open(
    qd: Qd, without_skip_locked: AnsweringProxy
) -> None:
    with transaction(qd, INSERT % "'default'") as producer:
        daemon = qd.start()
        ids = qd.enqueue("nap", 5, seconds=0)
        wait_for(lambda: sorted(qd.ran("end")) == ids, 10, "the committed jobs to run beside the open insert")
        producer.commit()
        wait_for(lambda: len(qd.ran("end")) == 6, 5, "the late one to run")
    wait_for(lambda: daemon.metric('qd_workers{state="idle",worker="default"}') == 4.0, 10, "four idle threads")
    assert claim_path(daemon.get("/metrics")[1]) == "conditional"
    assert not [line for line in daemon.said().splitlines() if "level=error" in line]
    assert qd.jobs() == 0 and daemon.stop() == 0


def test_without_skip_locked_four_threads_run_two_thousand_jobs_once_each(
    qd: Qd, without_skip_locked: AnsweringProxy
) -> None:
    ids = [job for _ in range(2) for job in qd.enqueue("nap", 1000, seconds=0)]
    daemon = qd.start()
    wait_for(lambda: qd.jobs() == 0, 90, "two thousand jobs to be done")
    assert sorted(qd.ran("start")) == ids
    assert qd.sql("SELECT COUNT(*) FROM qd_failed_jobs") == [(0,)]
    wait_for(lambda: daemon.metric('qd_workers{state="idle",worker="default"}') == 4.0, 10, "four idle threads")
    assert daemon.stop() == 0


def test_a_server_that_forgets_skip_locked_at_run_time_loses_no_job_and_is_told_once(
    qd: Qd, without_skip_locked: AnsweringProxy
) -> None:
    without_skip_locked.refusal = lambda talk, statement: None
    daemon = qd.start()
    before = qd.enqueue("nap", 50, seconds=0)
    wait_for(lambda: qd.jobs() == 0, 20, "jobs by the path that was found")
    assert claim_path(daemon.get("/metrics")[1]) == "skip_locked"
    without_skip_locked.refusal = _refuse_skip_locked
    after = qd.enqueue("nap", 50, seconds=0)
    wait_for(lambda: qd.jobs() == 0, 10, "jobs by the other path")
    assert sorted(qd.ran("start")) == before + after
    wait_for(lambda: claim_path(daemon.get("/metrics")[1]) == "conditional", 5, "the metric to tell")
    assert len([line for line in daemon.said().splitlines() if "conditional" in line]) == 1
    assert daemon.get("/readyz")[0] == 200 and daemon.stop() == 0


def claim_path(page: str) -> str:
    """The label of qd_build_info."""
    (line,) = [line for line in page.splitlines() if line.startswith("qd_build_info{")]
    return line.partition('claim_path="')[2].partition('"')[0]
