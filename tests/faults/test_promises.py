"""The two promises under fire: no job is lost, and none is settled by anyone but the holder of its lease."""

from __future__ import annotations

from collections.abc import Callable

from qd.clock import monotonic
from tests.faults.campaign import Campaign, Plan
from tests.faults.fleet import Fleet
from tests.faults.harm import AT_THE_DATABASE
from tests.faults.jobs import NewJob
from tests.faults.judgement import judged
from tests.support.proxy import Link
from tests.support.waiting import wait_for

SETTLED_WITHIN = 60.0

NewFleet = Callable[..., Fleet]


def test_trouble_at_the_database_loses_no_job_and_takes_none_from_its_daemon(new_fleet: NewFleet, seed: int) -> None:
    fleet = new_fleet("auto", 50, "auto")
    fleet.enqueue(*[NewJob(seconds=0.02)] * 100)
    fleet.until_empty(SETTLED_WITHIN)
    before = fleet.sizes()
    kinds = [kind for kind in AT_THE_DATABASE if kind != "reloaded"]
    assert judged(Campaign(fleet, Plan(seed, seconds=10, jobs=400), kinds)).broken == []
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    wait_for(lambda: no_bigger(fleet.sizes(), before), 20, f"threads and open files to be what they were: {before}")


def no_bigger(now: list[tuple[int, int]], before: list[tuple[int, int]]) -> bool:
    """Whether threads and files of each daemon are what they were, but for a connection or two first needed since."""
    pairs = zip(now, before, strict=True)
    return all(
        threads <= had_threads and files <= had_files + 3 for (threads, files), (had_threads, had_files) in pairs
    )


def test_a_job_whose_claim_was_not_answered_is_run_at_its_only_attempt(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")

    def rule(link: Link, statement: bytes) -> str | None:
        claims = statement.lower() == b"commit" and any(b"lane = 1, reserved_by" in sent for sent in link.transaction)
        return "after" if claims and not fleet.proxy.cuts else None

    fleet.proxy.rule = rule
    fleet.enqueue(NewJob(queue="once"))
    fleet.until_empty(SETTLED_WITHIN)
    assert fleet.proxy.cuts == 1
    assert fleet.ledger.wrongs() == {}


def test_a_long_outage_with_ends_to_be_written_makes_no_loop_overdue(new_fleet: NewFleet) -> None:
    fleet = new_fleet(50)
    (daemon,) = fleet.daemons
    fleet.enqueue(NewJob(seconds=1.0), NewJob(seconds=25.0))  # claimed together; the second still runs in the end
    wait_for(lambda: fleet.ledger.lines(), 20, "the first job's start")
    fleet.server.freeze()
    over = monotonic() + 1 + 4 * 2 + 5 + 4  # what a loop may take for a round with these time limits, and some more
    wait_for(lambda: monotonic() > over, 60, "the outage to have been long")
    assert daemon.get("/livez") == (200, "ok\n")
    fleet.server.thaw()
    fleet.until_empty(SETTLED_WITHIN)
    assert fleet.ledger.wrongs() == {}
