"""`qd enqueue --count`: ids on stdout, progress on a terminal, and never the one drawn through the other."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import ServerShell
from tests.support.server import Server
from tests.support.waiting import wait_for

COUNT = 3000


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str, monkeypatch: pytest.MonkeyPatch) -> ServerShell:
    monkeypatch.setenv("TERM", "xterm")  # on a dumb one nothing is drawn
    return ServerShell(tmp_path, mariadb, mysql_database)


def enqueue_on_a_terminal(shell: ServerShell, *, ids_too: bool) -> tuple[str, str]:
    """What went to a file as stdout, if it did, and what a terminal was sent."""
    terminal, end = pty.openpty()
    file = shell.folder / "ids"
    with file.open("wb") as out, closing(os.fdopen(terminal, "rb", buffering=0)) as screen:
        stdout = end if ids_too else out
        process = shell.start("enqueue", "send", "--count", COUNT, stdin=subprocess.DEVNULL, stdout=stdout, stderr=end)
        os.close(end)
        shown = b""
        with suppress(OSError):  # EIO: the last to write has gone
            while part := screen.read(65536):
                shown += part
        assert process.wait(60) == 0, shown
    return file.read_text(), shown.decode()


def test_ids_go_to_a_file_and_a_bar_to_the_terminal(shell: ServerShell) -> None:
    ids, shown = enqueue_on_a_terminal(shell, ids_too=False)
    assert [(int(line),) for line in ids.split()] == shell.sql("SELECT id FROM qd_jobs ORDER BY id")
    assert shell.count() == COUNT
    assert "enqueuing" in shown and f"{COUNT}/{COUNT}" in shown
    assert not re.search(r"^\d+\r?$", shown, re.MULTILINE)


def test_ids_that_scroll_by_on_the_terminal_have_no_bar_among_them(shell: ServerShell) -> None:
    _, shown = enqueue_on_a_terminal(shell, ids_too=True)
    assert [(int(line),) for line in shown.split()] == shell.sql("SELECT id FROM qd_jobs ORDER BY id")


def test_what_was_printed_before_a_failure_is_committed_and_the_rest_is_not(shell: ServerShell) -> None:
    shell.sql(
        "CREATE TRIGGER enough BEFORE INSERT ON qd_jobs FOR EACH ROW BEGIN SET @qd_rows = COALESCE(@qd_rows, 0) + 1; "
        "IF @qd_rows > 1500 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'enough'; END IF; END"
    )
    ended = shell.qd("enqueue", "send", "--count", COUNT)
    assert ended.returncode != 0 and "enough" in ended.stderr
    assert [(int(line),) for line in ended.stdout.split()] == shell.sql("SELECT id FROM qd_jobs ORDER BY id")
    assert shell.count() == 1000
    assert ended.stderr.splitlines()[0] == "qd: 1,000 of 3,000 jobs are enqueued, whose ids were printed"


def test_one_that_is_interrupted_says_how_many_went_in(shell: ServerShell) -> None:
    file = shell.folder / "ids"
    with file.open("wb") as out:
        many = shell.start("enqueue", "send", "--count", 1_000_000, stdout=out, stderr=subprocess.PIPE)
    wait_for(lambda: file.stat().st_size > 0, 60, "the first ids")
    many.send_signal(signal.SIGINT)
    _, said = many.communicate(timeout=60)
    told = re.fullmatch(
        r"\s*qd: ([0-9,]+) of 1,000,000 jobs are enqueued, whose ids were printed; the next 1,000 may be, too\s*", said
    )
    assert many.returncode == 130 and told is not None, said
    sure = int(told[1].replace(",", ""))
    assert 0 < sure <= len(file.read_text().split()) <= shell.count() <= sure + 1000
