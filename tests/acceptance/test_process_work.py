"""Child processes under `qd work`, in `qd check`, after a reload, and with a job that completes itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.processes import children, in_processes, running
from tests.support.daemon import Qd
from tests.support.server import ROOT
from tests.support.waiting import wait_for


def command(qd: Qd, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs `qd` with the test's configuration."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LEDGER": str(qd.ledger)}
    argv = [sys.executable, "-m", "qd", "--config", str(qd.file), *words]
    return subprocess.run(argv, cwd=qd.folder, env=env, capture_output=True, text=True, timeout=120)


def prepared(qd: Qd) -> None:
    assert command(qd, "migrate").returncode == 0


def test_a_foreground_worker_drains_in_a_child(qd: Qd) -> None:
    in_processes(qd, max_attempts=1)
    prepared(qd)
    good, poison = qd.enqueue("nap", 5, seconds=0), qd.enqueue("poison", how="exit")
    done = command(qd, "work", "--drain")
    assert done.returncode == 0 and "5 succeeded, 1 failed" in done.stderr, done.stderr
    assert qd.ran("end") == good and qd.jobs() == 0 and qd.ran("start")[-1:] == poison


def test_a_foreground_worker_keeps_the_memory_limit_of_a_queue_that_no_daemon_serves(qd: Qd) -> None:
    in_processes(qd)
    qd.write(queues={**qd.config["queues"], "heavy": {"memory": "1MiB", "max_attempts": 1}})
    prepared(qd)
    qd.enqueue("nap", queue="heavy", seconds=30)
    done = command(qd, "work", "--queue", "heavy", "--drain")
    assert "0 succeeded, 1 failed" in done.stderr, done.stderr
    assert "more than the queue's memory: 1MiB" in qd.one("SELECT error FROM qd_failed_jobs")


def test_a_limited_worker_runs_its_whole_batch_though_a_child_dies_in_it(qd: Qd) -> None:
    in_processes(qd)
    qd.write(batch=4)
    prepared(qd)
    qd.enqueue("poison", how="exit")
    good = qd.enqueue("nap", 5, seconds=0)
    done = command(qd, "work", "--max", "4")
    assert done.returncode == 0 and "4 attempts: 3 succeeded, 1 failed" in done.stderr, done.stderr
    assert qd.ran("end") == good[:3]


def test_a_foreground_worker_that_can_start_no_child_says_so_and_runs_nothing(qd: Qd) -> None:
    (qd.folder / "only_once.py").write_text(
        "import os, qd\nif 'CHILD' in os.environ:\n    raise ImportError('no more')\nos.environ['CHILD'] = 'yes'\n"
        "qd.handler('t')(print)\n"
    )
    in_processes(qd)
    qd.write(handlers={"modules": ["only_once"]})
    prepared(qd)
    qd.enqueue("t")
    for option in ("--drain", "--once"):
        done = command(qd, "work", option)
        assert done.returncode == 78 and "ImportError: no more" in done.stderr, done.stderr
    assert qd.jobs("attempts = 0 AND reserved_by IS NULL") == 1
    told = command(qd, "check", "--offline", "--json")
    findings = {finding["what"]: finding for finding in json.loads(told.stdout)["findings"]}
    assert told.returncode == 78 and "no more" in findings["children"]["detail"]


FEW = """
import os, time, qd
number = 0
while True:
    try:
        os.close(os.open(f"start-{number}", os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        number += 1
while number > %d:
    if os.path.exists("done"):
        raise ImportError("no more")
    time.sleep(0.01)
qd.handler("t")(lambda job: open("done", "w").close())
"""
"""A module that so many processes can import; those that come later can't once the job is done."""


def test_a_thread_that_can_start_no_child_matters_not_where_others_have_drained_everything(qd: Qd) -> None:
    (qd.folder / "few.py").write_text(FEW % 1)
    in_processes(qd)
    qd.write(handlers={"modules": ["few"]})
    prepared(qd)
    (qd.folder / "start-0").unlink(missing_ok=True)  # the migration's
    qd.enqueue("t")
    done = command(qd, "work", "--drain", "--threads", "2")
    assert done.returncode == 0 and "no more" in done.stderr and qd.jobs() == 0, done.stderr


def test_a_job_that_is_handed_back_for_want_of_its_own_child_is_told_of_at_the_end(qd: Qd) -> None:
    (qd.folder / "done").touch()
    (qd.folder / "few.py").write_text(FEW % 0)
    in_processes(qd, worker={"executor": "thread"})
    qd.write(handlers={"modules": ["few"]})
    prepared(qd)
    (qd.folder / "start-0").unlink(missing_ok=True)  # the migration's
    qd.enqueue("t")
    qd.sql("UPDATE qd_jobs SET crashes = 1 WHERE type = 't'")
    done = command(qd, "work", "--drain")
    assert done.returncode == 78 and "handed back: 1; " in done.stderr and "no more" in done.stderr, done.stderr
    assert qd.jobs("attempts = 0 AND reserved_by IS NULL") == 1


def test_check_starts_a_child_and_tells_what_it_takes(qd: Qd) -> None:
    in_processes(qd)
    done = command(qd, "check", "--offline")
    assert done.returncode == 0 and "children: a child process for handlers starts in" in done.stdout, done.stdout


def test_a_reload_brings_new_children_and_lets_the_old_ones_finish(qd: Qd) -> None:
    in_processes(qd, threads=1)
    daemon = qd.start()
    (job,) = qd.enqueue("nap", seconds=2)
    wait_for(lambda: qd.ran("start", job), 30, "the job to begin")
    (old,) = children(daemon)
    qd.write(queues={"default": {"lease": "6s", "max_attempts": 5}})
    daemon.send(signal.SIGHUP)
    wait_for(lambda: daemon.lines("daemon.reload_applied"), 20, "the reload")
    wait_for(lambda: qd.ran("end", job), 30, "the old job's end")
    wait_for(lambda: not running(old), 20, "the old child's end")
    wait_for(lambda: len(children(daemon)) == 1, 20, "the new child alone")
    assert qd.jobs() == 0 and not daemon.lines("lease.lost")


def test_a_job_in_a_child_completes_itself_and_no_lease_counts_as_lost(qd: Qd, tmp_path: Path) -> None:
    in_processes(qd, threads=1)
    daemon = qd.start()
    login = qd.server.config(qd.database)
    (job,) = qd.enqueue(
        "complete", host=qd.server.host, port=qd.server.port, user=login.user, password=str(login.password),
        database=qd.database, seconds=4,
    )  # fmt: skip
    wait_for(lambda: qd.ran("end", job), 60, "the handler's end, several renewals after its commit")
    wait_for(lambda: qd.jobs() == 0 and daemon.get("/readyz")[0] == 200, 20, "the row to be gone")
    succeeded = 'qd_job_attempts_total{job_type="complete",outcome="succeeded",queue="default"}'
    wait_for(lambda: daemon.metric(succeeded) == 1, 20, "the success to be counted")
    assert not daemon.lines("lease.lost") and not daemon.lines("daemon.problem_seen")


def test_a_child_whose_job_left_its_transaction_open_is_ended_and_its_thread_goes_on(qd: Qd) -> None:
    in_processes(qd, threads=1, max_attempts=2)
    daemon = qd.start()
    login = qd.server.config(qd.database)
    (job,) = qd.enqueue(
        "complete_and_forget", host=qd.server.host, port=qd.server.port, user=login.user,
        password=str(login.password), database=qd.database,
    )  # fmt: skip
    wait_for(lambda: qd.jobs() == 0, 60, "the second attempt to complete itself")
    assert qd.ran("end") == [job, job]
    (failed,) = daemon.lines("job.failed")
    assert "left its transaction open" in failed
    (nap,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", nap), 20, "the thread to go on")
    assert not daemon.lines("lease.lost")
