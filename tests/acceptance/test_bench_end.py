"""However `qd bench` ends, it clears up after itself; what it can't remove it names, and removes when told to."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.benches import LONG, QUICK, daemons, queue_of, told_first
from tests.acceptance.cli_shell import ServerShell, Shell
from tests.support.mariadb import MariaDB
from tests.support.server import Server
from tests.support.waiting import wait_for

TABLES = ("qd_jobs", "qd_failed_jobs", "qd_queues", "qd_daemons")


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


def started(shell: ServerShell) -> tuple[subprocess.Popen[str], str]:
    """A bench that is at work, and its queue."""
    bench = shell.start("bench", *LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    queue = told_first(bench)
    wait_for(lambda: shell.count() > 100, 60, "its jobs")
    assert daemons(queue)
    return bench, queue


def drained(shell: ServerShell) -> tuple[subprocess.Popen[str], str]:
    """One whose daemon has begun to work."""
    bench, queue = started(shell)
    wait_for(lambda: shell.sql("SELECT id FROM qd_daemons WHERE id NOT LIKE '%%:bench'"), 120, "its daemon at work")
    return bench, queue


def ended(bench: subprocess.Popen[str], within: float) -> tuple[str, str]:
    """What it said till its end, but for the stages that it began."""
    told, said = bench.communicate(timeout=within)
    return told, "".join(line for line in said.splitlines(True) if not line.startswith("qd: round "))


def left(shell: ServerShell) -> list[tuple[object, ...]]:
    """All rows of all tables."""
    return [row for table in TABLES for row in shell.sql(f"SELECT * FROM {table}")]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_nothing_left(shell: ServerShell, number: signal.Signals, code: int) -> None:
    bench, queue = (drained if number is signal.SIGINT else started)(shell)
    others = shell.qd("bench", "--clean", "--yes") if number is signal.SIGTERM else None
    bench.send_signal(number)
    told, said = ended(bench, 60)
    assert (bench.returncode, told) == (code, ""), said
    assert said == f"qd: ended by {number.name}\n"
    assert left(shell) == [] and daemons(queue) == []
    if others is not None:
        assert others.returncode == 0 and "left alone, as a bench is at work there" in others.stderr, others.stderr
        assert queue in others.stderr and "nothing to do" in others.stderr


def test_a_daemon_that_dies_ends_it_with_1_in_one_line_and_nothing_left(shell: ServerShell) -> None:
    bench, queue = drained(shell)
    (daemon,) = daemons(queue)
    os.kill(daemon, signal.SIGKILL)
    told, said = ended(bench, 60)
    assert (bench.returncode, told) == (1, ""), said
    assert said.startswith("qd: the bench's daemon was killed by SIGKILL: ") and said.count("\n") == 1
    assert left(shell) == [] and daemons(queue) == []


def test_a_database_that_goes_away_is_69_and_what_is_left_is_named_and_can_be_removed(
    tmp_path: Path, own_mariadb: Callable[..., MariaDB]
) -> None:
    server = own_mariadb()
    shell = ServerShell(tmp_path, server, server.new_database())
    bench, queue = drained(shell)
    server.kill()
    told, said = ended(bench, 120)
    assert (bench.returncode, told) == (69, ""), said
    assert "Traceback" not in said and said.count("\n") == 2 and daemons(queue) == []
    named, why = said.splitlines()
    assert queue_of(named) == queue and "`qd bench --clean` removes it" in named
    assert why.startswith("qd: the bench's daemon has lost the database: ")
    server.start()
    assert shell.count() > 0
    shell.sql("INSERT INTO qd_jobs (queue, type) VALUES ('mails', 'send')")
    refused = shell.qd("bench")
    assert refused.returncode == 2 and queue in refused.stderr and "`qd bench --clean`" in refused.stderr
    assert shell.qd("bench", "--clean").returncode == 2, "nobody could be asked"
    assert "rows removed from 1 queue" in shell.ok("bench", "--clean", "--yes")
    assert [row[0] for row in shell.sql("SELECT queue FROM qd_jobs")] == ["mails"]
    assert shell.sql("SELECT * FROM qd_daemons") == []


def test_its_daemons_end_with_it_also_where_it_was_killed(
    shell: ServerShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    bench, queue = drained(shell)
    bench.kill()
    bench.communicate()
    wait_for(lambda: daemons(queue) == [], 30, "the end of its daemon")
    assert list(temporary.iterdir()) == [], "a folder of theirs is left"
    (row,) = shell.sql("SELECT id FROM qd_daemons")
    assert row[0].endswith(":bench"), "its daemon has signed off"
    assert shell.sql("SELECT id FROM qd_jobs WHERE reserved_by IS NOT NULL") == [], "and handed back what it had"
    shell.ok("bench", "--clean", "--yes")
    assert left(shell) == []


def test_a_database_out_of_reach_is_69_and_one_without_tables_78_in_one_line(
    tmp_path: Path, shell: ServerShell
) -> None:
    (tmp_path / "away").mkdir()
    away = Shell(tmp_path / "away", {"host": "127.0.0.1", "port": 1, "connect_timeout": "1s"})
    shell.sql("DROP TABLE qd_jobs, qd_failed_jobs, qd_queues, qd_daemons, qd_schema")
    for where, code in ((away, 69), (shell, 78)):
        ended = where.qd("bench", "--yes")
        assert ended.returncode == code, ended.stderr
        assert ended.stderr.startswith("qd: ") and ended.stderr.count("\n") == 1


@pytest.mark.parametrize("right", ["DELETE ON {}.qd_jobs", "INSERT ON {}.qd_failed_jobs"])
def test_an_account_without_all_rights_is_refused_before_anything_is_written(shell: ServerShell, right: str) -> None:
    shell.server.run(f"REVOKE {right.format(shell.name)} FROM '{shell.server.prefix}qd'@'%'")
    try:
        ended = shell.qd("bench", *QUICK)
    finally:
        shell.server.run(f"GRANT {right.format(shell.name)} TO '{shell.server.prefix}qd'@'%'")
    assert ended.returncode == 78, ended.stderr
    what, why = ended.stderr.splitlines()
    assert "this will write" in what
    assert "missing: " + right.format("").replace(" ON .", " on ") in why and "docs/grants.sql" in why
    assert shell.sql("SELECT queue FROM qd_jobs WHERE queue LIKE 'qd.bench.%%'") == []
    assert shell.sql("SELECT id FROM qd_daemons") == []
