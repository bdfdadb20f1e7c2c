"""Every error at every statement of a job's life: no job is lost, doubled, or said to have failed.

A table of error x statement on one daemon; each error is answered once, in the server's name. With the
errors come connections that end before, in and after each statement: an answer that was lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.faults import steps
from tests.faults.fleet import Fleet
from tests.faults.jobs import NewJob
from tests.faults.steps import Ambush, Harm, Step
from tests.faults.watching import problems, runs_a_job, until_even
from tests.support.answer import Answer
from tests.support.waiting import wait_for

NewFleet = Callable[..., Fleet]

SUCCEEDS, FAILS_ONCE, FAILS = NewJob(), NewJob(failures=1), NewJob(failures=9, max_attempts=1)

LIFE: dict[Step, NewJob] = {
    steps.LOOK: SUCCEEDS,
    steps.CLAIM: SUCCEEDS,
    steps.RESERVE: SUCCEEDS,
    steps.CLAIM_COMMIT: SUCCEEDS,
    steps.FINISH: SUCCEEDS,
    steps.FINISH_COMMIT: SUCCEEDS,
    steps.RETRY_READ: FAILS_ONCE,
    steps.RETRY_WRITE: FAILS_ONCE,
    steps.RETRY_COMMIT: FAILS_ONCE,
    steps.BURY: FAILS,
    steps.BURY_DELETE: FAILS,
    steps.BURY_COMMIT: FAILS,
}
"""The statements that every job brings, and the job that brings them."""

UNDONE = (1020, 1205, 1213)
CUT_SHORT = (1180, 1317, 1969, 3024)
LOST = (1040, 1047, 1053, 1203, 1927, 4031)
READ_ONLY = (1290, 1792, 1836)
NO_ROOM = (1021, 1114, 1129, 1226)
SET_UP_WRONG = (1054, 1142, 1146, 1176)
BAD_DATA = (1153, 1264, 4025)
UNHEARD_OF = (1026, 9999)

CUT = ("before", "half", "after")

ENDS_THE_CONNECTION = {1047, 1053, 1927, 4031, 1153}
"""After these the server says no more."""


def answers(errno: int | str, step: Step) -> list[Harm]:
    """What a server can mean by it: an error that leaves a COMMIT's outcome open may come after it stood."""
    if isinstance(errno, str):
        return [errno]
    answer = Answer(errno, ends=errno in ENDS_THE_CONNECTION)
    open_ended = step.commit and errno in {*CUT_SHORT, 1053, 1927, *UNHEARD_OF}
    return [answer, Answer(errno, reached=True, ends=answer.ends)] if open_ended else [answer]


def outages(errno: int | str, step: Step) -> int:
    """How many outages are to be said for it."""
    if errno in LOST or errno in READ_ONLY or errno in CUT:
        return 1
    return 1 if step.commit and errno in {*CUT_SHORT, *UNHEARD_OF} else 0  # nobody knows what became of it


@pytest.mark.parametrize(
    "errnos",
    [UNDONE, CUT_SHORT, LOST, READ_ONLY, NO_ROOM, SET_UP_WRONG, BAD_DATA, UNHEARD_OF, CUT],
    ids=["undone", "cut short", "lost", "read only", "no room", "set up wrong", "bad data", "unheard of", "cut"],
)
def test_no_error_at_any_statement_loses_a_job_runs_it_twice_or_is_blamed_on_it(
    new_fleet: NewFleet, errnos: tuple[int | str, ...]
) -> None:
    fleet = new_fleet("auto")
    runs_a_job(fleet)
    said, slowest = 0, 0.0
    for errno in errnos:
        for step, job in LIFE.items():
            for answer in answers(errno, step):
                ambush = fleet.proxy.rule = Ambush()
                ambush.lay(step, answer)
                slowest = max(slowest, runs_a_job(fleet, job=job))
                # a full look may have found the job, on another connection: the poller's own comes next
                wait_for(ambush.over, 10, f"{errno} at {step.name} to be answered")
                said += until_even(fleet, said, most=outages(errno, step))
    assert said > 0 or not outages(errnos[0], steps.FINISH_COMMIT)
    print(f"{errnos}: the slowest job took {slowest:.2f} s")
    assert said_besides(fleet) <= {*NO_ROOM, *SET_UP_WRONG, *UNHEARD_OF}
    assert fleet.ledger.wrongs() == {}


def test_no_error_where_a_finish_and_the_next_claim_share_a_transaction_harms_either(new_fleet: NewFleet) -> None:
    fleet = new_fleet(2)
    runs_a_job(fleet)
    (ready, *_) = wait_for(lambda: fleet.lines("daemon.ready"), 30, "the first to be ready")
    if "claim_path=skip_locked" not in ready:
        return  # there they don't share one
    said = 0
    for errno in (1213, 1205, 1317, 1053, 1290, 9999, *CUT):
        for step in (steps.NEXT_CLAIM, steps.NEXT_RESERVE, steps.NEXT_COMMIT):
            for answer in answers(errno, step):
                ambush = fleet.proxy.rule = Ambush()
                ambush.lay(step, answer)
                wait_for(lambda: works_off(fleet, 30) and ambush.over(), 60, f"{errno} at {step.name}")  # noqa: B023
                said += until_even(fleet, said, most=outages(errno, step))
    settled_well_but_for(fleet, {9999})


def works_off(fleet: Fleet, jobs: int) -> bool:
    """Some jobs at once; threads that find more behind what they finish claim it then, as often as not."""
    fleet.enqueue(*[NewJob() for _ in range(jobs)])
    fleet.until_empty(30)
    return True


def said_besides(fleet: Fleet) -> set[int]:
    """The errors that were said and are no outage; each once, since a minute has not passed."""
    lines = problems(fleet)
    found = [int(one.group(1)) for line in lines if (one := re.search(r"errno (\d+)", line))]
    assert len(found) == len(lines) == len(set(found)), lines
    return set(found)


SELDOM = (steps.STALE, steps.COUNT, steps.POSTS, steps.SIGN_OF_LIFE)
RENEWAL = (steps.RENEW, steps.PROLONG, steps.RENEW_COMMIT)
RENEWAL_ONE_BY_ONE = (steps.PROLONG_ONE, steps.RENEW_ONE_COMMIT)
"""The statements that come by on their own time; how leases are renewed depends on the server."""


def test_no_error_at_the_duties_beside_the_jobs_costs_a_running_job_its_lease(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    ambush = fleet.proxy.rule = Ambush()
    (ready, *_) = wait_for(lambda: fleet.lines("daemon.ready"), 30, "the first to be ready")
    skips = "claim_path=skip_locked" in ready
    duties = (*SELDOM, *(RENEWAL if skips else RENEWAL_ONE_BY_ONE))
    for step in duties:
        ambush.lay(
            step, *(Answer(errno, ends=errno in ENDS_THE_CONNECTION) for errno in (1213, 1053, 1290, 1114, 1142))
        )
    fleet.enqueue(*[NewJob(seconds=12.0 + number) for number in range(3)])
    wait_for(ambush.over, 60, f"all of it to be answered; left: {ambush.left()}")
    fleet.until_empty(60)
    until_even(fleet, 0, most=len(duties) * 2)
    settled_well_but_for(fleet, {1114, 1142})


def settled_well_but_for(fleet: Fleet, errnos: set[int]) -> None:
    """Every promise kept; nothing said but these errors, each once."""
    assert said_besides(fleet) <= errnos
    assert fleet.lines("lease.lost") == fleet.lines("stale.reclaimed") == []
    assert fleet.ledger.wrongs() == {}


STALE = (
    "INSERT INTO qd_jobs (type, payload, lane, reserved_by, attempts, max_attempts, available_at) "
    "VALUES ('work', '{\"seconds\": 0, \"failures\": 0}', 1, 'gone:1:a:b:1', 1, %s, NOW(6) - INTERVAL 1 SECOND)"
)
"""A job whose owner is gone."""


def test_no_error_in_the_sweep_takes_a_row_back_twice_or_leaves_it(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto", "auto", "auto")
    ambush = fleet.proxy.rule = Ambush()
    for step in (steps.TAKE_BACK, steps.TAKE_BACK_WRITE, steps.TAKE_BACK_COMMIT):
        ambush.lay(step, *(Answer(errno, ends=errno == 1053) for errno in (1213, 1205, 1053, 1142)))
    ambush.lay(steps.TAKE_BACK_COMMIT, "before", "after", "before", "after")
    for most in (1, 3) * 6:
        fleet.server.run(STALE, (most,), fleet.database)
    stale = "SELECT GROUP_CONCAT(id) FROM qd_jobs WHERE lane = 1"
    ids = fleet.server.run(stale, (), fleet.database)[0][0]
    fleet.until_empty(90)
    assert ambush.over(), ambush.left()
    dead = fleet.server.run("SELECT job_id, reason FROM qd_failed_jobs", (), fleet.database)
    assert sorted(reason for _, reason in dead) == ["lost"] * 6
    audit = f"SELECT job, COUNT(*) FROM audit WHERE what = 'gone' AND job IN ({ids}) GROUP BY job"
    gone = fleet.server.run(audit, (), fleet.database)
    assert [count for _, count in gone] == [1] * 12
    assert len(fleet.lines("job.dead_lettered")) <= 6
