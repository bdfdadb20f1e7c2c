"""Strangers' locks and real deadlocks at a daemon: work waits, is done once, and costs nobody his lease."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.watching import pass_by, problems, runs_a_job, settled_well, started, told
from tests.support.waiting import wait_for

NewFleet = Callable[..., Fleet]

WAITING = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'"


@contextmanager
def stranger(fleet: Fleet, *sql: str) -> Iterator[Any]:
    """An open transaction of somebody else, in which these statements were run; rolled back at the end."""
    connection = fleet.server.connect(fleet.database, autocommit=False)
    with closing(connection), closing(connection.cursor(buffered=True)) as cursor:
        for statement in sql:
            cursor.execute(statement)
        yield cursor
        connection.rollback()


def of(job: int) -> str:
    """A lock on its row."""
    return f"SELECT id FROM qd_jobs WHERE id = {job} FOR UPDATE"


ENDS = {
    "finish": NewJob(seconds=1.0, queue="once"),
    "retry": NewJob(seconds=1.0, failures=1),
    "dead letter": NewJob(seconds=1.0, failures=9, max_attempts=1),
}


@pytest.mark.parametrize("seconds", [3.0, LEASE * 1.5], ids=["3 s", "longer than the lease"])
def test_an_end_behind_a_strangers_lock_is_written_once_when_it_goes(new_fleet: NewFleet, seconds: float) -> None:
    fleet = new_fleet("auto")
    ids = fleet.enqueue(*ENDS.values())
    started(fleet, len(ids))
    with stranger(fleet, *map(of, ids)):
        wait_for(lambda: int(fleet.server.run(WAITING)[0][1]) > 0, 20, "an end to wait for the lock")
        runs_a_job_beside(fleet)
        pass_by(seconds)
    fleet.until_empty(30)
    settled_well(fleet)
    assert told(fleet) == (0, 0)
    starts = [sum(line.what == "start" for line in fleet.ledger.stories()[job].lines) for job in ids]
    assert starts == [1, 2, 1]


def runs_a_job_beside(fleet: Fleet) -> None:
    """Another job is run meanwhile."""
    (job,) = fleet.enqueue(NewJob(queue="urgent"))
    left = "SELECT COUNT(*) FROM qd_jobs WHERE id = %s"
    wait_for(lambda: fleet.server.run(left, (job,), fleet.database)[0][0] == 0, 15, "a job beside the locked ones")


def test_a_dead_letter_waits_for_a_table_that_is_being_altered(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    change = "ALTER TABLE qd_failed_jobs COMMENT = 'changed'"
    with stranger(fleet, "SELECT COUNT(*) FROM qd_failed_jobs"):  # which the change waits for, and all others for it
        altering = threading.Thread(target=fleet.server.run, args=(change, (), fleet.database))
        altering.start()
        fleet.enqueue(ENDS["dead letter"])
        started(fleet)
        pass_by(LEASE * 1.3)
        assert fleet.jobs() == 1
    altering.join(20)
    fleet.until_empty(30)
    assert fleet.ledger.wrongs() == {}
    assert told(fleet) == (0, 0)


def test_a_stale_row_that_a_stranger_has_locked_is_taken_back_when_he_goes(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    insert = (
        "INSERT INTO qd_jobs (type, payload, lane, reserved_by, attempts, available_at) VALUES "
        "('work', %s, 1, 'gone:1:a:b:1', 1, NOW(6) - INTERVAL 1 SECOND)"
    )
    fleet.server.run(insert, (NewJob().payload(),), fleet.database)
    job = fleet.server.run("SELECT id FROM qd_jobs WHERE lane = 1", (), fleet.database)[0][0]
    with stranger(fleet, of(job)):
        pass_by(LEASE)
        assert fleet.lines("stale.reclaimed") == []
        runs_a_job_beside(fleet)
    fleet.until_empty(30)
    assert len(fleet.lines("stale.reclaimed")) == 1
    assert fleet.lines("lease.lost") == problems(fleet) == []


def test_jobs_of_a_producer_that_stays_open_hold_up_nobody(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto", 5)
    insert = f"INSERT INTO qd_jobs (queue, type, payload) VALUES ('default', 'work', '{NewJob().payload()}')"
    with stranger(fleet, insert):
        fleet.enqueue(*[NewJob()] * 20)
        fleet.until_empty(15)
        runs_a_job(fleet)
    settled_well(fleet)
    assert told(fleet) == (0, 0)
