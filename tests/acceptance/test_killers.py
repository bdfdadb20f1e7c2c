"""Handlers that end the process they run in: it is seen as what it is, and the job comes to its end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from tests.support.daemon import Daemon, Qd
from tests.support.server import ROOT
from tests.support.waiting import wait_for

LEASE = 3.0
POLICY = {"lease": f"{LEASE:g}s", "timeout": "60s", "backoff": {"base": "100ms", "cap": "200ms"}}
TAKEN_BACK = 15.0
"""Seconds for a lease, the sweep's two looks and its pace, on a busy machine."""


@contextmanager
def kept_running(qd: Qd) -> Iterator[None]:
    """Starts a daemon, and another whenever it has ended, as systemd does."""
    over = Event()

    def keep() -> None:
        while not over.is_set():
            daemon = qd.start(ready=False)
            while daemon.alive() and not over.wait(0.02):
                pass

    thread = Thread(target=keep)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def dead_letters(qd: Qd) -> dict[int, tuple[str, int]]:
    """Reason and attempts, by job."""
    return {job: (reason, n) for job, reason, n in qd.sql("SELECT job_id, reason, attempts FROM qd_failed_jobs")}


def test_a_job_that_kills_its_process_is_started_as_often_as_it_may_be_and_never_again(qd: Qd) -> None:
    qd.write(
        handlers={"modules": ["tests.acceptance.hard_handlers"]},
        queues={"default": {**POLICY, "max_attempts": 3}},
        workers=[{"queues": ["default"], "threads": 2}],
    )
    (killer,) = qd.enqueue("kill_process")
    others = qd.enqueue("nap", 20, seconds=0)
    with kept_running(qd):
        wait_for(lambda: dead_letters(qd), 8 * TAKEN_BACK, "the killer to be a dead letter")
        wait_for(lambda: qd.jobs() == 0, 4 * TAKEN_BACK, "the others to be done")
        over = qd.twin().start()  # one more that would take it, were there anything to take
        wait_for(lambda: not over.alive() or qd.one("SELECT COUNT(*) FROM qd_daemons") >= 2, 10, "both to serve")
    (reason, attempts) = dead_letters(qd)[killer]
    assert reason in ("lost", "crash") and attempts == 3
    assert len(qd.ran("start", killer)) == 3
    assert set(qd.ran("end")) == set(others)
    assert set(dead_letters(qd)) == {killer}, "a neighbour was condemned with it"
    assert over.alive()


def test_a_last_attempt_that_dies_is_a_dead_letter_though_no_other_job_ever_comes(qd: Qd) -> None:
    qd.write(
        handlers={"modules": ["tests.acceptance.hard_handlers"]},
        queues={"default": {**POLICY, "max_attempts": 1}, "steady": {**POLICY, "max_attempts": 1}},
        workers=[{"queues": ["default"], "threads": 1}],
    )
    first = qd.start()
    steady = qd.twin()
    steady.write(workers=[{"queues": ["steady"], "threads": 1}])
    steady.start()
    (long,) = qd.enqueue("nap", queue="steady", seconds=3 * LEASE)
    (killer,) = qd.enqueue("kill_process")
    wait_for(lambda: not first.alive(), 10, "the process to die")
    qd.start()
    dead = wait_for(lambda: dead_letters(qd).get(killer), TAKEN_BACK, "its dead letter")
    assert dead == ("lost", 1) and qd.ran("start", killer) == [killer]
    wait_for(lambda: qd.jobs() == 0, 4 * TAKEN_BACK, "the long one's end")
    assert qd.ran("start", long) == qd.ran("end", long) == [long]
    assert set(dead_letters(qd)) == {killer}


DEATHS = {"segfault": -signal.SIGSEGV, "abort": -signal.SIGABRT, "kill_process": -signal.SIGKILL, "exit_zero": 0}


def test_a_dying_process_is_seen_as_such_at_once_and_its_neighbours_come_back(qd: Qd) -> None:
    qd.write(
        handlers={"modules": ["tests.acceptance.hard_handlers"]},
        queues={"default": {**POLICY, "max_attempts": 1}, "good": {**POLICY, "max_attempts": 9}},
        workers=[{"queues": ["good"], "threads": 8}, {"queues": ["default"], "threads": 1}],
    )
    neighbours = {}
    for type, status in DEATHS.items():
        daemon = qd.start()
        (neighbour,) = qd.enqueue("longer_later", queue="good", seconds=[60, *[0] * 8], raises=False)
        wait_for(lambda: neighbour in qd.ran("start"), 10, "the neighbour to run")  # noqa: B023
        (killer,) = qd.enqueue(type)
        assert daemon.wait_exit(10) == status
        neighbours[neighbour] = killer
    last = qd.start()
    wait_for(lambda: qd.jobs() == 0, 3 * TAKEN_BACK, "all to be settled")
    assert dead_letters(qd) == dict.fromkeys(neighbours.values(), ("lost", 1))
    for neighbour in neighbours:
        assert qd.ran("end", neighbour) == [neighbour] and len(qd.ran("start", neighbour)) >= 2
    assert all(len(qd.ran("start", killer)) == 1 for killer in neighbours.values())
    assert stacks(qd.started[0]) and last.alive()


def stacks(daemon: Daemon) -> bool:
    """Whether a crash has left where every thread was."""
    return "Fatal Python error: Segmentation fault" in daemon.said() and "hard_handlers.py" in daemon.said()


def test_a_daemon_whose_descriptors_a_handler_has_closed_ends_as_failed_and_costs_no_second_start(qd: Qd) -> None:
    qd.write(
        handlers={"modules": ["tests.acceptance.hard_handlers"]}, queues={"default": {**POLICY, "max_attempts": 1}}
    )
    daemon = qd.start()
    (job,) = qd.enqueue("close_everything")
    try:
        assert daemon.process.wait(30) == 70
    except subprocess.TimeoutExpired:  # a new connection has the number that its main thread waits on: the watchdog's
        daemon.process.kill()
        daemon.process.wait(15)
    qd.start()
    wait_for(lambda: qd.jobs() == 0, TAKEN_BACK, "the job to be settled")
    assert dead_letters(qd) in ({}, {job: ("lost", 1)}), "its end was written on a new connection, or it was cut off"
    assert qd.ran("start", job) == [job]


@pytest.mark.parametrize("unit", ["qd.service", "qd@.service"])
def test_systemd_starts_a_daemon_again_whatever_ended_it(unit: str) -> None:
    lines = (ROOT / "systemd" / unit).read_text().splitlines()
    assert "Restart=always" in lines and "StartLimitIntervalSec=0" in lines
