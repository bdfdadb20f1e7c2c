"""Handlers that fork or start programs: no child speaks for the daemon, keeps its address, or ends its connections."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from qd.clock import monotonic
from tests.acceptance.hard_handlers import FORKS
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.missing import without
from tests.support.waiting import wait_for

HANDLERS = {"modules": ["tests.acceptance.hard_handlers"]}


def certificate(folder: Path) -> tuple[str, ...]:
    """The options of a server with a certificate of its own making."""
    if shutil.which("openssl") is None:
        without("openssl, to make a certificate with (Debian: apt-get install openssl)")
    key, made = folder / "key.pem", folder / "cert.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*argv, "-keyout", str(key), "-out", str(made)], check=True, capture_output=True)
    return f"--ssl-key={key}", f"--ssl-cert={made}"


@pytest.fixture
def secure(folder: Path, own_mariadb: Callable[..., MariaDB]) -> Iterator[Qd]:
    """A daemon's database that is only spoken to through TLS."""
    server = own_mariadb(*certificate(folder), "--performance-schema=ON")
    qd = Qd(folder, server, server.new_database())
    qd.write(database={"tls": {"mode": "required"}}, handlers=HANDLERS)
    yield qd
    qd.end()


def connections(qd: Qd) -> set[int]:
    """The ids of the daemon's connections."""
    return {int(n) for (n,) in qd.sql("SELECT id FROM information_schema.processlist WHERE user = %s", (qd.user,))}


def children(daemon: Daemon) -> list[str]:
    """The pids of its living children; zombies, which a pool may leave for a moment, are none."""
    tasks = Path(f"/proc/{daemon.process.pid}/task")
    pids = [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]
    return [pid for pid in pids if " Z " not in Path(f"/proc/{pid}/stat").read_text()]


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_child_settles_nothing_and_leaves_every_connection_as_it_was(secure: Qd, executor: str) -> None:
    secure.write(workers=[{"queues": ["default"], "threads": 2, "executor": executor}])
    daemon = secure.start()
    secure.enqueue("nap", seconds=5)  # the keeper's connection is there too
    wait_for(lambda: secure.jobs() == 0, 20, "its end")
    before = connections(secure)
    jobs = {how: secure.enqueue("fork", 3, how=how) for how in FORKS}
    wait_for(lambda: secure.jobs() == 0, 60, "all to be settled")
    for how, three in jobs.items():
        for job in three:
            assert secure.ran("start", job) == secure.ran("end", job) == [job], how
    assert secure.one("SELECT COUNT(*) FROM qd_failed_jobs") == 0
    assert connections(secure) == before
    assert not daemon.lines("database.lost") and not daemon.lines("daemon.problem_seen")
    assert daemon.said().count("a child forked by job") == 6  # those that returned or raised
    own = 2 if executor == "process" else 0
    wait_for(lambda: len(children(daemon)) <= own, 10, "no child to be left but the workers' own")
    assert secure.enqueue("nap", 4, seconds=0)
    wait_for(lambda: secure.jobs() == 0, 10, "ordinary jobs after that")


def left(qd: Qd) -> int:
    """The pid of what a handler left behind."""
    lines = qd.ledger.read_text().split() if qd.ledger.exists() else []
    return next((int(word.removeprefix("left-")) for word in lines if word.startswith("left-")), 0)


@pytest.fixture(params=["thread", "process"])
def leaver(qd: Qd, request: pytest.FixtureRequest) -> Iterator[Qd]:
    """A configuration for each executor; what its handlers left behind ends with the test."""
    qd.write(handlers=HANDLERS, workers=[{"queues": ["default"], "threads": 1, "executor": request.param}])
    yield qd
    with suppress(ProcessLookupError):
        if left(qd):
            os.kill(left(qd), signal.SIGKILL)


def files(pid: int) -> set[str]:
    """What a process has open."""
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(os.readlink(fd))
    return found


def status(pid: int, name: str) -> str:
    """A field of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


def ends_when_told(pid: int) -> None:
    """Nothing keeps SIGTERM from it; what a worker's own process left has ended with that."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: gone(pid), 5, "it to end as it was told")


def starts_again_at_once(qd: Qd, daemon: Daemon) -> None:
    """Kills it; another has its address within a second of its first line."""
    daemon.process.kill()
    daemon.process.wait()
    new = qd.start()
    assert new.get("/livez")[0] == 200
    assert "in use" not in new.said()


def test_a_program_that_a_handler_leaves_behind_has_nothing_of_the_daemons(leaver: Qd) -> None:
    daemon = leaver.start()
    leaver.enqueue("leave_a_program")
    pid = wait_for(lambda: left(leaver), 10, "the program")
    wait_for(lambda: "sleep" in Path(f"/proc/{pid}/cmdline").read_text(), 5, "it to have begun")
    assert int(status(pid, "SigBlk"), 16) == 0
    assert int(status(pid, "SigIgn"), 16) & sum(1 << (n - 1) for n in range(1, 32)) == 0  # libc's own two apart
    assert files(pid) <= {"/dev/null"}, "a descriptor of the daemon's"
    environ = Path(f"/proc/{pid}/environ").read_text()
    assert "NOTIFY_SOCKET" not in environ and "WATCHDOG" not in environ
    starts_again_at_once(leaver, daemon)
    ends_when_told(pid)


def test_a_fork_that_a_handler_leaves_behind_keeps_no_address_and_can_be_ended(leaver: Qd) -> None:
    daemon = leaver.start()
    leaver.enqueue("leave_a_fork")
    pid = wait_for(lambda: left(leaver), 10, "the child")
    wait_for(lambda: leaver.jobs() == 0, 10, "the job's end")
    notes = len(daemon.notify.got)
    quiet = monotonic()
    daemon.send(signal.SIGSTOP)  # whoever answers now, or tells systemd something, is the child
    wait_for(lambda: monotonic() > quiet + 1, 3, "a second")
    assert len(daemon.notify.got) <= notes + 1  # what was under way
    daemon.send(signal.SIGCONT)
    assert f":{leaver.port}" not in listening(pid)
    starts_again_at_once(leaver, daemon)
    ends_when_told(pid)


def listening(pid: int) -> str:
    """The local addresses of a process's own listening TCP sockets, as `:PORT` each."""
    inodes = {name[8:-1] for name in files(pid) if name.startswith("socket:[")}
    lines = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return " ".join(f":{int(line[1].split(':')[1], 16)}" for line in lines if line[3] == "0A" and line[9] in inodes)


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return status(pid, "State") == "Z"
    except FileNotFoundError:
        return True
