"""A server that has no room left, really: nothing is lost, and all goes on once there is some again.

The room is that of InnoDB's system tablespace, in files that don't grow, so the test needs no disk of its
own. (On a full file system MariaDB 10.11 may end itself instead, which is an outage like any other.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import mysql.connector
import pytest

from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.watching import pass_by, problems, runs_a_job, started, until_told
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for

FULL = 1114
ENDED = (2003, 2013)

ROOM = "--innodb-data-file-path=ibdata1:12M;room:6M"
MORE_ROOM = f"{ROOM};more:64M"

LARGE = "x" * 30_000


@pytest.fixture
def fleet(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Fleet]:
    made = Fleet(folder, own_mariadb("--innodb-file-per-table=OFF", ROOM), ["auto"])
    made.until_ready()
    yield made
    made.end()


def test_a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room(fleet: Fleet) -> None:
    runs_a_job(fleet)
    buried = NewJob(seconds=LEASE * 0.7, failures=9, max_attempts=1, does=LARGE)
    fleet.enqueue(*[buried] * 4, *[NewJob(seconds=1.0)] * 4, *[NewJob(does=LARGE)] * 4)
    started(fleet, 4)
    version = str(fleet.server.run("SELECT VERSION()")[0][0])
    fill(fleet)
    with pytest.raises(mysql.connector.Error) as refused:
        fleet.enqueue(*[NewJob(does=LARGE)] * 10)
    if version.startswith("11.8") and refused.value.errno in ENDED:
        pytest.skip("MariaDB 11.8 ends itself where its tablespace is full, instead of refusing the row")
    assert refused.value.errno == FULL
    wait_for(lambda: complaints(fleet), 60, "the want of room to be said")
    pass_by(LEASE)
    assert fleet.daemons[0].alive()
    assert fleet.daemons[0].get("/livez") == (200, "ok\n")
    assert fleet.lines("database.lost") == []
    more_room(fleet.server)
    fleet.until_empty(60)
    runs_a_job(fleet)
    until_told(fleet, 1)  # the restart's
    assert len(complaints(fleet)) == 1
    assert fleet.ledger.wrongs() == {}
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []


def fill(fleet: Fleet) -> None:
    """Until not one more row has room."""
    fleet.server.run("CREATE TABLE garbage (id INT AUTO_INCREMENT PRIMARY KEY, bytes LONGBLOB)", (), fleet.database)
    connection = fleet.server.connect(fleet.database, autocommit=True)
    with closing(connection), closing(connection.cursor()) as cursor:
        for size in (1_000_000, 100_000, 10_000, 1_000, 100):
            with suppress(mysql.connector.Error):
                while True:
                    cursor.execute("INSERT INTO garbage (bytes) VALUES (%s)", (b"x" * size,))


def more_room(server: MariaDB) -> None:
    """Another file for the tablespace."""
    server.stop()
    server.options = tuple(MORE_ROOM if option == ROOM else option for option in server.options)
    server.start()


def complaints(fleet: Fleet) -> list[str]:
    """What was said of the want of room, but for what says which job's end waits for it."""
    lines = problems(fleet)
    return [line for line in lines if f"errno {FULL}" in line and " tries: " not in line]
