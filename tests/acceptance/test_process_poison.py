"""Jobs that take their process down, with `executor: process`: their own failure and nobody else's."""

from __future__ import annotations

import signal
from collections import Counter

import pytest

from tests.acceptance.processes import children, in_processes, running, zombies
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for


def unharmed(daemon: Daemon) -> None:
    """Nothing in the daemon has noticed anything."""
    assert daemon.alive() and daemon.get("/livez")[0] == 200 and daemon.get("/readyz")[0] == 200
    assert not daemon.lines("watchdog.withheld") and not daemon.lines("worker.replaced")
    assert not daemon.lines("daemon.problem_seen"), daemon.lines("daemon.problem_seen")
    assert zombies(daemon) == 0


@pytest.mark.parametrize(
    ("how", "words", "killed_by"),
    [
        ("segfault", "killed by SIGSEGV", "SIGSEGV"),
        ("abort", "killed by SIGABRT", "SIGABRT"),
        ("exit", "exited with status 0 in the middle of the job", None),
        ("kill", "for want of memory, perhaps", "SIGKILL"),
    ],
)
def test_poison_ends_as_dead_letters_while_all_good_jobs_are_done(
    qd: Qd, how: str, words: str, killed_by: str | None
) -> None:
    in_processes(qd, max_attempts=2)
    daemon = qd.start(watchdog_usec=3_000_000)
    good = qd.enqueue("nap", 10, seconds=0)
    poison = qd.enqueue("poison", 3, how=how)
    good += qd.enqueue("nap", 10, seconds=0)
    wait_for(lambda: qd.jobs() == 0, 60, "all jobs to be settled")
    starts = Counter(qd.ran("start"))
    assert sorted(qd.ran("end")) == sorted(good)
    assert {job: starts[job] for job in poison} == dict.fromkeys(poison, 2)
    rows = qd.sql("SELECT reason, error, attempts FROM qd_failed_jobs ORDER BY job_id")
    assert [row[0] for row in rows] == ["crash"] * 3 and all(words in row[1] and row[2] == 2 for row in rows)
    counted = 'qd_job_attempts_total{job_type="poison",outcome="crashed",queue="default"}'
    wait_for(lambda: daemon.metric(counted) == 6, 20, "the last end to be told: that follows its commit")
    said = wait_for(lambda: (lines := daemon.lines("job.crashed"))[5:] and lines, 20, "all ends in the log")
    assert len(said) == 6 and all((f"signal={killed_by}" in line) is (killed_by is not None) for line in said)
    unharmed(daemon)
    assert daemon.stop() == 0


def test_the_traceback_of_a_crash_in_c_names_the_handlers_line(qd: Qd) -> None:
    in_processes(qd, max_attempts=1)
    qd.start()
    qd.enqueue("poison", how="segfault")
    wait_for(lambda: qd.sql("SELECT 1 FROM qd_failed_jobs"), 30, "the dead letter")
    traceback = str(qd.one("SELECT traceback FROM qd_failed_jobs"))
    assert "Segmentation fault" in traceback and "process_handlers.py" in traceback and "in poison" in traceback


@pytest.mark.parametrize("how", ["become another program", "close everything"])
def test_a_handler_that_cuts_itself_off_from_its_daemon_is_ended(qd: Qd, how: str) -> None:
    in_processes(qd, max_attempts=1)
    daemon = qd.start()
    (job,) = qd.enqueue("poison", how=how)
    (good,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.jobs() == 0, 30, "both jobs to be settled")
    assert qd.ran("end") == [good] and qd.ran("start", job) == [job]
    reason, error = qd.sql("SELECT reason, error FROM qd_failed_jobs")[0]
    assert reason == "crash" and "closed its connection to the daemon" in error
    unharmed(daemon)


@pytest.mark.parametrize("type_", ["hog", "stubborn"])
def test_a_time_out_ends_what_nothing_else_would(qd: Qd, type_: str) -> None:
    in_processes(qd, threads=1, max_attempts=1, timeout="500ms")
    daemon = qd.start()
    qd.enqueue(type_)
    (good,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.jobs() == 0, 30, "the time-out and the next job")
    assert qd.ran("end") == [good]
    reason, error = qd.sql("SELECT reason, error FROM qd_failed_jobs")[0]
    assert reason == "timeout" and "had to be killed" in error
    assert len(daemon.lines("job.timed_out")) == 1
    unharmed(daemon)


def test_a_job_over_its_queues_memory_is_killed_and_says_so(qd: Qd) -> None:
    in_processes(qd, threads=1, max_attempts=1, memory="128MiB")
    daemon = qd.start()
    qd.enqueue("fill_memory")
    (good,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.jobs() == 0, 30, "the end of both")
    reason, error = qd.sql("SELECT reason, error FROM qd_failed_jobs")[0]
    assert reason == "crash" and "MiB of memory, more than the queue's memory: 128MiB; killed" in error
    assert qd.ran("end") == [good]
    unharmed(daemon)


def test_after_a_crash_a_job_runs_in_a_child_of_its_own(qd: Qd) -> None:
    in_processes(qd, threads=1, max_attempts=2)
    daemon = qd.start()
    seen = qd.folder / "seen"
    qd.enqueue("look_around", file=str(seen))
    wait_for(lambda: seen.exists() and seen.read_text().endswith("}"), 30, "the first run")
    own = wait_for(lambda: children(daemon), 10, "the worker's child")
    assert eval(seen.read_text())["pid"] in own
    seen.unlink()
    qd.sql("INSERT INTO qd_jobs (type, payload, crashes, attempts) SELECT 'look_around', %s, 1, 1",
           (f'{{"file": "{seen}"}}',))  # fmt: skip
    wait_for(lambda: seen.exists() and seen.read_text().endswith("}"), 30, "the run in quarantine")
    alone = eval(seen.read_text())["pid"]
    wait_for(lambda: not running(alone), 10, "the end of that child")
    assert alone not in own and children(daemon) == own


def test_a_job_that_killed_its_daemon_runs_in_a_child_after_the_restart(qd: Qd) -> None:
    in_processes(qd, threads=1, max_attempts=3, worker={"executor": "thread"})
    first = qd.start()
    (job,) = qd.enqueue("poison", how="kill")
    assert first.wait_exit(20) == -signal.SIGKILL
    second = qd.start()
    wait_for(lambda: qd.sql("SELECT 1 FROM qd_failed_jobs"), 60, "the dead letter")
    assert qd.ran("start", job) == [job] * 3 and qd.one("SELECT reason FROM qd_failed_jobs") == "crash"
    assert second.lines("stale.reclaimed") and len(second.lines("job.crashed")) == 2
    unharmed(second)
    assert children(second) == []
