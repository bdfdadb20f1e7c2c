"""Server, daemon and producer each in a zone of its own: jobs start when they should, leases last what they should."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.daemon import Qd
from tests.support.mariadb import MariaDB
from tests.support.server import ROOT
from tests.support.waiting import wait_for

BERLIN, NEW_YORK = "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0"
TOKYO = "JST-9"

INSERT = (
    "INSERT INTO qd_jobs (type, payload, available_at) VALUES ('nap', '{\"seconds\": 0}', NOW(6) + INTERVAL %s SECOND)"
)

LEASE = (
    "SELECT TIMESTAMPDIFF(MICROSECOND, reserved_at, available_at) / 1e6 FROM qd_jobs WHERE id = %s AND lane = 1"
    " AND available_at > NOW(6)"
)


@pytest.fixture(params=[BERLIN, NEW_YORK], ids=["Berlin", "New York"])
def abroad(request: pytest.FixtureRequest, folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """A server whose sessions think in a zone with summer time."""
    server = own_mariadb(zone=request.param)
    made = Qd(folder, server, server.new_database())
    made.write(shutdown={"grace": "1s"})
    yield made
    made.end()


def enqueued(qd: Qd, zone: str, *options: str) -> int:
    """A job that the command line puts in, in a zone of its own."""
    environment = {**os.environ, "TZ": zone, "QD_CONFIG": str(qd.file), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "qd", "enqueue", "nap", '{"seconds": 0}', *options]
    done = subprocess.run(command, env=environment, cwd=qd.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def inserted(qd: Qd, seconds: int) -> int:
    """A job by plain SQL, in a session of the server's own zone."""
    with closing(qd.server.connect(qd.database, autocommit=True)) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(INSERT, (seconds,))
        return int(cursor.lastrowid)


def test_jobs_for_now_and_for_later_start_in_time_and_leases_last_to_the_second(abroad: Qd) -> None:
    assert abroad.one("SELECT @@session.time_zone") == "SYSTEM"
    assert abroad.one("SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())") != 0
    daemon = abroad.start(TZ=TOKYO)
    now = [enqueued(abroad, TOKYO), enqueued(abroad, NEW_YORK), inserted(abroad, 0)]
    wait_for(lambda: set(abroad.ran("end")) == set(now), 10, "the jobs that are due")
    later = [enqueued(abroad, BERLIN, "--delay", "60s"), inserted(abroad, 60)]
    left = "SELECT TIMESTAMPDIFF(SECOND, NOW(6), available_at) FROM qd_jobs WHERE id = %s"
    assert all(20 <= abroad.one(left, (job,)) <= 60 for job in later)
    soon = [enqueued(abroad, NEW_YORK, "--delay", "3s"), inserted(abroad, 3)]
    due = dict(abroad.sql("SELECT id, UNIX_TIMESTAMP(available_at) FROM qd_jobs"))
    wait_for(lambda: set(abroad.ran("end")) >= set(soon), 30, "the delayed jobs")
    assert float(abroad.one("SELECT UNIX_TIMESTAMP(NOW(6))")) >= float(max(due[job] for job in soon))
    assert not set(abroad.ran("start")) & set(later)
    (long,) = abroad.enqueue("nap", seconds=20)
    wait_for(lambda: abroad.sql(LEASE, (long,)), 10, "the long job's lease")
    assert float(abroad.one(LEASE, (long,))) == pytest.approx(6.0, abs=0.01)
    assert daemon.stop() == 0


def test_a_moment_is_stored_alike_from_every_zone_and_one_past_2038_is_refused_plainly(abroad: Qd) -> None:
    stored = set()
    for zone in (TOKYO, NEW_YORK, BERLIN):
        job = enqueued(abroad, zone, "--at", "2037-10-25T02:30:00+02:00")
        stored.add(str(abroad.one("SELECT UNIX_TIMESTAMP(available_at) FROM qd_jobs WHERE id = %s", (job,))))
    assert len(stored) == 1 and float(stored.pop()) == 2140043400.0
    environment = {**os.environ, "TZ": TOKYO, "QD_CONFIG": str(abroad.file), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "qd", "enqueue", "nap", "{}", "--at", "2040-01-01T00:00:00Z"]
    done = subprocess.run(command, env=environment, cwd=abroad.folder, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and "2038" in done.stderr and done.stdout == ""
    assert abroad.jobs() == 3 and abroad.jobs("available_at < NOW(6)") == 0
