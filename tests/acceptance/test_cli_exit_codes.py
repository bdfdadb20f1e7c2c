"""The real command: exit codes, quiet ends, questions at a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import ServerShell, Shell, section
from tests.support.server import Server
from tests.support.waiting import wait_for

READING = ("status", "jobs list", "failed list", "queues list", "recover", "explain 1", "enqueue send", "work --once")


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


@pytest.fixture
def rows(shell: ServerShell) -> Iterator[ServerShell]:
    """The same with 2,000 jobs."""
    shell.sql("INSERT INTO qd_jobs (queue, type) VALUES " + ", ".join(["('mails', 'send')"] * 2000))
    yield shell


@pytest.mark.parametrize("command", READING)
def test_a_database_out_of_reach_is_69_in_one_line(tmp_path: Path, command: str) -> None:
    shell = Shell(tmp_path, {"host": "127.0.0.1", "port": 1, "connect_timeout": "1s"})
    ended = shell.qd(*command.split())
    assert ended.returncode == 69, ended.stderr
    assert ended.stderr.startswith("qd: ") or '"database.lost"' in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_wrong_password_is_78_and_is_not_shown(tmp_path: Path, mariadb: Server, mysql_database: str) -> None:
    shell = Shell(tmp_path, section(mariadb.config(mysql_database)) | {"password": "wrongsecret"})
    for command in ("status", "check", "enqueue send"):
        ended = shell.qd(*command.split())
        assert ended.returncode == 78, ended.stderr
        assert "wrongsecret" not in ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["status", "jobs list", "enqueue send", "work --once", "check"])
def test_a_missing_schema_is_78_and_says_what_to_run(shell: ServerShell, command: str) -> None:
    shell.sql("DROP TABLE qd_jobs, qd_failed_jobs, qd_queues, qd_daemons, qd_schema")
    ended = shell.qd(*command.split())
    assert ended.returncode == 78, f"{ended.stderr}{ended.stdout}"
    assert "qd migrate" in ended.stderr + ended.stdout
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "lost", ["DELETE FROM qd_schema", "DROP TABLE qd_jobs, qd_failed_jobs, qd_queues, qd_daemons, qd_schema"]
)
def test_a_migration_by_the_daemons_account_says_whose_it_is_and_asks_for_no_rights(
    shell: ServerShell, lost: str
) -> None:
    shell.sql(lost)
    ended = shell.qd("migrate")
    assert ended.returncode == 78 and ended.stderr.count("\n") == 1, ended.stderr
    assert "1142" in ended.stderr and "the migrator's account, not by the daemon's: qd --config FILE" in ended.stderr
    assert "share/doc/qd/grants.sql" in ended.stderr and "grant the user" not in ended.stderr


def test_a_closed_pipe_ends_a_list_quietly(rows: ServerShell) -> None:
    listing = rows.start("jobs", "list", "--limit", "2000", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None
    assert listing.stdout.readline().startswith(" ")
    listing.stdout.close()
    assert listing.stderr is not None
    said = listing.stderr.read()
    assert listing.wait(30) == 141
    assert said == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_as_good_as_dev_null(shell: ServerShell, closed: str) -> None:
    def ends(code: int, *args: str) -> None:
        argv = ["sh", "-c", f'"$@" {closed}', "sh", *shell.command(*args)]
        ended = subprocess.run(
            argv, input="", capture_output=True, text=True, env=shell.environment(), cwd=shell.folder, timeout=60
        )
        assert "Traceback" not in ended.stderr
        assert ended.returncode == code, f"{args}: {ended.stderr}{ended.stdout}"

    ends(0, "enqueue", "send")
    ends(2, "enqueue", "send", "-")
    ends(2, "jobs", "delete", "--queue", "default")
    ends(0, "jobs", "list")
    assert shell.count() == 1


@pytest.mark.parametrize("command", ["status", "status --json", "enqueue send", "check", "--help", "jobs list"])
def test_an_output_that_takes_no_more_is_said_in_one_line(shell: ServerShell, command: str) -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            shell.command(*command.split()), stdout=full, stderr=subprocess.PIPE, text=True,
            env=shell.environment(), cwd=shell.folder, timeout=60,
        )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("qd: the output can't be written: ") and ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "command", ["status", "jobs list", "failed retry 1", "recover", "queues pause mails", "explain 1"]
)
def test_a_schema_that_is_too_new_is_78_and_nothing_is_changed(shell: ServerShell, command: str) -> None:
    shell.sql("UPDATE qd_schema SET version = 99, compatible_from = 98")
    ended = shell.qd(*command.split())
    assert ended.returncode == 78, ended.stderr
    assert "upgrade qd" in ended.stderr and ended.stderr.count("\n") == 1
    assert shell.sql("SELECT * FROM qd_queues") == []


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_an_interrupt_ends_a_watch_quietly_with_130(
    shell: ServerShell, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", kind)
    terminal, other = pty.openpty()
    watch = shell.start("status", "--watch", stdin=other, stdout=other, stderr=subprocess.PIPE)
    os.close(other)
    shown = b""

    def drawn() -> bool:
        nonlocal shown
        shown += os.read(terminal, 65536)
        return b"mails" in shown

    wait_for(drawn, 20, "the first picture")
    watch.send_signal(signal.SIGINT)
    _, said = watch.communicate(timeout=20)
    assert watch.returncode == 130
    assert said.strip() == ""
    os.close(terminal)


@pytest.mark.parametrize(("answer", "code", "left"), [("n", 1, 2000), ("y", 0, 0)])
def test_an_act_on_many_rows_asks_at_a_terminal(rows: ServerShell, answer: str, code: int, left: int) -> None:
    terminal, other = pty.openpty()
    asking = rows.start("jobs", "delete", "--queue", "mails", stdin=other, stdout=other, stderr=other)
    os.close(other)
    shown = read_until(terminal, b"[y/N]")
    assert b"delete 2,000 jobs" in shown
    assert rows.count() == 2000
    os.write(terminal, answer.encode() + b"\n")
    rest = read_until(terminal, None)
    assert asking.wait(30) == code, rest
    assert rows.count() == left
    os.close(terminal)


def test_without_a_terminal_and_without_yes_nothing_is_done(rows: ServerShell) -> None:
    ended = rows.qd("jobs", "delete", "--queue", "mails")
    assert ended.returncode == 2
    assert "2,000 jobs" in ended.stderr
    assert rows.count() == 2000


def test_an_output_that_cannot_hold_a_letter_shows_an_escape(shell: ServerShell) -> None:
    shell.sql("INSERT INTO qd_jobs (queue, type, payload) VALUES ('mails', 'send', '\"世界\"')")
    env = {**shell.environment(), "PYTHONIOENCODING": "latin-1"}
    ended = subprocess.run(
        shell.command("jobs", "list"), capture_output=True, text=True, env=env, cwd=shell.folder, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert "\\u4e16" in ended.stdout


def read_until(terminal: int, wanted: bytes | None) -> bytes:
    """What comes from a terminal until something is seen, or until its other side is closed."""
    shown = b""
    while wanted is None or wanted not in shown:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux's way to say that nobody has the other side open any more
            break
        if not part:
            break
        shown += part
    return shown
