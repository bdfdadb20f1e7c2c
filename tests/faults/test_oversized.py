"""What is too large or too wide for the server at a job's end is that job's matter: it ends all the same."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults import steps
from tests.faults.fleet import Fleet
from tests.faults.jobs import NewJob
from tests.faults.steps import Ambush
from tests.faults.watching import runs_a_job, told
from tests.support.answer import Answer
from tests.support.proxy import Link

NewFleet = Callable[..., Fleet]

PACKET = 1_048_576
"""Bytes; what old servers take at most by default."""


class Counted:
    """A rule that lets all pass and counts the statements that are longer than a server's limit."""

    def __init__(self) -> None:
        self.longest = 0
        self.buries = 0

    def __call__(self, link: Link, statement: bytes) -> None:
        self.longest = max(self.longest, len(statement))
        self.buries += steps.DEAD_LETTER in statement


def test_a_payload_close_to_the_longest_packet_is_buried_whole_with_its_words(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    fleet.server.run(f"SET GLOBAL max_allowed_packet = {PACKET}")
    fleet.proxy.cut_all()
    runs_a_job(fleet)
    rule = fleet.proxy.rule = Counted()
    payload = "y" * (PACKET - 100_000)
    (job,) = fleet.enqueue(NewJob(failures=9, max_attempts=1, does=payload))
    fleet.until_empty(20)
    sql = "SELECT reason, LENGTH(payload) > %s, error LIKE %s FROM qd_failed_jobs WHERE job_id = %s"
    found = fleet.server.run(sql, (len(payload), "%as it was told%", job), fleet.database)
    assert found == [("error", 1, 1)]
    assert rule.buries <= 3 and rule.longest < PACKET
    assert fleet.ledger.wrongs() == {}


def test_an_end_that_the_server_calls_too_large_is_sent_thrice_at_most_then_without_its_words(
    new_fleet: NewFleet,
) -> None:
    fleet = new_fleet("auto")
    runs_a_job(fleet)
    outages = told(fleet)
    ambush = fleet.proxy.rule = Ambush()
    ambush.lay(steps.BURY, Answer(1153, ends=True), Answer(1153, ends=True))
    (job,) = fleet.enqueue(NewJob(failures=9, max_attempts=1))
    fleet.until_empty(20)
    assert ambush.over()
    reason = fleet.server.run("SELECT reason FROM qd_failed_jobs WHERE job_id = %s", (job,), fleet.database)
    assert reason == [("error",)]
    assert told(fleet)[0] - outages[0] <= 1
    assert fleet.ledger.wrongs() == {}


def test_tables_of_a_narrow_character_set_take_every_end(new_fleet: NewFleet) -> None:
    fleet = new_fleet("auto")
    for table in ("qd_jobs", "qd_failed_jobs"):
        columns = "last_error TEXT CHARACTER SET utf8mb3" if table == "qd_jobs" else "error TEXT CHARACTER SET utf8mb3"
        fleet.server.run(f"ALTER TABLE {table} MODIFY {columns}", (), fleet.database)
    wide = "INSERT INTO qd_jobs (type, payload, max_attempts) VALUES ('poison', %s, %s)"
    for most in (1, 2):
        payload = NewJob(does="raise", failures=9).payload()
        fleet.server.run(wide, (payload, most), fleet.database)
    fleet.until_empty(30)
    runs_a_job(fleet)
    assert fleet.server.run("SELECT COUNT(*) FROM qd_failed_jobs", (), fleet.database) == [(2,)]
    assert fleet.daemons[0].alive()
