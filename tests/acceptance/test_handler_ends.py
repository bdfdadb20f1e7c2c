"""However a handler ends, its attempt is recorded and the worker goes on: same process, same threads, next job."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.hard_handlers import ENDS
from tests.acceptance.hostile_handlers import ALL, TEXTS
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

THREADS = 2
SERVING = 'qd_queue_workers{queue="default"}'
POLICY = {"lease": "6s", "timeout": "60s", "max_attempts": 2, "backoff": {"base": "0s"}}


def started(qd: Qd, executor: str = "thread") -> Daemon:
    """One with two threads and two attempts for each job."""
    qd.write(
        handlers={"modules": ["tests.acceptance.hard_handlers", "tests.acceptance.hostile_handlers"]},
        queues={"default": POLICY},
        workers=[{"queues": ["default"], "threads": THREADS, "executor": executor}],
    )
    return qd.start()


@pytest.fixture(params=["thread", "process"])
def daemon(qd: Qd, request: pytest.FixtureRequest) -> Daemon:
    """One of each kind."""
    return started(qd, request.param)


def works(qd: Qd, daemon: Daemon) -> None:
    """Ten ordinary jobs are done, by the same process with as many threads as ever."""
    good = qd.enqueue("nap", 10, seconds=0)
    wait_for(lambda: set(good) <= set(qd.ran("end")), 15, "ten ordinary jobs")
    wait_for(lambda: daemon.metric(SERVING) == THREADS, 5, "all threads to serve")
    assert daemon.alive()


def test_what_ends_a_thread_elsewhere_is_a_failed_attempt_with_its_name(qd: Qd, daemon: Daemon) -> None:
    names = {
        "sys_exit": "SystemExit: 0", "thread_exit": "SystemExit", "interrupt": "KeyboardInterrupt",
        "generator_exit": "GeneratorExit", "private": "Private", "thrown": "Private",
    }  # fmt: skip
    assert names.keys() == ENDS.keys()
    jobs = {how: [qd.enqueue("end_thread", how=how)[0] for _ in range(4)] for how in ENDS}
    wait_for(lambda: qd.jobs() == 0, 30, "all to be settled")
    kept = {job: (reason, n, text) for job, reason, n, text in dead(qd)}
    for how, four in jobs.items():
        for job in four:
            reason, attempts, error = kept[job]
            assert (reason, attempts) == ("error", 2) and names[how] in error
            assert len(qd.ran("start", job)) == 2
    assert not daemon.lines("worker.replaced") and not daemon.lines("daemon.problem_seen")
    works(qd, daemon)


def dead(qd: Qd) -> list[tuple[int, str, int, str]]:
    """The dead letters: job, reason, attempts, error."""
    return [(int(a), str(b), int(c), str(d)) for a, b, c, d in qd.sql(
        "SELECT job_id, reason, attempts, error FROM qd_failed_jobs"
    )]  # fmt: skip


def test_what_a_handler_left_to_be_thrown_at_its_thread_ends_no_thread(qd: Qd) -> None:
    daemon = started(qd)
    before = daemon.threads()
    for number in range(4):
        qd.enqueue("throw_later")
        wait_for(lambda: len(qd.ran("end")) > number, 10, "the handler to have ended")  # noqa: B023
        seen = "hit by a stray SystemExit"
        wait_for(lambda: daemon.said().count(seen) > number, 10, "the throw")  # noqa: B023
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    works(qd, daemon)
    wait_for(lambda: daemon.threads() <= before, 10, "no thread more than before")


def test_a_hostile_exception_is_recorded_by_its_class_at_least(qd: Qd, daemon: Daemon) -> None:
    jobs = {}
    for what in ALL:
        (jobs[what],) = qd.enqueue("raise_hostile", what=what)
    wait_for(lambda: qd.jobs() == 0, 90, "all to be settled")
    kept = {job: (reason, attempts, error) for job, reason, attempts, error in dead(qd)}
    for what, job in jobs.items():
        reason, attempts, error = kept[job]
        assert (reason, attempts) == ("error", 2), what
        assert ALL[what] in error, what
    assert not daemon.lines("worker.replaced") and not daemon.lines("daemon.problem_seen")
    works(qd, daemon)


CONVERT = "ALTER TABLE {} CONVERT TO CHARACTER SET utf8mb3"


@pytest.mark.parametrize(
    ("executor", "converted"),
    [
        ("thread", ()),
        ("process", ()),
        ("thread", ("qd_jobs", "qd_failed_jobs")),
        ("thread", ("qd_failed_jobs",)),
        ("thread", ("qd_jobs",)),
    ],
)
def test_an_error_that_no_column_takes_is_recorded_all_the_same(
    qd: Qd, executor: str, converted: tuple[str, ...]
) -> None:
    daemon = started(qd, executor)
    for table in converted:
        qd.sql(CONVERT.format(table))
    jobs = {what: qd.enqueue("raise_text", what=what)[0] for what in TEXTS}
    wait_for(lambda: qd.jobs() == 0, 60, "all to be settled")
    kept = {job: (reason, attempts, error) for job, reason, attempts, error in dead(qd)}
    for what, job in jobs.items():
        reason, attempts, error = kept[job]
        assert (reason, attempts) == ("error", 2), what
        assert 0 < len(error.encode("utf-8", "strict")) <= 65_535 and "\x00" not in error, what
        assert len(qd.ran("start", job)) == 2, what
        history = json.loads(qd.one("SELECT history FROM qd_failed_jobs WHERE job_id = %s", (job,)))
        assert [entry["outcome"] for entry in history] == ["failed", "failed"], what
    assert kept[jobs["20 MB"]][2].endswith("[cut]") and "ValueError: zzz" in kept[jobs["20 MB"]][2]
    assert "\\udcff" in kept[jobs["a surrogate"]][2] and "\\x00" in kept[jobs["a NUL"]][2]
    assert "caf\\xe9" in kept[jobs["bytes"]][2] and "number 9999" in kept[jobs["a chain"]][2]
    takes_emoji = "qd_failed_jobs" not in converted
    assert ("\U0001f4a5" if takes_emoji else "refused by the database") in kept[jobs["emoji"]][2]
    assert not daemon.lines("lease.lost") and not daemon.lines("stale.reclaimed")
    works(qd, daemon)


@pytest.mark.parametrize("how", ["closed", "taken", "descriptors"])
def test_a_handler_that_ends_the_standard_streams_costs_neither_work_nor_a_clean_stop(qd: Qd, how: str) -> None:
    daemon = started(qd)
    qd.enqueue("end_streams", how=how)
    works(qd, daemon)
    assert daemon.stop() == 0
