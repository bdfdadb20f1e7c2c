"""Whose turn it is: what fails takes no one else's, and what waits too long is seen."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.support.daemon import Qd
from tests.support.waiting import wait_for


@pytest.mark.parametrize("base", ["0s", "1s"])
def test_failing_jobs_take_no_ones_turn_and_are_claimed_once_per_back_off(qd: Qd, base: str) -> None:
    policy = {"lease": "6s", "max_attempts": 50, "backoff": {"base": base, "factor": 1, "jitter": 0}}
    qd.write(
        handlers={"modules": ["tests.acceptance.main_handlers"]},
        queues={"default": policy},
        workers=[{"queues": ["default"], "threads": 1}],
    )
    failing, good = qd.enqueue("never", 5), qd.enqueue("brief", 100)
    qd.start()
    lines: list[list[str]] = []

    def all_done() -> bool:
        lines[:] = [line.split() for line in qd.ledger.read_text().splitlines()] if qd.ledger.exists() else []
        return sum(line[1] == "end" for line in lines) == 100

    wait_for(all_done, 60, "the good ones")
    runs = {job: [(float(line[3]), int(line[2])) for line in lines if line[0] == str(job)] for job in failing}
    assert all(0 < len(times) < 50 for times in runs.values()), "a failing job was exhausted before"
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    wait_for(lambda: all(attempts(qd, job) >= 3 for job in failing), 30, "some rounds more")
    lines[:] = [line.split() for line in qd.ledger.read_text().splitlines()]
    wanted = float(base.rstrip("s"))
    for job in failing:
        starts = [float(line[3]) for line in lines if line[0] == str(job)]
        assert all(later - earlier >= wanted for earlier, later in pairwise(starts)), "claimed before its back-off"
    assert len({line[0] for line in lines if line[1] == "end"}) == len(good)


def attempts(qd: Qd, job: int) -> int:
    """How often a job was started."""
    return sum(line.split()[:2] == [str(job), "start"] for line in qd.ledger.read_text().splitlines())


def test_a_queue_in_which_urgent_jobs_starve_others_shows_it(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 1}], batch=1)
    (low,) = qd.enqueue("nap", seconds=0)
    qd.sql("UPDATE qd_jobs SET priority = 3 WHERE id = %s", (low,))
    urgent = qd.enqueue("nap", 20, seconds=0.2)
    qd.sql("UPDATE qd_jobs SET priority = 0 WHERE id <> %s AND type = 'nap'", (low,))
    daemon = qd.start()
    series = 'qd_queue_oldest_ready_age_seconds{queue="default"}'
    wait_for(lambda: (daemon.metric(series) or 0) > 2 and low not in qd.ran("start"), 20, "its age to be told")
    wait_for(lambda: qd.jobs() == 0, 30, "all to be done")
    assert qd.ran("start") == [*urgent, low]
