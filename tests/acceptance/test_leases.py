"""A lease is kept while its owner lives, through whatever happens to the database; whoever lost it settles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import mysql.connector
import pytest

from qd.clock import monotonic
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.proxy import FaultProxy
from tests.support.waiting import wait_for

HANDLERS = {"modules": ["tests.acceptance.hard_handlers"]}
LEASE = 12.0


def succeeded(*daemons: Daemon) -> float:
    """How often these daemons together have counted the job as done."""
    series = 'qd_job_attempts_total{job_type="longer_later",outcome="succeeded",queue="default"}'
    return sum(daemon.metric(series) or 0.0 for daemon in daemons)


def row(qd: Qd, job: int) -> tuple[Any, ...] | None:
    """Who holds a job, and at which attempt it is."""
    found = qd.sql("SELECT reserved_by, attempts FROM qd_jobs WHERE id = %s", (job,))
    return found[0] if found else None


def cut_off(daemon: Daemon, proxy: FaultProxy) -> Callable[[], None]:
    """Cuts a daemon off from the database; returns what undoes it."""
    proxy.refusing = True
    proxy.cut_all()
    return lambda: setattr(proxy, "refusing", False)


def stopped(daemon: Daemon, proxy: FaultProxy) -> Callable[[], None]:
    """Makes a daemon stand still; returns what undoes it."""
    daemon.send(SIGSTOP)
    return lambda: daemon.send(SIGCONT)


@pytest.mark.parametrize(("harm", "executor"), [(stopped, "thread"), (cut_off, "process")])
def test_a_late_finisher_settles_nothing_however_its_run_ends(
    qd: Qd, harm: Callable[[Daemon, FaultProxy], Callable[[], None]], executor: str
) -> None:
    policy = {"lease": "3s", "timeout": "60s", "max_attempts": 5, "backoff": {"base": "0s"}}
    proxy = FaultProxy(qd.server.port)
    workers = [{"queues": ["default"], "threads": 2, "executor": executor}]
    qd.write(handlers=HANDLERS, queues={"default": policy}, workers=workers)
    second = qd.twin()
    qd.write(database={"port": proxy.port, "tls": {"mode": "disabled"}})
    late = qd.start()
    jobs = [qd.enqueue("longer_later", seconds=[2, 8], raises=raises)[0] for raises in (False, True)]
    wait_for(lambda: len(qd.ran("start")) == 2, 20, "both to run at the first daemon")
    undo = harm(late, proxy)
    new = second.start()
    wait_for(lambda: len(qd.ran("start")) == 4, 30, "the second daemon to run both")
    holders = {job: row(qd, job) for job in jobs}
    assert [holder[1] for holder in holders.values() if holder] == [2, 2]
    undo()
    wait_for(lambda: len(late.lines("lease.lost")) == 2, 15, "the first daemon to see that it lost them")
    wait_for(lambda: late.metric('qd_workers{state="idle",worker="default"}') == 2, 15, "its handlers to have ended")
    assert {job: row(qd, job) for job in jobs} == holders, "the new owner's rows were touched"
    wait_for(lambda: qd.jobs() == 0, 20, "the second daemon to end both")
    wait_for(lambda: succeeded(new) == 2, 5, "both to be counted")
    assert succeeded(late) == 0
    assert sorted(map(len, (late.lines("lease.lost"), new.lines("lease.lost")))) == [0, 2]
    assert all("level=warning" in line for line in late.lines("lease.lost"))
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    assert not [line for event in ("job.failed", "job.dead_lettered") for line in late.lines(event)]
    proxy.close()


class Watch:
    """Looks at a job's lease again and again, for as long as the server answers."""

    def __init__(self, qd: Qd, job: int) -> None:
        self._qd, self._job = qd, job
        self.least = LEASE
        self.renewed_at = 0.0
        self._end: Any = None

    def look(self) -> bool:
        """Whether the server answered."""
        try:
            ((left, end),) = self._qd.sql(
                "SELECT TIMESTAMPDIFF(MICROSECOND, NOW(6), available_at) / 1e6, available_at FROM qd_jobs "
                "WHERE id = %s AND lane = 1",
                (self._job,),
            )
        except (mysql.connector.Error, ValueError):  # it is away; or the job has ended
            return False
        if end != self._end:
            self._end, self.renewed_at = end, monotonic()
        self.least = min(self.least, float(left))
        return True

    def for_(self, seconds: float) -> None:
        """Goes on looking."""
        until = monotonic() + seconds
        wait_for(lambda: self.look() and monotonic() > until, seconds + 30, "the time to pass, the server at work")


@pytest.fixture
def named(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """A server that knows its connections by name, and a queue whose jobs may start once."""
    server = own_mariadb("--performance-schema=ON")
    qd = Qd(folder, server, server.new_database())
    policy = {"lease": f"{LEASE:g}s", "timeout": "90s", "max_attempts": 1}
    qd.write(handlers=HANDLERS, queues={"default": policy})
    yield qd
    qd.end()


def connections(qd: Qd, name: str) -> list[int]:
    """The ids of the connections that bear a name."""
    found = qd.sql(
        "SELECT processlist_id FROM performance_schema.session_connect_attrs "
        "WHERE attr_name = 'program_name' AND attr_value = %s",
        (name,),
    )
    return [int(number) for (number,) in found]


def test_a_long_jobs_lease_is_renewed_through_a_lost_connection_and_a_restarted_server(named: Qd) -> None:
    assert isinstance(named.server, MariaDB)
    daemons = [named.start(), named.twin().start()]
    (job,) = named.enqueue("nap", seconds=2.5 * LEASE)
    wait_for(lambda: named.ran("start"), 20, "it to run")
    (owner,) = [daemon for daemon in daemons if f":{daemon.process.pid}:" in row(named, job)[0]]  # type: ignore[index]
    watch = Watch(named, job)
    watch.for_(LEASE / 2)
    assert watch.least > LEASE / 3, "nothing has happened yet"
    before = watch.renewed_at
    wait_for(lambda: watch.look() and watch.renewed_at > before, LEASE / 2, "its connection to idle")
    killed = watch.renewed_at
    for keeper in connections(named, "qd lease keeper"):
        named.sql(f"KILL {keeper}")
    wait_for(lambda: watch.look() and watch.renewed_at > killed, LEASE / 2, "the renewal on another connection")
    assert owner.metric("qd_database_reconnects_total") == 1
    wait_for(lambda: len(owner.lines("database.restored")) == 1, 10, "the end of that to be told")
    named.server.stop()
    wait_for(lambda: owner.metric('qd_lease_extensions_total{result="error"}'), LEASE / 2, "a renewal to fail")
    named.server.start()
    back = monotonic()
    wait_for(lambda: watch.look() and watch.renewed_at > back, 20, "a renewal")
    assert watch.renewed_at - back <= LEASE / 2
    wait_for(lambda: (watch.look(), named.ran("end"))[1], 60, "it to end")
    wait_for(lambda: named.jobs() == 0, 10, "its end to be written")
    assert named.ran("start") == named.ran("end") == [job], "it was run twice, or cut off"
    assert watch.least > 0, "its lease had run out"
    assert not [line for daemon in daemons for line in daemon.lines("lease.lost")]
    lost = owner.lines("database.lost")
    assert len(lost) == len(owner.lines("database.restored")) == 2
    assert all("level=warning" in line for line in lost)
    assert named.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
