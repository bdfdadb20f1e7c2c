"""The watch over a drain: it counts exactly, and says what isn't as it should be. Unit: real files and processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.processes import NotRun, Process
from benchmarks.watched import Drained, Ran, watched

JOBS = 50


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Ran]:
    """A file in which nothing ran."""
    file = Ran(tmp_path / "ran", JOBS)
    yield file
    file.close()


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Process]:
    """A worker that does nothing."""
    process = Process(["sleep", "600"], log=tmp_path / "log")
    yield process
    process.end()


def mark(path: Path, *jobs: int) -> None:
    """What a job does, as each contestant's own process does it."""
    with path.open("r+b") as file:
        for job in jobs:
            file.seek(job)
            before = file.read(1)[0]
            file.seek(job)
            file.write(bytes([before + 1]))


def test_what_ran_is_counted_and_what_ran_twice_is_told(ran: Ran, tmp_path: Path) -> None:
    assert (ran.any(), ran.all(), ran.done(), ran.again()) == (False, False, 0, 0)
    mark(tmp_path / "ran", 49, 0, 7, 7)
    assert (ran.any(), ran.all(), ran.done(), ran.again()) == (True, False, 3, 1)
    mark(tmp_path / "ran", *(job for job in range(JOBS) if job not in (49, 0, 7, 30)))
    assert not ran.all(), "job 30 is left"
    mark(tmp_path / "ran", 30)
    assert (ran.all(), ran.done(), ran.again()) == (True, JOBS, 1)


def test_a_drain_lasts_until_the_backend_holds_nothing_for_unfinished(
    ran: Ran, sleeper: Process, tmp_path: Path
) -> None:
    left = iter([3, 1, 0])
    work = threading.Thread(target=mark, args=(tmp_path / "ran", *range(JOBS)))
    work.start()
    drained = watched(ran, JOBS, lambda: next(left), [sleeper])
    work.join()
    assert (drained.done, drained.again, drained.faults()) == (JOBS, 0, "")
    assert list(left) == [], "the backend was asked until it held nothing"


def test_workers_that_end_with_work_left_are_a_contestant_that_could_not_be_run(ran: Ran, tmp_path: Path) -> None:
    worker = Process(["sh", "-c", "echo out of luck >&2; exit 3"], log=tmp_path / "log")
    mark(tmp_path / "ran", 0)
    try:
        with pytest.raises(NotRun, match=r"ended with 49 jobs left: out of luck"):
            watched(ran, JOBS, lambda: JOBS - 1, [worker])
    finally:
        worker.end()


def test_workers_that_end_before_any_job_ran_say_why(ran: Ran, tmp_path: Path) -> None:
    worker = Process(["sh", "-c", "echo no such module"], log=tmp_path / "log")
    try:
        with pytest.raises(NotRun, match="ended at once: no such module"):
            watched(ran, JOBS, lambda: JOBS, [worker])
    finally:
        worker.end()


def test_a_drain_that_takes_too_long_is_reported_with_what_was_done(ran: Ran, sleeper: Process, tmp_path: Path) -> None:
    mark(tmp_path / "ran", *range(20))
    drained = watched(ran, JOBS, lambda: 30, [sleeper], limit=0.2)
    assert drained.done == 20
    assert drained.rate == 20 / drained.seconds, "jobs that didn't run don't count"
    assert drained.faults().startswith("only 20 of 50 jobs within ")


def test_jobs_that_ran_more_than_once_are_said_beside_the_rate() -> None:
    assert Drained(jobs=5, done=5, again=2, seconds=1.0).faults() == "2 jobs ran more than once"
