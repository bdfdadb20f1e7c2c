"""A stop reaches what handlers have started: no process outlives the daemon, and its job goes to another at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from qd.clock import monotonic
from tests.acceptance.processes import children, in_processes
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for

PROGRAM = """
echo $$ >> {pids}
sleep 600 &
echo $! >> {pids}
sleep 600
"""

STUBBORN = """
trap '' TERM
echo $$ >> {pids}
sh -c 'trap "" TERM; echo $$ >> {pids}; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done
"""


def with_program(qd: Qd, script: str) -> Path:
    """Makes a program the handler `family`, which leaves its processes' ids in a file."""
    pids = qd.folder / "pids"
    (qd.folder / "family.sh").write_text(script.format(pids=pids))
    qd.write(
        handlers={"commands": {"family": {"argv": ["sh", str(qd.folder / "family.sh")]}}},
        shutdown={"grace": "1s"},
        workers=[{"queues": ["default"], "threads": 1}],
    )
    return pids


def living(pids: Path) -> list[int]:
    """Those of the processes that are there still."""
    found = []
    for word in pids.read_text().split():
        state = Path(f"/proc/{word}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
            found.append(int(word))
    return found


def under_way(qd: Qd, pids: Path) -> tuple[Daemon, int]:
    """A daemon whose handler and its child run."""
    daemon = qd.start()
    (job,) = qd.enqueue("family")
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2, 15, "the program and its child")
    assert len(living(pids)) == 2
    return daemon, job


def test_a_program_and_its_child_end_with_the_grace_and_another_daemon_has_the_job_at_once(qd: Qd) -> None:
    pids = with_program(qd, PROGRAM)
    daemon, job = under_way(qd, pids)
    began = monotonic()
    assert daemon.stop() == 0
    assert monotonic() - began >= 1.0
    assert living(pids) == []
    assert qd.sql("SELECT attempts, reserved_by FROM qd_jobs WHERE id = %s", (job,)) == [(0, None)]
    second = qd.start()
    wait_for(lambda: len(pids.read_text().split()) == 4, 10, "the other daemon to have it")
    assert second.stop() == 0 and living(pids) == []


def test_a_program_that_ignores_sigterm_is_killed_with_its_child(qd: Qd) -> None:
    pids = with_program(qd, STUBBORN)
    daemon, job = under_way(qd, pids)
    try:
        assert daemon.stop() == 0
        wait_for(lambda: living(pids) == [], 5, "both to be gone")
    finally:
        for pid in living(pids):
            os.kill(pid, 9)
    assert qd.sql("SELECT attempts, reserved_by FROM qd_jobs WHERE id = %s", (job,)) == [(0, None)]


def test_no_job_is_claimed_after_the_sigterm_though_the_grace_is_long(qd: Qd) -> None:
    qd.write(shutdown={"grace": "3s"}, workers=[{"queues": ["default"], "threads": 2}])
    daemon = qd.start()
    (long,) = qd.enqueue("nap", seconds=60)
    wait_for(lambda: qd.ran("start", long), 10, "the long job")
    daemon.send(signal.SIGTERM)
    wait_for(lambda: daemon.notify.times("STOPPING=1"), 5, "STOPPING")
    late = qd.enqueue("nap", 20, seconds=0)
    assert daemon.wait_exit(15) == 0
    assert qd.ran("start") == [long] and qd.jobs("attempts = 0 AND reserved_by IS NULL") == 21
    assert set(late) <= {row[0] for row in qd.sql("SELECT id FROM qd_jobs")}


def deaf_child(qd: Qd, **queue: object) -> tuple[Daemon, int, int]:
    """A daemon whose child hears nothing, and has been given a job that may start once: its pid and the job's id."""
    in_processes(qd, threads=1, max_attempts=1, **queue)
    daemon = qd.start()
    qd.enqueue("look_around", file=str(qd.folder / "seen"))
    wait_for(lambda: (qd.folder / "seen").exists() and qd.jobs() == 0, 30, "the child to have run a first job")
    (child,) = children(daemon)
    os.kill(child, signal.SIGSTOP)
    (job,) = qd.enqueue("hog")
    wait_for(lambda: qd.jobs("reserved_by IS NOT NULL") == 1, 20, "the job to be claimed")
    return daemon, child, job


def test_a_job_that_its_child_had_not_begun_is_no_dead_letter_after_a_stop(qd: Qd) -> None:
    qd.write(shutdown={"grace": "0s"}, log={"jobs": "all"})
    daemon, _, job = deaf_child(qd)
    assert daemon.stop() == 0
    assert qd.sql("SELECT attempts, reserved_by FROM qd_jobs WHERE id = %s", (job,)) == [(0, None)], daemon.said()
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0 and not qd.ran("start", job)
    assert "not started" in daemon.lines("job.released")[-1]


def test_a_job_that_its_child_had_not_begun_is_no_dead_letter_after_the_childs_death(qd: Qd) -> None:
    daemon, child, job = deaf_child(qd)
    os.kill(child, signal.SIGKILL)
    wait_for(lambda: qd.ran("start", job), 60, "the job to be begun by another child")  # after its delay
    assert qd.one("SELECT attempts FROM qd_jobs WHERE id = %s", (job,)) == 1
    assert qd.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    (told,) = daemon.lines("daemon.problem_seen")
    assert "killed by SIGKILL" in told and "no attempt is spent" in told
