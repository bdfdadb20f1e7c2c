"""How a daemon stops: no job lost, none left claimed, always in time, always with 0."""

from __future__ import annotations

import random
import signal

import pytest

from qd.clock import monotonic
from tests.support.daemon import Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for


def running(qd: Qd, type: str = "nap", **payload: float) -> int:
    """The id of a job that has begun to run."""
    (job,) = qd.enqueue(type, **payload)
    wait_for(lambda: qd.ran("start", job), 10, f"{type} to start")
    return job


def row(qd: Qd, job: int) -> tuple[object, ...]:
    """reserved_by, attempts, and whether it is due within two seconds."""
    rows = qd.sql(
        "SELECT reserved_by, attempts, available_at <= NOW(6) + INTERVAL 2 SECOND FROM qd_jobs WHERE id = %s", (job,)
    )
    return rows[0] if rows else ()


def test_a_job_that_ends_within_the_grace_is_finished_and_nothing_new_begins(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": 1}])
    daemon = qd.start()
    short = running(qd, seconds=1.5)
    waiting = qd.enqueue("nap", 20, seconds=0)
    assert daemon.stop() == 0
    assert qd.ran("end") == [short] and not set(qd.ran("start")) & set(waiting)
    assert qd.jobs() == 20 and qd.jobs("reserved_by IS NOT NULL OR attempts <> 0") == 0


def test_a_job_that_outlives_the_grace_is_handed_back_with_its_attempt(qd: Qd) -> None:
    qd.write(shutdown={"grace": "1s"})
    daemon = qd.start()
    long = running(qd, seconds=60)
    began = monotonic()
    assert daemon.stop() == 0
    assert 1.0 <= monotonic() - began <= 3.2
    assert qd.ran("cut") == [long] and row(qd, long) == (None, 0, 1)
    assert len(daemon.notify.times("STOPPING=1")) == 1 and daemon.lines("job.released")


def test_while_it_stops_it_lives_but_is_not_ready(qd: Qd) -> None:
    daemon = qd.start()
    running(qd, seconds=3)
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.get("/readyz") == (503, "stopping\n"), 2, "/readyz 503")
    assert daemon.get("/livez")[0] == 200
    assert daemon.wait_exit(10) == 0


def test_systemd_is_asked_for_as_long_as_the_grace_may_take(qd: Qd) -> None:
    daemon = qd.start()
    assert daemon.stop() == 0
    (stopping,) = daemon.notify.with_line("STOPPING=1")
    extend = next(line for line in stopping.split("\n") if line.startswith("EXTEND_TIMEOUT_USEC="))
    assert int(extend.partition("=")[2]) > 12_000_000  # grace 10 s, 2 s to end


def test_an_idle_daemon_stops_at_once(qd: Qd) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        daemon = qd.start()
        daemon.send(number)
        assert daemon.wait_exit(4) == 0


def test_a_second_sigterm_is_quicker_and_does_no_harm(qd: Qd) -> None:
    qd.write(shutdown={"grace": "60s"})
    daemon = qd.start()
    job = running(qd, seconds=50)
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.notify.times("STOPPING=1"), 2, "STOPPING")
    daemon.send(signal.SIGTERM)
    assert daemon.wait_exit(6) == 0
    assert row(qd, job) == (None, 0, 1)
    assert len(daemon.lines("daemon.stopping")) == len(daemon.lines("daemon.stopped")) == 1


def test_a_thread_that_can_not_be_ended_does_not_keep_the_process(qd: Qd) -> None:
    qd.write(shutdown={"grace": "1s"})
    daemon = qd.start()
    job = running(qd, "deaf")
    began = monotonic()
    assert daemon.stop() == 0
    assert monotonic() - began <= 3.5
    assert row(qd, job) == (None, 0, 1) and len(daemon.lines("daemon.stopped")) == 1


def test_a_thread_that_a_handler_left_behind_does_not_keep_the_process(qd: Qd) -> None:
    daemon = qd.start()
    job = running(qd, "leave_a_thread")
    wait_for(lambda: qd.jobs() == 0, 5, "the job to be done")
    assert daemon.stop(6) == 0 and qd.ran("end") == [job]


def test_a_frozen_database_does_not_keep_the_process(frail: Qd) -> None:
    assert isinstance(frail.server, MariaDB)
    frail.write(shutdown={"grace": "2s"})
    daemon = frail.start()
    running(frail, seconds=60)
    frail.server.freeze()
    began = monotonic()
    assert daemon.stop() == 0
    assert monotonic() - began <= 4.5


def test_sigquit_shows_all_stacks_and_work_goes_on(qd: Qd) -> None:
    daemon = qd.start()
    running(qd, seconds=1)
    daemon.send(signal.SIGQUIT)
    wait_for(lambda: any(" nap " in line for line in daemon.lines("daemon.stack_shown")), 5, "the stacks")
    assert any("thread=MainThread" in line for line in daemon.lines("daemon.stack_shown"))
    job = running(qd, seconds=0)
    wait_for(lambda: qd.ran("end", job), 5, "the next job")
    assert daemon.stop() == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_signals_at_random_and_a_stop_end_with_0(qd: Qd, seed: int) -> None:
    chance = random.Random(seed)
    daemon = qd.start()
    qd.enqueue("nap", 30, seconds=0.05)
    for _ in range(100):
        daemon.send(chance.choice([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGCONT]))
        if chance.random() < 0.3:
            assert daemon.get("/livez") == (200, "ok\n")
    for _ in range(chance.randint(1, 4)):
        daemon.send(chance.choice([signal.SIGTERM, signal.SIGINT]))
    assert daemon.wait_exit(13) == 0, daemon.said()[-3000:]
    assert "Traceback" not in daemon.said()
    assert qd.jobs("reserved_by IS NOT NULL") == 0


def test_a_bug_in_the_main_loop_is_70_with_its_stack_and_hands_jobs_back(qd: Qd) -> None:
    daemon = qd.start()
    job = running(qd, seconds=60)
    running(qd, "break_the_main_loop")
    assert daemon.wait_exit(10) == 70
    (line,) = daemon.lines("daemon.failed")
    assert "a bug in the main loop" in line and "daemon_handlers.py" in daemon.said()
    assert row(qd, job) == (None, 0, 1)


def test_a_process_that_was_stopped_and_goes_on_still_obeys(qd: Qd) -> None:
    daemon = qd.start()
    daemon.send(signal.SIGSTOP)
    daemon.send(signal.SIGTERM)
    daemon.send(signal.SIGCONT)
    assert daemon.wait_exit(6) == 0


def test_a_log_that_nobody_reads_does_not_keep_the_process(qd: Qd) -> None:
    """Its reader stands still, as a stopped pager does: the pipe is full."""
    qd.write(log={"jobs": "all"})
    daemon = qd.start(log_to_pipe=True)
    qd.enqueue("nap", 2000, seconds=0)
    wait_for(lambda: qd.jobs() == 0, 60, "work to go on though the log can't be written")
    assert daemon.stop() == 0
