"""`qd status --watch` in a real terminal: it redraws, follows its size, outlasts the database, and leaves no trace."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qd.clock import monotonic
from tests.acceptance.cli_shell import ServerShell
from tests.support.private import PrivateServer
from tests.support.terminal import ENTERS, Terminal
from tests.support.waiting import wait_for

Watch = Callable[..., Terminal]


@pytest.fixture
def shell(tmp_path: Path, own_mariadb: Callable[..., PrivateServer]) -> Iterator[ServerShell]:
    """A database on a server of its own, which may be frozen and stopped."""
    server = own_mariadb()
    yield ServerShell(tmp_path, server, server.new_database())
    if server.running():
        server.thaw()


@pytest.fixture
def watch(shell: ServerShell) -> Iterator[Watch]:
    """Starts a watch in a terminal, and waits for its first picture."""
    opened: list[Terminal] = []

    def start(*options: str, shows: str = "mails", **size: int) -> Terminal:
        command = shell.command("status", "--watch", *options)
        opened.append(Terminal(command, shell.folder, shell.environment(), **size))
        opened[-1].shows(shows)
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def server_of(shell: ServerShell) -> PrivateServer:
    assert isinstance(shell.server, PrivateServer)
    return shell.server


def queue_line(frame: str, queue: str = "mails") -> list[str]:
    """The words of a queue's line."""
    return next((line.split() for line in frame.splitlines() if line.split()[:1] == [queue]), [])


def test_rows_that_come_are_drawn_in_place_and_ctrl_c_leaves_the_terminal_as_it_was(
    shell: ServerShell, watch: Watch
) -> None:
    terminal = watch()
    assert queue_line(terminal.look())[1:3] == ["0", "0"]
    shell.sql("INSERT INTO qd_jobs (queue, type) VALUES ('mails', 'send'), ('mails', 'send'), ('mials', 'send')")
    wait_for(lambda: queue_line(terminal.look())[1:2] == ["2"], 10, "the jobs to be drawn")
    wait_for(lambda: "+" in " ".join(queue_line(terminal.look())), 5, "how fast it grows")
    terminal.shows("not in the configuration")
    assert terminal.shown.count(ENTERS) == 1, "drawn on one screen"
    terminal.type(b"\x03")
    assert terminal.ends() == 130
    assert terminal.is_clean()
    assert b"Traceback" not in terminal.shown


def test_ctrl_backslash_leaves_the_terminal_as_it_was_too(watch: Watch) -> None:
    terminal = watch()
    terminal.type(b"\x1c")
    assert terminal.ends() == 131
    assert terminal.is_clean()


def test_it_follows_the_terminals_size_without_waiting_for_the_next_look(shell: ServerShell, watch: Watch) -> None:
    shell.sql("INSERT INTO qd_queues (name) VALUES " + ", ".join(f"('q{n:02}')" for n in range(60)))
    terminal = watch("--every", "10m", shows="more queues", rows=24, columns=120)
    for rows, columns in ((50, 100), (12, 60), (90, 200)):
        terminal.resize(rows, columns)
        wait_for(lambda size=(rows, columns): size_of(terminal.look()) == size, 5, f"a frame of {rows} x {columns}")
    assert "more queues" not in terminal.look(), "90 lines hold them all"


def test_it_outlasts_a_database_that_goes_away_and_says_so(shell: ServerShell, watch: Watch) -> None:
    terminal, server = watch("--every", "300ms"), server_of(shell)
    server.stop()
    frame = terminal.shows("the database is away")
    assert queue_line(frame), "what was seen last stays in sight"
    assert " old" in frame
    server.start()
    shell.sql("INSERT INTO qd_jobs (queue, type) VALUES ('mails', 'send')")
    wait_for(lambda: queue_line(terminal.look())[1:2] == ["1"], 30, "new pictures after the outage")
    assert "away" not in terminal.look()
    terminal.type(b"\x03")
    assert terminal.ends() == 130 and terminal.is_clean()


def test_a_database_that_hangs_is_told_and_keeps_ctrl_c_from_nothing(shell: ServerShell, watch: Watch) -> None:
    shell.config.write_text(shell.config.read_text().replace("statement_timeout: 5s", "statement_timeout: 30s"))
    terminal, server = watch("--every", "200ms"), server_of(shell)
    server.freeze()
    terminal.shows("the database hasn't answered for")
    pressed = monotonic()
    terminal.type(b"\x03")
    assert terminal.ends(40) == 130 and terminal.is_clean()
    assert monotonic() - pressed < 20, "it waited for the answer, which is given up after 30 s"


def test_a_database_that_comes_up_later_is_waited_for(shell: ServerShell, watch: Watch) -> None:
    server = server_of(shell)
    server.stop()
    terminal = watch("--every", "300ms", shows="the database is away")
    server.start()
    terminal.shows("mails", 30)


def test_a_wrong_password_ends_it_at_once_with_78_and_one_line(shell: ServerShell, watch: Watch) -> None:
    shell.config.write_text(shell.config.read_text().replace("password: change-me", "password: wrongsecret"))
    terminal = watch(shows="1045")
    assert terminal.ends() == 78 and terminal.is_clean()
    assert b"wrongsecret" not in terminal.shown and b"Traceback" not in terminal.shown


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(watch: Watch) -> None:
    terminal = watch("--every", "300ms")
    pid = terminal.pid()
    os.kill(pid, signal.SIGTSTP)
    wait_for(lambda: stopped(pid), 10, "it to stop")
    terminal.look()
    assert terminal.is_clean()
    seen = len(terminal.shown)
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: b"mails" in (terminal.look(), terminal.shown)[1][seen:], 10, "a picture after it went on")
    terminal.type(b"\x03")
    assert terminal.ends() == 130 and terminal.is_clean()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_other_signals_leave_the_terminal_clean_too(watch: Watch, number: signal.Signals, code: int) -> None:
    terminal = watch("--every", "5m")
    os.kill(terminal.pid(), number)
    assert terminal.ends() == code
    assert terminal.is_clean()


def test_names_that_no_check_let_through_cannot_drive_the_terminal(shell: ServerShell, watch: Watch) -> None:
    shell.sql("ALTER TABLE qd_jobs DROP CONSTRAINT qd_jobs_queue_check")
    shell.sql("INSERT INTO qd_jobs (queue, type) VALUES (%s, 'send')", "q\x1b]0;owned\x07\x1b[?1049l")
    terminal = watch(shows="q\\x1b]0;owned\\x07\\x1b[?1049l")
    assert b"\x1b]0;" not in terminal.shown and b"\x07" not in terminal.shown
    terminal.type(b"\x03")
    assert terminal.ends() == 130 and terminal.is_clean()


def test_into_a_pipe_go_pictures_one_below_the_other_until_the_reader_goes(shell: ServerShell) -> None:
    watching = shell.start("status", "--watch", "--every", "200ms", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert watching.stdout is not None and watching.stderr is not None
    lines = [watching.stdout.readline() for _ in range(30)]
    watching.stdout.close()
    assert watching.wait(20) == 141
    assert sum(line.startswith("QUEUE ") for line in lines) >= 3
    assert "\x1b" not in "".join(lines) and watching.stderr.read() == ""


def test_ctrl_z_stops_it_in_a_pipe_too_and_fg_lets_it_go_on(shell: ServerShell) -> None:
    command = ("status", "--watch", "--every", "200ms")
    watching = shell.start(*command, stdout=subprocess.PIPE, preexec_fn=os.setpgrp)  # as a shell does it
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline()
        os.kill(watching.pid, signal.SIGTSTP)
        wait_for(lambda: stopped(watching.pid), 10, "it to stop")
        os.kill(watching.pid, signal.SIGCONT)
        assert sum(watching.stdout.readline().startswith("QUEUE ") for _ in range(30)) >= 2, "it went on"
    finally:
        watching.kill()
        watching.communicate(timeout=10)


def size_of(frame: str) -> tuple[int, int]:
    """Lines of a frame, and how long the first one is."""
    lines = frame.split("\r\n")
    return len(lines), len(lines[0])


def stopped(pid: int) -> bool:
    """Whether a process is stopped, as by Ctrl-Z."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
