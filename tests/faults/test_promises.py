"""The two promises under fire: no job is lost, and none is settled by anyone but the holder of its lease."""

from __future__ import annotations

import random
from collections.abc import Callable

from qd.clock import monotonic
from tests.faults.fleet import LEASE, Fleet, NewJob
from tests.faults.harm import Harm
from tests.support.proxy import Link
from tests.support.waiting import wait_for

SECONDS = 10.0
"""So long a fleet is harmed."""

BACKLOG = 300
"""Jobs that may wait or run while more are put in: few enough to be settled soon afterwards."""

SETTLED_WITHIN = 60.0
"""Seconds for a lease, the sweep, back-offs and the longest jobs, on a busy machine."""

NewFleet = Callable[..., Fleet]


def some_job(rng: random.Random) -> NewJob:
    """Most are quick and succeed; a few outlast their lease, a few fail once or always."""
    return NewJob(
        seconds=rng.choice([0.0] * 30 + [0.02] * 5 + [0.3] * 5 + [2.5, LEASE + 1]),
        failures=rng.choice([0] * 16 + [1, 1, 9]),
        queue=rng.choice(["default", "default", "once", "urgent"]),
        priority=rng.choice([0, 2, 2, 3]),
        max_attempts=rng.choice([None, None, None, 1, 2]),
    )


def harm(fleet: Fleet, rng: random.Random, kinds: list[str]) -> None:
    """Gives the fleet work while it is harmed, then peace until all is settled."""
    harmer, end = Harm(fleet, rng, kinds), monotonic() + SECONDS
    while monotonic() < end:
        fleet.enqueue(*[some_job(rng) for _ in range(rng.randrange(1, 50))])
        harmer.one()
        again = monotonic() + rng.uniform(0.1, 0.5)
        wait_for(lambda: monotonic() > end or (monotonic() > again and fleet.jobs() < BACKLOG), 60, "the next harm")  # noqa: B023
    harmer.over()
    fleet.until_empty(SETTLED_WITHIN)


def test_trouble_at_the_database_loses_no_job_and_runs_none_twice(new_fleet: NewFleet, rng: random.Random) -> None:
    fleet = new_fleet("auto", 50, "auto")
    fleet.enqueue(*[some_job(rng) for _ in range(100)])
    fleet.until_empty(SETTLED_WITHIN)
    before = fleet.sizes()
    harm(fleet, rng, ["cut", "cut", "cut_all", "kill_connections", "read_only", "lock_rows", "open_insert", "reload"])
    assert fleet.ledger.wrongs(calm=True) == {}
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    assert [line for line in fleet.lines("daemon.problem_seen") if " tries: " not in line] == []  # patience is no fault
    wait_for(lambda: no_bigger(fleet.sizes(), before), 20, f"threads and open files to be what they were: {before}")


def no_bigger(now: list[tuple[int, int]], before: list[tuple[int, int]]) -> bool:
    """Whether threads and files of each daemon are what they were, but for a connection or two first needed since."""
    pairs = zip(now, before, strict=True)
    return all(
        threads <= had_threads and files <= had_files + 3 for (threads, files), (had_threads, had_files) in pairs
    )


def test_killed_and_frozen_daemons_lose_no_job_and_settle_none_of_others(
    new_fleet: NewFleet, rng: random.Random
) -> None:
    fleet = new_fleet("auto", 50, "auto")
    harm(fleet, rng, ["kill", "kill", "freeze", "cut", "kill_connections", "lock_rows", "reload"])
    assert fleet.ledger.wrongs(calm=False) == {}


def test_a_job_whose_claim_was_not_answered_is_run_at_its_only_attempt(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")

    def rule(link: Link, statement: bytes) -> str | None:
        claims = statement.lower() == b"commit" and any(b"lane = 1, reserved_by" in sent for sent in link.transaction)
        return "after" if claims and not fleet.proxy.cuts else None

    fleet.proxy.rule = rule
    fleet.enqueue(NewJob(queue="once"))
    fleet.until_empty(SETTLED_WITHIN)
    assert fleet.proxy.cuts == 1
    assert fleet.ledger.wrongs(calm=True) == {}


def test_a_long_outage_with_ends_to_be_written_makes_no_loop_overdue(new_fleet: NewFleet) -> None:
    fleet = new_fleet(50)
    (daemon,) = fleet.daemons
    fleet.enqueue(NewJob(seconds=1.0), NewJob(seconds=25.0))  # claimed together; the second still runs in the end
    wait_for(lambda: daemon.qd.ledger.read_text(), 20, "the first job's start")
    fleet.server.freeze()
    over = monotonic() + 1 + 4 * 2 + 5 + 4  # what a loop may take for a round with these time limits, and some more
    wait_for(lambda: monotonic() > over, 60, "the outage to have been long")
    assert daemon.get("/livez") == (200, "ok\n")
    fleet.server.thaw()
    fleet.until_empty(SETTLED_WITHIN)
    assert fleet.ledger.wrongs(calm=True) == {}
