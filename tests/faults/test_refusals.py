"""Servers that are there and refuse: no writes, no more connections, this host. Work goes on where it can."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.watching import (
    NEXT_JOB_WITHIN,
    connections,
    kill_connections,
    pass_by,
    problems,
    runs_a_job,
    settled_well,
    started,
    told,
    until_told,
)
from tests.support.answer import Answer
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for

NewFleet = Callable[..., Fleet]


@pytest.mark.parametrize("job", [None, NewJob(seconds=3.0, queue="once")], ids=["idle", "while a job runs"])
def test_a_server_that_takes_no_writes_for_a_while_costs_no_attempt(new_fleet: NewFleet, job: NewJob | None) -> None:
    fleet = new_fleet("auto")
    (daemon,) = fleet.daemons
    runs_a_job(fleet)
    if job is not None:
        fleet.enqueue(job)
        started(fleet, 2)
    fleet.server.run("SET GLOBAL read_only = 1")
    fleet.enqueue(NewJob())
    wait_for(lambda: daemon.metric("qd_database_up") == 0, 20, "the refusal to be noticed")
    pass_by(5)
    assert daemon.get("/readyz")[0] == 503
    fleet.server.run("SET GLOBAL read_only = 0")
    fleet.until_empty(10 + NEXT_JOB_WITHIN)
    until_told(fleet, 1)
    settled_well(fleet)


def test_a_name_that_moves_to_another_server_is_followed_by_every_connection(
    new_fleet: NewFleet, own_mariadb: Callable[..., MariaDB]
) -> None:
    """Also by those that only read, which a demoted server serves for ever."""
    fleet = new_fleet("auto")
    (member,) = fleet.members
    runs_a_job(fleet)
    other = own_mariadb()
    _copy(fleet, other)
    fleet.server.run("SET GLOBAL read_only = 1")
    wait_for(lambda: fleet.lines("database.lost"), 30, "the refusal to be noticed")
    member.proxy.server_port = other.port
    until_told(fleet, 1)
    left = f"SELECT COUNT(*) FROM {fleet.database}.qd_jobs WHERE type <> 'qd.post'"
    for queue in ("urgent", "default", "once"):
        job = ("INSERT INTO qd_jobs (queue, type, payload) VALUES (%s, 'work', %s)", (queue, NewJob().payload()))
        other.run(*job, fleet.database)
        wait_for(lambda: other.run(left)[0][0] == 0, 15, "the job on the other server to be run")
    assert told(fleet) == (1, 1)
    assert member.daemon.alive()


def _copy(fleet: Fleet, other: MariaDB) -> None:
    """The same database and account there, without rows."""
    name = other.new_database()
    other.run(f"CREATE DATABASE {fleet.database}")
    for (table,) in other.run(f"SHOW TABLES FROM {name}"):
        other.run(f"RENAME TABLE {name}.{table} TO {fleet.database}.{table}")
    account = fleet.user
    other.run(f"CREATE USER '{account}'@'%' IDENTIFIED BY 'change-me'")
    other.log_in_once()
    other.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {fleet.database}.* TO '{account}'@'%'")


def test_with_fewer_connections_than_threads_all_queues_are_served_and_no_lease_is_lost(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    fleet.server.run(f"ALTER USER '{fleet.user}'@'%' WITH MAX_USER_CONNECTIONS 5")
    kill_connections(fleet)
    runs_a_job(fleet, 30)
    queues = ("urgent", "default", "once")
    fleet.enqueue(*[NewJob(seconds=0.2, queue=queue) for queue in queues * 5], NewJob(seconds=LEASE * 1.5))
    fleet.until_empty(90)
    assert len(connections(fleet)) <= 5
    assert fleet.daemons[0].get("/livez") == (200, "ok\n")
    assert fleet.ledger.wrongs() == {}
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    assert told(fleet) == (1, 1)
    complaints = problems(fleet)
    assert len(complaints) <= 2 and all("max_user_connections" in line for line in complaints), complaints


HINTS = {1129: "FLUSH HOSTS", 1203: "max_user_connections"}


@pytest.mark.parametrize("errno", HINTS)
def test_a_server_that_refuses_connections_is_asked_rarely_and_told_once_with_what_helps(
    new_fleet: NewFleet, errno: int
) -> None:
    fleet = new_fleet("auto")
    (daemon,), (member,) = fleet.daemons, fleet.members
    runs_a_job(fleet)
    member.proxy.greeting = Answer(errno)
    member.proxy.cut_all()
    wait_for(lambda: fleet.lines("database.lost"), 20, "the refusal to be noticed")
    pass_by(3)
    asked = member.proxy.accepted
    pass_by(4)
    asked = member.proxy.accepted - asked
    member.proxy.greeting = None
    took = runs_a_job(fleet, 40)
    print(f"{errno}: {asked} tries in the seconds 3 to 7; the next job after {took:.1f} s")
    assert asked <= 20
    until_told(fleet, 1)
    said = [*fleet.lines("database.lost"), *problems(fleet)]
    assert len(said) == 2 and f"errno {errno}" in said[1] and HINTS[errno] in said[1]
    assert daemon.alive()
    assert fleet.ledger.wrongs() == {}
