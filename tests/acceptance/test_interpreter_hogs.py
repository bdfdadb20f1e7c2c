"""Handlers that let nobody else run: busy ones cost nothing, one that holds the interpreter knows what it lost."""

from __future__ import annotations

from itertools import pairwise

from qd.clock import monotonic
from tests.support.daemon import Qd
from tests.support.waiting import wait_for

HANDLERS = {"modules": ["tests.acceptance.hard_handlers"]}


def test_busy_handlers_cost_no_lease_and_the_metrics_answer(qd: Qd) -> None:
    lease = 12.0
    qd.write(
        handlers=HANDLERS,
        queues={"default": {"lease": f"{lease:g}s", "timeout": "60s"}},
        workers=[{"queues": ["default"], "threads": 8}],
    )
    daemon = qd.start()
    jobs = qd.enqueue("spin", 8, seconds=lease)
    wait_for(lambda: len(qd.ran("start")) == 8, 20, "all to run")
    qd.twin().start()  # it would take what is given up
    ends: dict[int, list[float]] = {}
    answers = []
    least = lease

    def look() -> bool:
        nonlocal least
        rows = qd.sql("SELECT id, UNIX_TIMESTAMP(available_at), TIMESTAMPDIFF(MICROSECOND, NOW(6), available_at) / 1e6 "
                      "FROM qd_jobs WHERE lane = 1")  # fmt: skip
        for job, end, left in rows:
            least = min(least, float(left))
            if not ends.setdefault(job, []) or ends[job][-1] != float(end):
                ends[job].append(float(end))
        began = monotonic()
        assert daemon.get("/metrics")[0] == 200
        answers.append(monotonic() - began)
        return len(qd.ran("end")) == 8

    wait_for(look, 90, "all to end")
    wait_for(lambda: qd.jobs() == 0, 10, "their ends to be written")
    assert sorted(qd.ran("start")) == sorted(qd.ran("end")) == sorted(jobs)
    assert least > lease / 3, "a renewal came late"
    gaps = [later - earlier for renewals in ends.values() for earlier, later in pairwise(renewals)]
    assert gaps and max(gaps) < 2 * lease / 3, "jitter of a third of the lease, beside the third that is meant"
    assert sorted(answers)[len(answers) // 2] < 2


def test_a_handler_that_lets_nobody_run_loses_its_lease_knows_it_and_is_not_passed_round_for_ever(qd: Qd) -> None:
    lease = 3.0
    qd.write(
        handlers=HANDLERS,
        queues={"default": {"lease": f"{lease:g}s", "timeout": "60s", "max_attempts": 2, "quarantine": "alone"}},
    )
    daemons = [qd.start(), qd.twin().start()]
    (job,) = qd.enqueue("hold_interpreter", seconds=int(3 * lease))
    wait_for(lambda: len(qd.ran("start")) == 2, 30, "the other daemon to take it")
    wait_for(lambda: qd.ran("end"), 30, "the first run's end")
    wait_for(lambda: sum(len(daemon.lines("lease.lost")) for daemon in daemons) >= 1, 10, "it to see its loss")
    wait_for(lambda: qd.jobs() == 0, 60, "the job's end")
    wait_for(lambda: len(qd.ran("end")) == 2, 30, "the second run's end")
    wait_for(lambda: all(daemon.get("/livez", daemon.qd.port)[0] == 200 for daemon in daemons), 10, "both to live")
    assert qd.ran("start") == [job, job]
    assert all(len(daemon.lines("lease.lost")) <= 1 for daemon in daemons)
    settled = [line for daemon in daemons for line in daemon.lines("job.dead_lettered") + daemon.lines("job.failed")]
    assert len(settled) == qd.one("SELECT COUNT(*) FROM qd_failed_jobs"), settled
    assert qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.jobs() == 0, 10, "an ordinary job after that")


def test_in_a_process_of_its_own_a_handler_that_lets_nobody_run_keeps_its_lease(qd: Qd) -> None:
    lease = 3.0
    qd.write(
        handlers=HANDLERS,
        queues={"default": {"lease": f"{lease:g}s", "timeout": "60s", "max_attempts": 2}},
        workers=[{"queues": ["default"], "threads": 2, "executor": "process"}],
    )
    daemons = [qd.start(), qd.twin().start()]
    (job,) = qd.enqueue("hold_interpreter", seconds=int(3 * lease))
    wait_for(lambda: qd.ran("end"), 60, "its end")
    wait_for(lambda: qd.jobs() == 0, 10, "the job's end")
    assert qd.ran("start") == qd.ran("end") == [job]
    assert not [line for one in daemons for line in one.lines("lease.lost") + one.lines("stale.reclaimed")]
