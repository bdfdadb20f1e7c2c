"""Only the database's clock decides about rows, whatever zone server, producer and daemon are in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from qd.store.protocol import HeldLease, Renewal
from tests.contract.bench import Bench
from tests.support.waiting import wait_for

ZONES = ("+00:00", "+02:00", "-05:00", "+13:00")


@pytest.fixture(params=["Asia/Tokyo", "America/New_York"])
def elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process's own zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", ZONES)
def test_a_producer_of_any_zone_enqueues_for_now_and_for_later(server_bench: Bench, zone: str, elsewhere: None) -> None:
    assert server_bench.server is not None
    with closing(server_bench.server.connect(server_bench.config.name, autocommit=True)) as connection:
        cursor = connection.cursor()
        cursor.execute(f"SET time_zone = '{zone}'")
        cursor.execute("INSERT INTO qd_jobs (type) VALUES ('noop')")
        cursor.execute("INSERT INTO qd_jobs (type, available_at) VALUES ('noop', NOW(6) + INTERVAL 60 SECOND)")
        cursor.execute("INSERT INTO qd_jobs (type, available_at) VALUES ('noop', NOW())")
    now, later, whole_second = (row[0] for row in server_bench.sql("SELECT id FROM qd_jobs ORDER BY id"))
    jobs = server_bench.claim()
    assert {job.id for job in jobs} == {now, whole_second}
    assert all(job.waited < 10 for job in jobs)
    delay = "SELECT TIMESTAMPDIFF(SECOND, NOW(6), available_at) FROM qd_jobs WHERE id = %s"
    assert 50 <= server_bench.one(delay, later) <= 60


@pytest.mark.parametrize("zone", ZONES)
def test_leases_and_delays_are_to_the_second_whatever_the_servers_zone(server_bench: Bench, zone: str) -> None:
    assert server_bench.server is not None
    before = server_bench.server.run("SELECT @@global.time_zone")[0][0]
    server_bench.server.run(f"SET GLOBAL time_zone = '{zone}'")
    try:
        server_bench.add(1)
        (job,) = server_bench.claim(1, lease=90.0)
        left = "SELECT TIMESTAMPDIFF(SECOND, NOW(6), available_at) FROM qd_jobs WHERE id = %s"
        assert 80 <= server_bench.one(left, job.id) <= 90
        assert server_bench.store.renew([HeldLease(job.id, job.token, 300.0)]) == [Renewal.RENEWED]
        assert 290 <= server_bench.one(left, job.id) <= 300
        assert server_bench.store.stale(["default"], 5) == []
        assert abs(job.created_at.timestamp() - time.time()) < 60
    finally:
        server_bench.server.run("SET GLOBAL time_zone = %s", (before,))


def test_a_change_of_summer_time_moves_no_lease(mariadb_bench: Bench) -> None:
    """A lease that is taken in the hour that comes twice ends when it should: a TIMESTAMP is UTC."""
    before_the_change, after_the_change = 1792975800, 1792979400  # 2026-10-25 02:30 CEST, and 02:30 CET

    def at(moment: int) -> None:
        mariadb_bench.store._session.transaction(lambda cursor: cursor.execute(f"SET SESSION timestamp = {moment}"))

    at(before_the_change)
    mariadb_bench.sql(
        "INSERT INTO qd_jobs (type, available_at) VALUES ('noop', FROM_UNIXTIME(%s))", before_the_change - 5
    )
    (job,) = mariadb_bench.claim(1, lease=4000.0)
    end = "SELECT UNIX_TIMESTAMP(available_at) FROM qd_jobs WHERE id = %s"
    assert float(mariadb_bench.one(end, job.id)) == before_the_change + 4000
    at(after_the_change)
    assert mariadb_bench.store.stale(["default"], 5) == [], "3,600 of 4,000 seconds have passed"
    at(after_the_change + 500)
    assert [row.job_id for row in mariadb_bench.store.stale(["default"], 5)] == [job.id]


def test_a_database_clock_that_is_set_back_hides_no_job(mariadb_bench: Bench) -> None:
    def shift(clock: str) -> None:
        mariadb_bench.store._session.transaction(lambda cursor: cursor.execute(f"SET SESSION timestamp = {clock}"))

    mariadb_bench.add(2)
    shift("UNIX_TIMESTAMP(SYSDATE()) + 3600")
    mariadb_bench.store.look(["default"], full=False)
    mariadb_bench.claim(1)
    mariadb_bench.store.look(["default"], full=False)
    shift("DEFAULT")
    (job_id,) = mariadb_bench.add(1, due=0.3, priority=1)

    def seen() -> bool:
        return 1 in mariadb_bench.store.look(["default"], full=False).hits["default"]

    wait_for(seen, 10, "a quick look to see it, though the marks were an hour ahead")
    assert mariadb_bench.claim(1)[0].id == job_id
