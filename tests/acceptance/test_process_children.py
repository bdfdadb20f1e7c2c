"""The children of a daemon with `executor: process`: what they have of it, and that they end with it."""

from __future__ import annotations

import ast
import os
import signal
from pathlib import Path
from typing import Any

from qd.clock import monotonic
from tests.acceptance.processes import HANDLERS, children, in_processes, running, zombies
from tests.support.daemon import Daemon, Qd
from tests.support.waiting import wait_for


def seen_by_a_child(qd: Qd) -> dict[str, Any]:
    """What the handler `look_around` tells of its process."""
    file = qd.folder / "seen"
    qd.enqueue("look_around", file=str(file))
    wait_for(lambda: file.exists() and file.read_text().endswith("}"), 30, "the child to look around")
    return dict(ast.literal_eval(file.read_text()))


def long_job(qd: Qd) -> tuple[int, int]:
    """The pids of a child that runs a long job and of the program that its handler has started."""
    file = qd.folder / "pids"
    qd.enqueue("leave_a_program", file=str(file))
    wait_for(lambda: file.exists() and " " in file.read_text(), 30, "the job to begin")
    child, program = map(int, file.read_text().split())
    return child, program


def test_a_child_has_nothing_of_the_daemon_that_it_could_misuse(qd: Qd) -> None:
    in_processes(qd, threads=1)
    qd.write(database={"password": "${APP_SECRET}"})
    password = str(qd.server.config(qd.database).password)
    daemon = qd.start(watchdog_usec=5_000_000, APP_SECRET=password, CREDENTIALS_DIRECTORY="/nowhere", SHOP="open")
    seen = seen_by_a_child(qd)
    others = {what for fd, what in seen["fds"].items() if int(fd) > 5}
    assert others <= {str(daemon.log)}, seen["fds"]  # its own, for its log
    sockets = [fd for fd, what in seen["fds"].items() if what.startswith("socket:")]
    assert sockets == ["3"] and seen["fds"]["0"] == "/dev/null"
    assert f"SigBlk:\t{0:016x}" in seen["signals"]
    env = seen["env"]
    assert env["SHOP"] == "open" and "APP_SECRET" not in env and password not in env.values()
    assert not [name for name in env if name.startswith(("NOTIFY_", "WATCHDOG_", "LISTEN_", "CREDENTIALS_"))]
    assert seen["oom"] > int(Path(f"/proc/{daemon.process.pid}/oom_score_adj").read_text())
    assert running(seen["pid"]) and children(daemon) == [seen["pid"]]


def test_kill_9_of_the_daemon_leaves_neither_child_nor_its_programs(qd: Qd) -> None:
    in_processes(qd, threads=3)
    daemon = qd.start()
    child, program = long_job(qd)
    wait_for(lambda: len(children(daemon)) == 3, 20, "all children")
    all_of_them = [*children(daemon), child, program]
    daemon.send(signal.SIGKILL)
    began = monotonic()
    wait_for(lambda: not any(running(pid) for pid in all_of_them), 10, "the end of them all")
    assert monotonic() - began < 1.0


def test_a_daemon_frozen_past_its_lease_has_no_child_that_still_acts(qd: Qd) -> None:
    in_processes(qd, threads=1, lease="3s")
    daemon = qd.start()
    child, program = long_job(qd)
    daemon.send(signal.SIGSTOP)
    wait_for(lambda: not running(child) and not running(program), 20, "the child's end")
    daemon.send(signal.SIGCONT)
    wait_for(lambda: daemon.lines("job.crashed"), 20, "the crash to be told")
    assert "nothing heard from the daemon for most of a lease" in daemon.lines("job.crashed")[0]


def test_at_a_stop_the_child_is_dead_before_its_job_is_handed_back(qd: Qd) -> None:
    in_processes(qd, threads=1)
    qd.write(shutdown={"grace": "500ms"})
    daemon = qd.start()
    (job,) = qd.enqueue("hog")
    wait_for(lambda: qd.ran("start", job), 30, "the job to begin")
    (child,) = children(daemon)
    daemon.send(signal.SIGTERM)
    wait_for(lambda: qd.jobs("reserved_by IS NULL AND attempts = 0") == 1, 20, "the job to be handed back")
    assert not running(child)
    assert daemon.wait_exit(20) == 0


def test_an_idle_daemon_with_children_stops_at_once_and_leaves_none(qd: Qd) -> None:
    in_processes(qd, threads=2)
    daemon = qd.start()
    pids = wait_for(lambda: children(daemon) if len(children(daemon)) == 2 else [], 20, "its children")
    assert daemon.stop() == 0 and not any(map(running, pids))


def test_where_no_child_can_start_nothing_is_claimed_and_it_is_said_once(qd: Qd) -> None:
    (qd.folder / "fragile.py").write_text(
        f"import os\nfrom {HANDLERS} import nap\n"
        "if 'qd.executors.inside' in __import__('sys').modules and os.path.exists('broken'):\n"
        "    raise ImportError('half of the deploy is missing')\n"
    )
    in_processes(qd, threads=2)
    qd.write(handlers={"modules": ["fragile"]})
    (qd.folder / "broken").touch()
    daemon = qd.start()
    job = qd.enqueue("nap", seconds=0)
    said = wait_for(lambda: daemon.lines("child.start_failed"), 30, "the reason")
    assert "half of the deploy is missing" in said[0] and "fragile.py:4" in said[0]
    wait_for(lambda: daemon.metric('qd_workers{state="backoff",worker="default"}') == 2, 20, "both to back off")
    assert qd.jobs("attempts = 0 AND reserved_by IS NULL") == 1 and daemon.get("/livez")[0] == 200
    (qd.folder / "broken").unlink()
    wait_for(lambda: qd.ran("end") == job, 30, "the job, once it is mended")
    assert len(daemon.lines("child.start_failed")) == len(daemon.lines("child.start_restored")) == 1


def test_many_crashes_leave_nothing_behind(qd: Qd) -> None:
    in_processes(qd, threads=2, max_attempts=1, timeout="60s")
    daemon = qd.start()
    qd.enqueue("poison", 4, how="exit")
    wait_for(lambda: qd.jobs() == 0, 60, "the first crashes")
    files, threads = footprint(daemon)
    qd.enqueue("poison", 50, how="exit")
    wait_for(lambda: qd.jobs() == 0, 200, "the other crashes")
    wait_for(lambda: len(children(daemon)) == 2, 20, "new children")
    more = footprint(daemon)
    assert more[0] <= files and more[1] <= threads and zombies(daemon) == 0


def footprint(daemon: Daemon) -> tuple[int, int]:
    """Descriptors and threads, once its children are there."""
    wait_for(lambda: len(children(daemon)) == 2, 20, "its children")
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd")), daemon.threads()
