"""Outages by the hundred and one that lasts: nothing leaks, each is said once, the next job runs soon.

Short in `make test`; `make outages MINUTES=10` has 200 of them, and a server that is down for so long.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import closing

import pytest

from qd.clock import monotonic
from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.test_promises import no_bigger
from tests.faults.watching import (
    connections,
    kill_connections,
    pass_by,
    runs_a_job,
    settled_well,
    started,
    told,
    until_even,
    until_told,
)
from tests.support.daemon import Daemon
from tests.support.waiting import wait_for

OUTAGES = int(os.environ.get("QD_OUTAGES", "20"))
MINUTES = float(os.environ.get("QD_OUTAGE_MINUTES", "0.15"))

TRIES_A_SECOND = 8
"""Connections that one daemon with five threads may ask for in a second while its server is away."""

NewFleet = Callable[..., Fleet]


def outage(fleet: Fleet, kind: str) -> None:
    """All connections end at once: on the way, by the server, or with it."""
    {"cut": fleet.proxy.cut_all, "kill": lambda: kill_connections(fleet), "restart": fleet.server.restart}[kind]()


def test_many_outages_leave_no_thread_connection_or_file_behind(new_fleet: NewFleet, rng: random.Random) -> None:
    fleet = new_fleet("auto")
    for _ in range(20):  # so that every thread has its connection
        fleet.enqueue(*[NewJob(seconds=0.05)] * 10)
    fleet.until_empty(60)
    files, links, slowest = fleet.sizes(), len(connections(fleet)), 0.0
    said = 0
    for _ in range(OUTAGES):
        outage(fleet, rng.choice(["cut", "cut", "kill", "kill", "kill", "restart"]))
        slowest = max(slowest, runs_a_job(fleet))
        said += until_even(fleet, said, most=2)  # one that is being opened just then is lost in its turn
    wait_for(lambda: no_bigger(fleet.sizes(), files), 30, f"threads and open files to be what they were: {files}")
    wait_for(lambda: len(connections(fleet)) <= links, 30, f"connections to be what they were: {links}")
    print(f"{OUTAGES} outages: threads and files {files}, then {fleet.sizes()}; connections {links}, then "
          f"{len(connections(fleet))}; said {told(fleet)}; slowest next job {slowest:.2f} s")  # fmt: skip
    assert OUTAGES * 0.8 < said < OUTAGES * 1.2 + 1
    settled_well(fleet)


def tries(daemon: Daemon) -> float:
    """How often it has failed to reach its server."""
    return daemon.metric('qd_database_errors_total{kind="lost"}') or 0.0


def test_a_server_that_was_down_for_long_is_worked_on_soon_after_its_return(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    (daemon,) = fleet.daemons
    runs_a_job(fleet)
    asked = tries(daemon)
    fleet.server.stop()
    over = monotonic() + MINUTES * 60
    while monotonic() < over:
        assert daemon.get("/livez") == (200, "ok\n")
        soon = monotonic() + 2
        wait_for(lambda: monotonic() > soon, 60, "the next question")  # noqa: B023
    asked = tries(daemon) - asked
    assert daemon.metric("qd_database_up") == 0
    fleet.server.start()
    took = runs_a_job(fleet)
    print(f"down for {MINUTES} minutes: {asked:g} tries to connect; the next job ended {took:.2f} s after the return")
    until_told(fleet, 1)
    assert daemon.alive()
    assert 0 < asked <= 60 + MINUTES * 60 * TRIES_A_SECOND
    settled_well(fleet)


BACKUPS = {
    "its commits": (("BACKUP STAGE START", "BACKUP STAGE BLOCK_COMMIT"), "BACKUP STAGE END"),
    "all writes": (("FLUSH TABLES WITH READ LOCK",), "UNLOCK TABLES"),
}
"""What backups hold up while reads are answered, and how."""


@pytest.mark.parametrize("what", BACKUPS)
def test_a_backup_that_holds_up_writes_for_longer_than_the_leases_costs_nobody_a_job(
    new_fleet: NewFleet, what: str
) -> None:
    """An idle daemon, which has nothing to write, must not take the others for dead."""
    fleet = new_fleet("auto", "auto")
    begin, end = BACKUPS[what]
    if begin[0].startswith("BACKUP") and "MariaDB" not in fleet.server.run("SELECT VERSION()")[0][0]:
        pytest.skip("a statement of MariaDB's only")
    fleet.enqueue(NewJob(seconds=LEASE * 3))
    started(fleet)
    ((_, start),) = fleet.ledger.lines()
    idle = next(member.account for member in fleet.members if member.pid != start.pid)
    waiting = "SELECT 1 FROM information_schema.processlist WHERE user = %s AND state LIKE 'Waiting for %%lock%%'"
    with closing(fleet.server.connect(fleet.database, autocommit=True)) as backup, closing(backup.cursor()) as cursor:
        for statement in begin:
            cursor.execute(statement)
        pass_by(LEASE * 2)
        wait_for(lambda: fleet.server.run(waiting, (idle,)), 10, "the idle daemon to want to write something")
        cursor.execute(end)
    fleet.until_empty(60)
    settled_well(fleet)
    assert told(fleet) == (0, 0)
