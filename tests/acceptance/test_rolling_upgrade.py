"""A rolling upgrade: the next version migrates under the running one, both work side by side, and the
older ends only once the schema no longer suits it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qd import __all__ as PUBLIC
from tests.acceptance.processes import children, in_processes
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import free_port
from tests.support.server import PASSWORD, ROOT
from tests.support.upgrading import MIGRATION, estranged_files, next_files
from tests.support.waiting import wait_for


def next_version(folder: Path) -> Path:
    """A copy of the package that is one schema further; where it lies."""
    package = folder / "next" / "qd"
    shutil.copytree(ROOT / "qd", package, ignore=shutil.ignore_patterns("__pycache__"))
    put(package.parent, next_files())
    return package.parent


def put(folder: Path, files: dict[str, str]) -> None:
    """Puts files in place of those that a daemon may have loaded, as `make install` does."""
    for name, text in files.items():
        (folder / name).write_text(text)


def migrate(qd: Qd, path: str) -> str:
    """Runs that version's `qd migrate` with the migrator's account; what it printed."""
    daemons = {**qd.config["database"]}
    qd.write(database={"user": qd.server.prefix + "qd_migrator", "password": PASSWORD})
    argv = [sys.executable, "-m", "qd", "--config", str(qd.file), "migrate"]
    done = subprocess.run(
        argv, capture_output=True, text=True, cwd=qd.folder, env={**os.environ, "PYTHONPATH": path}, check=True
    )
    qd.write(database=daemons)
    return done.stdout


def claimed(daemon: Daemon, port: int) -> float:
    """How many jobs it has claimed."""
    lines = daemon.get("/metrics", port)[1].splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("qd_jobs_claimed_total{"))


def test_the_next_version_migrates_under_the_running_one_and_both_work_side_by_side(qd: Qd) -> None:
    path = os.pathsep.join([str(next_version(qd.folder)), str(ROOT)])
    first = qd.enqueue("nap", 100, seconds=0.02)
    old, old_port = qd.start(), qd.port
    wait_for(lambda: qd.ran("end"), 20, "the older version to work")
    assert MIGRATION in migrate(qd, path)
    new_port = free_port()
    qd.write(http={"listen": f"127.0.0.1:{new_port}"})
    new = qd.start(PYTHONPATH=path)
    jobs = [*first, *qd.enqueue("nap", 100, seconds=0.05)]
    wait_for(lambda: qd.jobs() == 0, 60, "all jobs to be done")
    assert sorted(qd.ran("end")) == sorted(jobs)
    assert claimed(old, old_port) + claimed(new, new_port) == len(jobs)
    assert claimed(new, new_port) > 0
    assert old.get("/readyz", old_port)[0] == new.get("/readyz", new_port)[0] == 200
    qd.sql("UPDATE qd_schema SET compatible_from = 2")  # as the contracting migration after it would
    assert old.wait_exit(30) == 78
    assert new.alive() and new.stop() == 0


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_a_child_of_the_next_version_that_the_running_daemon_can_not_talk_to_is_given_no_job_and_costs_no_attempt(
    qd: Qd, executor: str
) -> None:
    folder = next_version(qd.folder)
    path = os.pathsep.join([str(folder), str(ROOT)])
    if executor == "process":
        in_processes(qd, threads=1)
    old = qd.start(PYTHONPATH=path)
    (first,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end") == [first], 30, "the job before the upgrade")
    put(folder, estranged_files())
    for child in children(old):
        os.kill(child, signal.SIGKILL)
        wait_for(lambda child=child: child not in children(old), 20, "the child's end")
    if executor == "thread":  # only what took a process down runs in a child
        qd.sql("INSERT INTO qd_jobs (type, payload, crashes) VALUES ('nap', '{\"seconds\": 0}', 1)")
    else:
        qd.enqueue("nap", seconds=0)
    ((job,),) = qd.sql("SELECT id FROM qd_jobs WHERE type = 'nap'")
    (said,) = wait_for(lambda: old.lines("child.start_failed"), 30, "the refusal")
    assert "child processes don't fit to this daemon's" in said and "restart the daemon" in said
    wait_for(lambda: qd.jobs("attempts = 0 AND reserved_by IS NULL") == 1, 30, "the job to be given back")
    assert old.get("/readyz")[0] == (503 if executor == "process" else 200)
    assert old.stop() == 0
    qd.start(PYTHONPATH=path)
    wait_for(lambda: qd.ran("end") == [first, job], 30, "the job, once the daemon was restarted")


EVERYTHING = """
import qd, time


@qd.handler("everything")
def everything(job):
    missing = [name for name in qd.__all__ if name not in job.payload["but"] and not getattr(qd, name)]
    return str(missing)


@qd.handler("fails")
def fails(job):
    raise ValueError("as it must")


@qd.handler("sticks")
def sticks(job):
    while True:
        time.sleep(0.02)
"""


@pytest.mark.parametrize("executor", ["process", "thread"])
def test_a_daemon_and_its_children_go_on_with_what_they_have_loaded_when_their_files_are_gone(
    qd: Qd, executor: str
) -> None:
    folder = next_version(qd.folder)
    (qd.folder / "shop.py").write_text(EVERYTHING)
    queue = {"max_attempts": 1, "timeout": "1s", "lease": "6s"}
    qd.write(handlers={"modules": ["shop"]}, queues={"default": queue, "more": queue})
    qd.write(workers=[{"queues": ["default"], "threads": 1, "executor": executor}])
    daemon = qd.start(PYTHONPATH=os.pathsep.join([str(folder), str(ROOT)]))
    qd.enqueue("everything", but=PUBLIC)
    wait_for(lambda: qd.jobs() == 0, 30, "the first job, and with it the child")
    (folder / "qd").rename(folder / "was")
    qd.enqueue("everything", but=["Client"] if executor == "process" else [])
    qd.enqueue("fails")
    qd.enqueue("unheard_of")
    dead = "SELECT type, reason FROM qd_failed_jobs"
    wait_for(lambda: ("fails", "error") in qd.sql(dead), 30, "the failure")
    assert daemon.lines("job.type_unknown")
    for path in ("/", "/metrics", "/livez", "/readyz"):
        assert daemon.get(path)[0] == 200, path
    if executor == "thread":  # a child that is ended here has no successor
        qd.write(queues={"default": {**queue, "max_attempts": 2}, "more": queue})
        daemon.send(signal.SIGHUP)
        wait_for(lambda: daemon.lines("daemon.reload_applied"), 10, "the reload")
    qd.enqueue("sticks")
    daemon.send(signal.SIGQUIT)
    wait_for(lambda: daemon.lines("daemon.stack_shown"), 10, "the stacks")
    wait_for(lambda: daemon.lines("job.timed_out"), 30, "the time-out")
    assert daemon.stop() == 0
    assert "everything" not in str(qd.sql("SELECT type FROM qd_failed_jobs"))
    assert "No module named 'qd" not in daemon.log.read_text()
