"""A move between the tables is whole at every moment, whoever makes it and wherever he is killed."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import ServerShell
from tests.support.daemon import Qd
from tests.support.server import Server
from tests.support.waiting import wait_for

KILLS = int(os.environ.get("QD_TEST_KILLS", "5"))
"""Daemons that are killed, each at another moment."""

EVERYWHERE = "SELECT id FROM qd_jobs WHERE type <> 'qd.post' UNION ALL SELECT job_id FROM qd_failed_jobs"

DEAD = (
    "INSERT INTO qd_failed_jobs (job_id, queue, type, payload, priority, attempts, reason) VALUES "
    "(%s, 'default', 'boom', '{}', 2, 3, 'error')"
)

STALE = (
    "INSERT INTO qd_jobs (id, type, lane, attempts, reserved_by, available_at) VALUES "
    "(%s, 'boom', 1, %s, CONCAT('gone:', %s), NOW(6) - INTERVAL 1 HOUR)"
)

HANDLERS = """
import qd

@qd.handler("boom")
def boom(job):
    raise RuntimeError("boom")

@qd.handler("later")
def later(job):
    raise qd.Retry(after=0.05, reason="not yet")

@qd.handler("snooze")
def snooze(job):
    raise qd.Snooze(0.05)
"""


@contextmanager
def each_in_one_place(server: Server, database: str, ids: list[int]) -> Iterator[None]:
    """Looks at both tables in one snapshot, again and again: each job is in exactly one of them."""
    stop, wrong, looks = threading.Event(), list[str](), [0]

    def look() -> None:
        with closing(server.connect(database, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
            while not (stop.is_set() or wrong):
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                cursor.execute(EVERYWHERE)
                found = sorted(row[0] for row in cursor.fetchall())
                cursor.execute("COMMIT")
                looks[0] += 1
                if found != ids:
                    wrong.append(f"lost {set(ids) - set(found)}, {len(found)} rows of {len(ids)} jobs")

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join(30)
    assert not wrong, wrong
    assert looks[0] > 20


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


@contextmanager
def held(server: Server, database: str, row: str) -> Iterator[None]:
    """Keeps a row locked, so that no verb that needs it comes to its end, however fast it is."""
    with closing(server.connect(database)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(f"SELECT id FROM {row} FOR UPDATE")
        assert len(cursor.fetchall()) == 1
        yield


def killed(shell: ServerShell, progress: str, *args: object) -> None:
    """Starts a verb and kills it once this many rows are left, or it has ended."""
    with shell.start(*args) as verb:
        wait_for(lambda: verb.poll() is not None or not shell.sql(progress)[0][0], 30, "the verb to be on its way")
        verb.send_signal(signal.SIGKILL)


def test_a_retry_of_all_that_is_killed_half_way_loses_and_doubles_none(shell: ServerShell) -> None:
    ids = list(range(1000, 1300))
    for job_id in ids:
        shell.sql(DEAD, job_id)
    with each_in_one_place(shell.server, shell.name, ids):
        with held(shell.server, shell.name, "qd_failed_jobs WHERE job_id = 1299"):
            for left in (290, 200, 110, 20):
                killed(shell, f"SELECT COUNT(*) > {left} FROM qd_failed_jobs", "failed", "retry", "--all", "--yes")
        assert 0 < shell.count() < 300, "no verb was killed half-way"
        shell.ok("failed", "retry", "--all", "--yes")
    assert shell.sql("SELECT COUNT(DISTINCT id), SUM(attempts) FROM qd_jobs WHERE type = 'boom'") == [(300, 0)]


def test_a_recovery_that_is_killed_half_way_loses_and_doubles_none(shell: ServerShell) -> None:
    """Every other one has spent its attempts: it becomes a dead letter."""
    ids = list(range(1000, 1300))
    for job_id in ids:
        shell.sql(STALE, job_id, 3 if job_id % 2 else 1, job_id)
    stale = "SELECT COUNT(*) > {} FROM qd_jobs WHERE lane = 1"
    with each_in_one_place(shell.server, shell.name, ids):
        with held(shell.server, shell.name, "qd_jobs WHERE id = 1299"):
            for left in (280, 160, 40):
                killed(shell, stale.format(left), "recover")
        assert shell.sql(stale.format(0)) == [(1,)], "no verb was killed half-way"
        shell.ok("recover")
    assert shell.sql("SELECT COUNT(*) FROM qd_failed_jobs WHERE reason = 'lost'") == [(150,)]
    assert shell.sql("SELECT COUNT(*) FROM qd_jobs WHERE lane = 0 AND crashes = 1") == [(150,)]


def test_last_failures_retries_and_snoozes_of_killed_daemons_lose_and_double_none(qd: Qd) -> None:
    (qd.folder / "failing.py").write_text(HANDLERS)
    backoff = {"base": "50ms", "cap": "50ms"}
    qd.write(
        handlers={"modules": ["failing"]},
        queues={"default": {"lease": "3s", "timeout": "2s", "max_attempts": 1}, "more": {"lease": "3s", "timeout": "2s",
                "max_attempts": 20, "backoff": backoff}},
        workers=[{"queues": ["default", "more"], "threads": 4}],
    )  # fmt: skip
    ids = qd.enqueue("boom", 300)
    ids += [*qd.enqueue("later", 30, queue="more"), *qd.enqueue("snooze", 30, queue="more")]
    chance = random.Random(1)
    with each_in_one_place(qd.server, qd.database, ids):
        for left in sorted((chance.randrange(10, 300) for _ in range(KILLS)), reverse=True):
            daemon = qd.start(ready=False)
            boom = f"SELECT COUNT(*) <= {left} FROM qd_jobs WHERE type = 'boom' AND lane = 0"
            wait_for(lambda: qd.one(boom), 60, f"{left} last failures to be left")  # noqa: B023
            daemon.process.kill()
            daemon.process.wait()
        last = qd.start()
        qd.sql("UPDATE qd_jobs SET max_attempts = 1 WHERE type = 'later'")
        wait_for(lambda: qd.jobs() == 30, 60, "all but those that snooze to be dead letters")
        assert last.stop() == 0
    reasons = dict(qd.sql("SELECT reason, COUNT(*) FROM qd_failed_jobs GROUP BY reason"))
    assert sum(reasons.values()) == 330 and set(reasons) <= {"error", "lost"}
    assert qd.one("SELECT MAX(attempts) FROM qd_failed_jobs WHERE type = 'boom'") == 1
