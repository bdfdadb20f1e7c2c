"""What the tests of single faults ask of a fleet, beyond what the fleet itself tells."""

from __future__ import annotations

from contextlib import suppress

import mysql.connector

from qd.clock import monotonic
from tests.faults.fleet import Fleet
from tests.faults.jobs import NewJob
from tests.support.waiting import wait_for

NEXT_JOB_WITHIN = 5.0
"""Seconds from a server's return until a job that is put in then has run."""

BUSY = 3.0
"""How many times longer a busy machine may take."""

PROCESSLIST = "SELECT id FROM information_schema.processlist WHERE user = %s"


def runs_a_job(fleet: Fleet, within: float = NEXT_JOB_WITHIN * BUSY, job: NewJob | None = None) -> float:
    """Puts a job in and waits until all are settled; the seconds that it took."""
    began = monotonic()
    fleet.enqueue(job or NewJob())
    fleet.until_empty(within)
    return monotonic() - began


def told(fleet: Fleet) -> tuple[int, int]:
    """How many outages were said, and how many ends of one."""
    return len(fleet.lines("database.lost")), len(fleet.lines("database.restored"))


def until_told(fleet: Fleet, lost: int, within: float = 20.0) -> None:
    """Waits until so many outages, and as many ends, were said; more than that is a fault."""
    wait_for(lambda: told(fleet)[1] >= lost, within, f"{lost} ends of outages to be said")
    assert told(fleet) == (lost, lost), [*fleet.lines("database.lost"), *fleet.lines("database.restored")]


def until_even(fleet: Fleet, before: int, most: int) -> int:
    """Waits until as many ends as outages are said; how many since, at most so many.

    None where only connections that are older than the last outage notice it: they take it for that one.
    """
    wait_for(lambda: len(set(told(fleet))) == 1, 20, "the end of what was lost to be said")
    assert told(fleet)[0] - before <= most, fleet.lines("database.lost")[before:]
    return told(fleet)[0] - before


def connections(fleet: Fleet) -> list[int]:
    """The server's numbers of what the daemons have open there."""
    accounts = [member.account for member in fleet.members]
    return [int(row[0]) for account in accounts for row in fleet.server.run(PROCESSLIST, (account,))]


def kill_connections(fleet: Fleet) -> None:
    """Ends all that the daemons have open at the server, from outside."""
    for number in connections(fleet):
        with suppress(mysql.connector.Error):  # it has gone by itself
            fleet.server.run(f"KILL {number}")


PASSWORD_WITHOUT_TLS = "errno 2061"
"""MySQL refuses it from its start until the account has been there over TLS, which a fleet's start sees to; and a
fleet goes without TLS, so that its statements can be read."""


def problems(fleet: Fleet) -> list[str]:
    """What was complained of, but for what comes of how all fleets are set up."""
    own = ("where=configuration", PASSWORD_WITHOUT_TLS)
    return [line for line in fleet.lines("daemon.problem_seen") if not any(words in line for words in own)]


def settled_well(fleet: Fleet) -> None:
    """Every promise was kept, as if nothing had happened, and nothing was said beside the outages."""
    assert fleet.ledger.wrongs() == {}
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    patience = (" tries: ", "counting the rows was given up")  # what took long because the server did
    complaints = [line for line in problems(fleet) if not any(words in line for words in patience)]
    assert complaints == [], complaints


def started(fleet: Fleet, jobs: int = 1) -> None:
    """Waits until so many handlers have begun."""
    wait_for(lambda: len([1 for _, line in fleet.ledger.lines() if line.what == "start"]) >= jobs, 30, "a start")


def pass_by(seconds: float) -> None:
    """So long nothing is to happen."""
    over = monotonic() + seconds
    wait_for(lambda: monotonic() > over, seconds + 60, "time to pass")
