"""Steps of the server's clock and of a daemon's: nobody's job is taken, none runs twice, nothing stands still."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.watching import pass_by, problems, runs_a_job, started
from tests.support.clocks import Clock
from tests.support.daemon import Daemon
from tests.support.mariadb import MariaDB
from tests.support.server import ServerMissing
from tests.support.waiting import wait_for

HOUR = 3600

LATER = "INSERT INTO qd_jobs (type, payload, available_at) VALUES ('work', %s, NOW(6) + INTERVAL %s SECOND)"


@pytest.fixture
def by_servers_clock(
    folder: Path, own_mariadb: Callable[..., MariaDB], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Fleet, Clock]]:
    """A fleet, and the clock of its server."""
    try:
        clock = Clock(folder / "clock", server=True)
    except ServerMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with monkeypatch.context() as patch:
        for name, value in clock.env.items():
            patch.setenv(name, value)
        server = own_mariadb()
    fleet = Fleet(folder, server, ["auto", 5])
    fleet.until_ready()
    yield fleet, clock
    fleet.end()


@pytest.fixture
def by_own_clock(folder: Path, new_fleet: Callable[..., Fleet]) -> tuple[Fleet, Clock]:
    """A fleet, and the clock of its daemons."""
    clock, fleet = Clock(folder / "clock", server=False), new_fleet("auto", 5)
    for member in fleet.members:
        member.daemon.stop()
        member.daemon = member.config.start(ready=True, **clock.env)  # type: ignore[arg-type]  # all are variables
    return fleet, clock


def ran_once(fleet: Fleet) -> bool:
    """Whether every job that was put in was started once, and came to its end."""
    noted = Counter((job, line.what) for job, line in fleet.ledger.lines())
    jobs = {job for job, _ in noted}
    return bool(jobs) and all(noted[job, "start"] == noted[job, "end"] == 1 for job in jobs)


def put_later(fleet: Fleet, seconds: int) -> None:
    """A job that is due in so many seconds, as the server's clock has it."""
    fleet.server.run(LATER, (NewJob().payload(), seconds), fleet.database)


def until_run(fleet: Fleet, jobs: int, within: float = 20.0) -> None:
    """Waits until so many jobs have come to their end."""
    wait_for(lambda: ends(fleet) >= jobs, within, f"{jobs} ends")


def ends(fleet: Fleet) -> int:
    """How many jobs have come to their end."""
    return sum(line.what == "end" for _, line in fleet.ledger.lines())


@pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["an hour ahead", "an hour back"])
def test_a_step_of_the_servers_clock_takes_no_job_and_hides_none(
    by_servers_clock: tuple[Fleet, Clock], step: int
) -> None:
    fleet, clock = by_servers_clock
    runs_a_job(fleet)
    fleet.enqueue(*[NewJob(seconds=LEASE * 1.5, queue="once")] * 3)
    started(fleet, 4)
    put_later(fleet, HOUR // 2)
    clock.set(step)
    fleet.enqueue(*[NewJob()] * 5)
    until_run(fleet, 9)
    if step > 0:
        until_run(fleet, 10)  # by the server's clock it is due
    else:
        pass_by(2)
        assert fleet.jobs() == 1  # by the server's clock it is not
        put_later(fleet, 1)
        until_run(fleet, 10)
    assert ran_once(fleet)
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == problems(fleet) == []


@pytest.mark.parametrize("step", [600, -HOUR], ids=["ten minutes ahead", "an hour back"])
def test_a_step_of_a_daemons_clock_changes_nothing(by_own_clock: tuple[Fleet, Clock], step: int) -> None:
    fleet, clock = by_own_clock
    runs_a_job(fleet)
    fleet.enqueue(*[NewJob(seconds=LEASE * 1.2, queue="once")] * 3)
    started(fleet, 4)
    put_later(fleet, 300)
    clock.set(step)
    spent = cpu_seconds(fleet)
    put_later(fleet, 2)
    fleet.enqueue(*[NewJob()] * 5)
    until_run(fleet, 10)
    wait_for(lambda: fleet.jobs() == 1, 20, "the last ends to be written")
    assert cpu_seconds(fleet) - spent < LEASE, "a loop that no longer waits takes all it can get"
    assert ran_once(fleet)
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == problems(fleet) == []
    assert all(daemon.get("/livez") == (200, "ok\n") for daemon in fleet.daemons)
    assert [daemon.stop(30) for daemon in fleet.daemons] == [0, 0]
    assert all(abs(logged_at(daemon) - time.time() - step) < 200 for daemon in fleet.daemons), "it was stepped"


def logged_at(daemon: Daemon) -> float:
    """What time the daemon has it in its last line."""
    stamp = daemon.said().splitlines()[-1].split()[0].removeprefix("time=").removesuffix("Z")
    return datetime.fromisoformat(f"{stamp}+00:00").timestamp()


def cpu_seconds(fleet: Fleet) -> float:
    """What the daemons have computed by now."""
    return sum(_cpu(member.pid) for member in fleet.members)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
