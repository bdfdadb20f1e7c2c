"""Connections that are killed, forgotten or silent, at a daemon: it goes on by itself, and nobody's job suffers."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.faults import steps
from tests.faults.fleet import Fleet
from tests.faults.jobs import LEASE, NewJob
from tests.faults.watching import (
    connections,
    kill_connections,
    pass_by,
    runs_a_job,
    settled_well,
    started,
    told,
    until_told,
)  # fmt: skip
from tests.support.proxy import Link
from tests.support.waiting import wait_for

NewFleet = Callable[..., Fleet]

AFTER_SILENCE = 10.0
"""Seconds from the end of a network's silence until a job has run."""


class AtTheClaim:
    """A rule that does something once, when a claim is on its way, and lets it pass."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act: Callable[[], Any] | None = act
        self.done = False

    def __call__(self, link: Link, statement: bytes) -> None:
        if self._act is not None and steps.CLAIM.matches(link, statement):
            act, self._act = self._act, None
            act()
            self.done = True


def test_a_claim_whose_connection_is_killed_in_mid_statement_costs_its_job_nothing(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    runs_a_job(fleet)
    with closing(fleet.server.connect(fleet.database)) as stranger, closing(stranger.cursor()) as cursor:
        fleet.proxy.rule = AtTheClaim(lambda: cursor.execute("LOCK TABLES qd_jobs WRITE, qd_queues READ, audit WRITE"))
        (job,) = fleet.enqueue(NewJob(queue="once"))
        waits = "SELECT id FROM information_schema.processlist WHERE state LIKE 'Waiting%%' AND info LIKE %s"
        rows = wait_for(lambda: fleet.server.run(waits, ("SELECT id, type, payload%",)), 20, "the claim to wait")
        fleet.server.run(f"KILL {rows[0][0]}")
        wait_for(lambda: rows[0][0] not in connections(fleet), 20, "the killed connection to be gone")
        cursor.execute("UNLOCK TABLES")  # a worker that has just given up its wait looks at it no sooner
    wait_for(lambda: fleet.lines("database.lost"), 20, "the loss to be noticed")
    fleet.until_empty(15)
    until_told(fleet, 1)
    settled_well(fleet)
    attempts = "SELECT MAX(attempts) FROM audit WHERE job = %s"
    assert fleet.server.run(attempts, (job,), fleet.database) == [(1,)]


def test_a_server_that_keeps_idle_connections_for_a_second_keeps_those_of_qd(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    runs_a_job(fleet)
    for limit in ("wait_timeout", "interactive_timeout", "idle_transaction_timeout"):
        fleet.server.set_default(limit, "1")
    kill_connections(fleet)
    runs_a_job(fleet)
    until_told(fleet, 1)
    before = connections(fleet)
    pass_by(3)
    assert set(before) <= set(connections(fleet))
    runs_a_job(fleet)
    assert told(fleet) == (1, 1)
    settled_well(fleet)


class Pins:
    """A rule that lets all pass.

    Attributes:
        pins: the different statements by which sessions were set.
        pinned: the new connections on which one was sent.
        bare: statements on the tables that came on a new connection without.
    """

    def __init__(self) -> None:
        self.pins: set[bytes] = set()
        self.pinned: list[Link] = []
        self.bare: list[bytes] = []
        self._new: list[Link] = []

    def __call__(self, link: Link, statement: bytes) -> None:
        if link.packets == 1:
            self._new.append(link)
        if statement.startswith(b"SET NAMES utf8mb4 COLLATE utf8mb4_bin, SESSION"):
            self.pins.add(statement)
            self.pinned.append(link)
        elif b"qd_jobs" in statement and link in self._new and link not in self.pinned:
            self.bare.append(statement)


ODD_DEFAULTS = {
    "tx_isolation": "'SERIALIZABLE'", "sql_mode": "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "time_zone": "'-05:00'",
    "innodb_lock_wait_timeout": "100", "max_statement_time": "0.5", "max_execution_time": "500",
    "character_set_server": "'latin1'", "sql_select_limit": "1", "autocommit": "1", "completion_type": "'CHAIN'",
}  # fmt: skip


def test_every_connection_has_the_same_settings_after_a_kill_a_restart_and_a_reload(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    watch = fleet.proxy.rule = Pins()
    for name, value in ODD_DEFAULTS.items():
        fleet.server.set_default(name, value)
    acts: list[Callable[[], object]] = [
        lambda: kill_connections(fleet),
        fleet.server.restart,
        lambda: fleet.members[0].reload(batch=5),
    ]
    for act in acts:
        count = len(watch.pinned)
        act()
        runs_a_job(fleet, 30)
        wait_for(lambda: len(watch.pinned) > count, 20, "new connections")  # noqa: B023
    assert (len(watch.pins), watch.bare) == (1, [])
    assert fleet.ledger.wrongs() == {}


@pytest.mark.parametrize("moment", ["idle", "in mid-claim"])
def test_a_network_that_falls_silent_is_noticed_and_worked_over_again(new_fleet: NewFleet, moment: str) -> None:
    fleet = new_fleet("auto")
    (daemon,), (member,) = fleet.daemons, fleet.members
    runs_a_job(fleet)

    def hush() -> None:
        member.proxy.up.stop()
        member.proxy.down.stop()

    if moment == "idle":
        hush()
    else:
        fleet.proxy.rule = AtTheClaim(hush)
        fleet.enqueue(NewJob(queue="once"))
    wait_for(lambda: daemon.metric("qd_database_up") == 0, 15, "the silence to be noticed")
    assert daemon.get("/livez") == (200, "ok\n")
    pass_by(4)
    member.proxy.cut_all()  # as the other end's own time-outs would
    for way in (member.proxy.up, member.proxy.down):
        way.go()
    runs_a_job(fleet, AFTER_SILENCE)
    until_told(fleet, 1)
    settled_well(fleet)


def test_a_stop_in_a_silent_network_ends_within_its_grace(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    (daemon,), (member,) = fleet.daemons, fleet.members
    fleet.enqueue(NewJob(seconds=1.0))
    started(fleet)
    member.proxy.up.stop()
    member.proxy.down.stop()
    daemon.send(signal.SIGTERM)
    assert daemon.wait_exit(4 + 2 + 10) == 0  # the grace, what the stop adds to it, and a busy machine


def test_a_server_that_vanished_from_one_side_is_left_for_a_new_connection(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    runs_a_job(fleet)
    fleet.members[0].proxy.vanish()
    runs_a_job(fleet, 15)
    until_told(fleet, 1)
    settled_well(fleet)


def test_when_a_stalled_server_returns_with_every_lease_expired_nobody_takes_a_job(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto", 1, 1)
    fleet.enqueue(*[NewJob(seconds=LEASE * 2.5, queue="once")] * 5, *[NewJob(seconds=LEASE * 2)] * 5)
    started(fleet, 10)
    fleet.server.freeze()
    pass_by(LEASE * 1.5)
    fleet.server.thaw()
    fleet.until_empty(60)
    settled_well(fleet)
    assert all(len(story.lines) == 2 for story in fleet.ledger.stories().values())
