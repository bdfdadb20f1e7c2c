"""The database's password is in nothing that anybody sees, also where something is wrong with it or beside it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Qd
from tests.support.mariadb import free_port
from tests.support.server import ROOT
from tests.support.waiting import wait_for

SECRET = "Zr7-not-to-be-seen"


@pytest.fixture
def secretive(qd: Qd) -> Iterator[Qd]:
    """A daemon's account whose password stands nowhere else."""
    account = f"'s_{secrets.token_hex(4)}'@'%'"
    qd.server.run(f"CREATE USER {account} IDENTIFIED BY '{SECRET}'")
    qd.server.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {qd.database}.* TO {account}")
    qd.write(database={"user": account.split("'")[1], "password": SECRET}, log={"level": "debug", "jobs": "all"})
    yield qd
    qd.server.run(f"DROP USER {account}")


def verb(qd: Qd, *args: str) -> str:
    """All that one says; what it exits with doesn't matter here."""
    environment = {**os.environ, "QD_CONFIG": str(qd.file), "PYTHONPATH": str(ROOT), "LEDGER": str(qd.ledger)}
    command = [sys.executable, "-m", "qd", *args]
    done = subprocess.run(command, env=environment, cwd=qd.folder, capture_output=True, text=True, timeout=60)
    assert done.stdout + done.stderr, f"{args} said nothing"
    return done.stdout + done.stderr


def processes() -> str:
    """What `ps -ef` shows of every process, and more: their command lines as they are."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:  # it has ended meanwhile
            continue
    return "\n".join(lines)


def test_a_running_daemon_shows_it_to_nobody(secretive: Qd) -> None:
    daemon = secretive.start()
    (job,) = secretive.enqueue("nap", seconds=3)
    wait_for(lambda: secretive.ran("start", job), 10, "a job")
    daemon.send(signal.SIGQUIT)
    wait_for(lambda: daemon.lines("daemon.stack_shown"), 5, "the stacks")
    shown = [daemon.get(path)[1] for path in ("/", "/metrics", "/readyz", "/livez", "/nothing")]
    shown += [
        verb(secretive, *args.split()) for args in ("status", "status --json", "check", "check --json", "jobs list")
    ]
    shown.append(processes())
    secretive.enqueue("break_the_main_loop")
    assert daemon.wait_exit(30) == 70
    assert "Traceback" in daemon.said(), "no crash report"
    assert [text for text in [*shown, daemon.said()] if SECRET in text] == []


def _wrong_port(qd: Qd) -> None:
    qd.write(database={"port": free_port()})


def _wrong_password(qd: Qd) -> None:
    qd.write(database={"password": SECRET + "er"})


def _wrong_database(qd: Qd) -> None:
    qd.write(database={"name": "qd_is_not_there"})


def _yaml(text: str) -> Callable[[Qd], None]:
    def write(qd: Qd) -> None:
        qd.file.write_text(text.format(secret=SECRET))

    return write


TROUBLES: dict[str, Callable[[Qd], None]] = {
    "a wrong port": _wrong_port,
    "a wrong password": _wrong_password,
    "a wrong database": _wrong_database,
    "an open quote": _yaml('database:\n  password: "{secret}\n  port: 3306\n'),
    "a tab before it": _yaml("database:\n\tpassword: {secret}\n"),
    "a colon in it": _yaml("database:\n  password: {secret}: more\n"),
    "a key run into it": _yaml("database:\n  password:{secret}\n"),
    "it as the host of a list": _yaml("database:\n  host: [{secret}]\n"),
    "it twice": _yaml("database:\n  password: {secret}\n  password: {secret}\n"),
    "it in a list": _yaml("database:\n  password: [{secret}]\n"),
    "it as a variable that is not set": _yaml("database:\n  password: ${{NOT_SET}}{secret}\n"),
    "it behind an anchor": _yaml("database: &x\n  password: *{secret}\n"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_trouble_makes_daemon_or_verbs_say_it(secretive: Qd, trouble: str) -> None:
    TROUBLES[trouble](secretive)
    daemon = secretive.start(ready=False)
    wait_for(lambda: not daemon.alive() or daemon.lines("database.lost"), 30, "the trouble to be told")
    said = [verb(secretive, *args.split()) for args in ("check", "enqueue nap {}")]
    if daemon.alive():
        daemon.send(signal.SIGHUP)
        daemon.send(signal.SIGQUIT)
        wait_for(lambda: daemon.lines("daemon.stack_shown"), 10, "the stacks")
        daemon.stop()
    assert [text for text in [*said, daemon.said()] if SECRET in text] == []


def test_a_password_in_a_file_that_everybody_may_read_is_warned_of(secretive: Qd) -> None:
    secretive.file.chmod(0o644)
    daemon = secretive.start()
    (line,) = [line for line in daemon.said().splitlines() if "chmod o-r" in line]
    assert "level=warning" in line and SECRET not in daemon.said() and daemon.stop() == 0
