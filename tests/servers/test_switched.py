"""A primary and its replica behind HAProxy, switched over while jobs run, and connections cut for idling."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qd.store.mysql.limits import UNUSED
from qd.store.mysql.session import IDLE_LONG
from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.servers.producers import elapsed, producing
from tests.servers.switched import Switched, kind
from tests.support.server import ROOT
from tests.support.waiting import wait_for

NewPair = Callable[..., Switched]
NewFleet = Callable[..., Fleet]

SETTLED_WITHIN = 120.0
"""Seconds for leases, back-offs and the longest jobs on a busy machine."""

GOES_ON_WITHIN = 10.0
"""Seconds from the switch to each daemon's next start."""


def started_since(fleet: Fleet, moment: float, pid: int | None = None) -> int:
    lines = [line for _, line in fleet.ledger.lines() if line.what == "start" and line.at > moment]
    return sum(pid in (None, line.pid) for line in lines)


def judged(fleet: Fleet) -> dict[int, list[str]]:
    """What is wrong with which job."""
    fleet.until_empty(SETTLED_WITHIN)
    return {job: wrongs for job, (wrongs, _) in fleet.ledger.wrongs().items()}


@pytest.mark.parametrize("pause", [0.0, LEASE / 2], ids=["at once", "after half a lease without a primary"])
def test_a_switch_over_loses_nothing_and_runs_nothing_twice(
    new_pair: NewPair, new_fleet: NewFleet, pause: float
) -> None:
    pair = new_pair()
    fleet = new_fleet(pair)
    with producing([pair], fleet.database):
        wait_for(lambda: len(fleet.ledger.lines()) > 100, 60, "jobs to run")
        running = fleet.enqueue(NewJob(seconds=LEASE / 2 + 2), NewJob(seconds=LEASE / 2 + 2, queue="once"))
        wait_for(lambda: set(running) <= {job for job, _ in fleet.ledger.lines()}, 30, "the long jobs' start")
        pair.demote()
        pair.caught_up()
        wait_for(elapsed(pause), 30, "the pause to pass")
        pair.promote()
        switched = time.time()
        for member in fleet.members:
            wait_for(
                lambda: started_since(fleet, switched, member.pid),  # noqa: B023
                GOES_ON_WITHIN + 20,
                f"daemon {member.number} to go on",
            )
    assert judged(fleet) == {}
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    assert len(fleet.lines("database.lost")) == len(fleet.lines("database.restored")) <= 2 * len(fleet.members)


def test_a_primary_that_was_killed_costs_nothing_when_its_replica_had_all(
    new_pair: NewPair, new_fleet: NewFleet
) -> None:
    pair = new_pair()
    fleet = new_fleet(pair)
    fleet.enqueue(*[NewJob(seconds=1.5) for _ in range(12)], *[NewJob(queue="once") for _ in range(30)])
    wait_for(lambda: started_since(fleet, 0.0) > 5, 30, "jobs to run")
    pair.demote()  # so that the replica can be known to have all
    pair.caught_up()
    pair.primary.kill()
    pair.promote()
    assert judged(fleet) == {}
    assert [member.daemon.alive() for member in fleet.members] == [True] * 3


def test_what_the_replica_never_got_is_lost_and_nothing_but_that(new_pair: NewPair, new_fleet: NewFleet) -> None:
    pair = new_pair()
    fleet = new_fleet(pair)
    (kept,) = fleet.enqueue(NewJob(seconds=0.5))
    wait_for(lambda: fleet.jobs() == 0, 30, "the first job's end")
    (undone,) = fleet.enqueue(NewJob(seconds=2.0))
    wait_for(lambda: started_since(fleet, 0.0) == 2, 30, "the second job's start")
    pair.caught_up()
    pair.replica.run("STOP SLAVE")
    (vanished,) = fleet.enqueue(NewJob())
    wait_for(lambda: fleet.jobs() == 0, 30, "all to be done on the old primary")
    pair.primary.kill()
    pair.promote()
    fleet.until_empty(SETTLED_WITHIN)
    started = [job for job, line in fleet.ledger.lines() if line.what == "start"]
    assert started.count(kept) == 1
    assert started.count(undone) == 2, "its end was never replicated: it was run again once its lease was over"
    assert vanished not in fleet.ledger.audit.asked()
    assert [member.daemon.alive() for member in fleet.members] == [True] * 3


def test_connections_that_the_proxy_cuts_for_idling_are_no_outage(new_pair: NewPair, new_fleet: NewFleet) -> None:
    pair = new_pair(idle=IDLE_LONG + 1)
    assert pair.proxy.idle < UNUSED
    fleet = new_fleet(pair)
    for _ in range(2):
        fleet.enqueue(*[NewJob(seconds=0.1) for _ in range(20)])
        fleet.until_empty(60)
        wait_for(elapsed(IDLE_LONG + 3), 30, "the proxy to have cut what idles")
    assert judged(fleet) == {}
    assert fleet.lines("database.lost") == []
    assert sum(member.daemon.metric("qd_database_reconnects_total") or 0 for member in fleet.members) > 0


def test_haproxy_takes_the_configuration_that_the_page_shows(tmp_path: Path) -> None:
    (block,) = re.findall(
        r"^```haproxy\n(.*?)^```$", (ROOT / "docs/scale-out.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "h.cfg").write_text(block)
    command = kind("switched").programs.command("usr/sbin/haproxy", "-c", "-f", str(tmp_path / "h.cfg"))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
