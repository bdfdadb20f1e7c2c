"""A job and its effects in the same database: together or not at all, whoever is killed in whichever moment."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.faults.counting import CountingFleet
from tests.support.mariadb import MariaDB
from tests.support.server import Server
from tests.support.waiting import wait_for

NewFleet = Callable[..., CountingFleet]

WITHIN = 120.0
"""Seconds from one harm to the next, and to the end: stale leases, a server's start, a busy machine."""

EXECUTORS = ["thread", "process"]


@pytest.fixture
def counting_fleet(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[NewFleet]:
    """Starts three daemons on a server (one of `own_mariadb` lives as long as they do)."""
    fleets: list[CountingFleet] = []

    def start(server: Server, **workers: object) -> CountingFleet:
        fleets.append(CountingFleet(folder, server, **workers))
        return fleets[-1]

    yield start
    for fleet in fleets:
        fleet.end()
        fleet.server.drop_database(fleet.database)


def counted_exactly(fleet: CountingFleet, rng: random.Random, jobs: int, kills: int, server_kills: int) -> None:
    """The counter ends at the number of jobs."""
    ids = fleet.enqueue(jobs, rng)
    harms = [partial(fleet.kill_daemon, rng) for _ in range(kills)]
    harms += [fleet.kill_server for _ in range(server_kills)]
    rng.shuffle(harms)
    fleet.run(ids, harms, rng, WITHIN)
    assert fleet.wrongs(ids) == {}
    assert fleet.counter() == jobs
    assert fleet.starts() > jobs, "no run was cut off: the kills showed nothing"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_no_effect_is_lost_or_doubled_when_daemons_and_the_server_are_killed(
    counting_fleet: NewFleet, own_mariadb: Callable[..., MariaDB], rng: random.Random, executor: str
) -> None:
    fleet = counting_fleet(own_mariadb(), executor=executor)
    counted_exactly(fleet, rng, 300, kills=4, server_kills=2)


@pytest.mark.long
@pytest.mark.parametrize("executor", EXECUTORS)
def test_two_thousand_jobs_add_exactly_two_thousand_however_often_their_daemons_and_server_are_killed(
    counting_fleet: NewFleet, own_mariadb: Callable[..., MariaDB], rng: random.Random, executor: str
) -> None:
    fleet = counting_fleet(own_mariadb(), executor=executor)
    counted_exactly(fleet, rng, 2000, kills=25, server_kills=12)


def test_no_effect_is_lost_or_doubled_on_any_server_when_daemons_are_killed(
    counting_fleet: NewFleet, mariadb: Server, rng: random.Random
) -> None:
    counted_exactly(counting_fleet(mariadb), rng, 150, kills=3, server_kills=0)


def test_a_handler_that_read_before_it_completes_is_told_what_to_do(counting_fleet: NewFleet, mariadb: Server) -> None:
    if not mariadb.run("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        pytest.skip("this server has no innodb_snapshot_isolation, so it never answers 1020 here")
    fleet = counting_fleet(mariadb)
    with closing(mariadb.connect(fleet.database, autocommit=True)) as connection:
        connection.cursor().execute("INSERT INTO qd_jobs (type, max_attempts) VALUES ('read_first', 1)")
    sql = fleet.configs[0].sql
    ((error, reason),) = wait_for(lambda: sql("SELECT error, reason FROM qd_failed_jobs"), 60, "its dead letter")
    assert reason == "error"
    assert "job.complete() needs READ COMMITTED, or to be the transaction's first statement" in error
