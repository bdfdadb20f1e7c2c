"""Daemons with the same host name and the same process id, as containers have: each knows its own jobs."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from signal import SIGKILL

from tests.support.daemon import Daemon, Qd
from tests.support.missing import without
from tests.support.waiting import wait_for

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--uts", "sh", "-c",
             'hostname worker && exec "$@"', "sh")  # fmt: skip
"""Runs its arguments as process 1 of a host named `worker`."""


@cache
def refused() -> str:
    """Why no such container can be made here, or nothing."""
    try:
        made = subprocess.run([*CONTAINER, "true"], capture_output=True, text=True, timeout=20)
    except OSError as error:
        return str(error)
    return made.stderr.strip() or f"exit status {made.returncode}" if made.returncode else ""


def kill(daemon: Daemon) -> None:
    """Ends the process in the container, which is process 1 there, without warning."""
    (inner,) = subprocess.run(["ps", "-o", "pid=", "--ppid", str(daemon.process.pid)], capture_output=True, text=True,
                              check=True).stdout.split()  # fmt: skip
    os.kill(int(inner), SIGKILL)
    daemon.process.wait(10)


def owners(qd: Qd) -> dict[int, str]:
    """Who holds each job."""
    return dict(qd.sql("SELECT id, reserved_by FROM qd_jobs WHERE lane = 1"))


def test_a_restarted_container_neither_takes_its_twins_job_nor_its_own_before_the_lease_has_run_out(qd: Qd) -> None:
    if reason := refused():
        without(f"namespaces can't be made here: {reason}")
    qd.write(queues={"default": {"lease": "3s", "timeout": "60s"}}, workers=[{"queues": ["default"], "threads": 1}])
    twin = qd.twin()
    first, second = qd.start(within=CONTAINER), twin.start(within=CONTAINER)
    mine, theirs = qd.enqueue("nap", 2, seconds=7)
    wait_for(lambda: len(qd.ran("start")) == 2, 15, "each to run one")
    before = owners(qd)
    hosts = {tuple(owner.split(":")[:2]) for owner in before.values()}
    assert hosts == {("worker", "1")} and len(set(before.values())) == 2
    nonces = {job: owner.split(":")[2] for job, owner in before.items()}
    assert len(set(nonces.values())) == 2
    assert {name.split(":")[2] for (name,) in qd.sql("SELECT id FROM qd_daemons")} == set(nonces.values())
    kill(first)
    ends = dict(qd.sql("SELECT id, available_at FROM qd_jobs WHERE lane = 1"))
    again = qd.start(within=CONTAINER)
    lost = wait_for(lambda: again.lines("stale.reclaimed") + second.lines("stale.reclaimed"), 25, "it to be taken back")
    (job,) = [job for job in (mine, theirs) if f"job_id={job} " in lost[0]]
    assert qd.one("SELECT NOW(6)") >= ends[job], "taken back before its lease had run out"
    wait_for(lambda: qd.jobs() == 0, 40, "all to be done")
    other = theirs if job == mine else mine
    assert len(qd.ran("start", other)) == 1 and len(qd.ran("start", job)) == 2
    assert not again.lines("lease.lost") and not second.lines("lease.lost")
    assert len(again.lines("stale.reclaimed") + second.lines("stale.reclaimed")) == 1
