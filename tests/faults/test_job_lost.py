"""A job whose row another owner has taken: its handler is told, once in the log, and nothing of it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, Qd
from tests.support.server import Server
from tests.support.waiting import wait_for

KINDS = ("returns", "fails", "rejects", "snoozes")
COLUMNS = "lane, attempts, crashes, reserved_by, reserved_at, available_at, last_error, history"
OTHER = "elsewhere:1:nonce:default-1:1"
LEASE = 6.0


@pytest.fixture
def daemon(folder: Path, mariadb: Server, mysql_database: str) -> Iterator[Daemon]:
    qd = Qd(folder, mariadb, mysql_database)
    qd.write(
        handlers={"modules": ["tests.faults.losing_handlers"]},
        queues={"default": {"lease": f"{LEASE:g}s", "timeout": "60s"}},
        workers=[{"queues": ["default"], "threads": len(KINDS)}],
        batch=1,
    )
    yield qd.start()
    qd.end()


def running(daemon: Daemon, *kinds: str) -> list[int]:
    """One job of each kind, all of them begun."""
    jobs = [job for kind in kinds for job in daemon.qd.enqueue(kind)]
    wait_for(lambda: sorted(daemon.qd.ran("start")) == jobs, 20, "the jobs to begin")
    return jobs


def test_a_handler_whose_job_another_has_taken_is_told_and_settles_nothing(daemon: Daemon) -> None:
    qd = daemon.qd
    jobs = running(daemon, *KINDS)
    qd.sql("UPDATE qd_jobs SET reserved_by = %s, available_at = NOW(6) + INTERVAL 1 HOUR WHERE lane = 1", (OTHER,))
    theirs = qd.sql(f"SELECT id, {COLUMNS} FROM qd_jobs WHERE reserved_by = %s ORDER BY id", (OTHER,))
    assert [row[0] for row in theirs] == jobs
    wait_for(lambda: sorted(qd.ran("lost")) == jobs, LEASE + 20, "the handlers to be told")
    wait_for(lambda: daemon.metric('qd_workers{state="busy",worker="default"}') == 0.0, 20, "the handlers to end")
    assert qd.sql(f"SELECT id, {COLUMNS} FROM qd_jobs WHERE reserved_by = %s ORDER BY id", (OTHER,)) == theirs
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    said = daemon.lines("lease.lost")
    assert sorted(int(line.split("job_id=")[1].split()[0]) for line in said) == jobs, "once for each"
    assert all(line.startswith("level=warning") or " level=warning " in line for line in said)
    assert daemon.metric('qd_lease_extensions_total{result="lost"}') == len(jobs)
    for event in ("job.succeeded", "job.failed", "job.dead_lettered", "job.snoozed"):
        assert daemon.lines(event) == [], "an end that was never written"


def test_a_handler_whose_job_a_person_has_deleted_is_told_too(daemon: Daemon) -> None:
    qd = daemon.qd
    (job,) = running(daemon, "fails")
    qd.sql("DELETE FROM qd_jobs WHERE id = %s", (job,))
    wait_for(lambda: qd.ran("lost") == [job], LEASE + 20, "the handler to be told")
    assert len(daemon.lines("lease.lost")) == 1
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0


def test_a_lease_that_has_run_out_but_was_taken_by_nobody_is_not_lost(daemon: Daemon) -> None:
    qd = daemon.qd
    (job,) = running(daemon, "returns")
    qd.sql("UPDATE qd_jobs SET available_at = NOW(6) - INTERVAL 1 HOUR WHERE id = %s", (job,))
    renewed = "SELECT available_at > NOW(6) FROM qd_jobs WHERE id = %s"
    wait_for(lambda: qd.one(renewed, (job,)) == 1, LEASE + 20, "the lease to be renewed")
    assert qd.ran("lost") == [] and daemon.lines("lease.lost") == []
