"""The real command: from `qd migrate` over `qd enqueue` to `qd work` and the dead letters."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.cli_shell import ServerShell, Shell
from tests.support.mariadb import MariaDB
from tests.support.server import Server


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


def test_once_max_and_drain_run_as_many_jobs_as_they_say(shell: ServerShell) -> None:
    ids = [int(line) for line in shell.ok("enqueue", "send", "--count", 10).split()]
    assert len(set(ids)) == 10
    for args, left in [(["--once"], 9), (["--max", 2], 7), (["--drain"], 0), (["--once"], 0), (["--drain"], 0)]:
        shell.ok("work", "--queue", "default", *args)
        assert shell.count() == left
    assert shell.sql("SELECT COUNT(*) FROM qd_jobs WHERE attempts <> 0 OR reserved_by IS NOT NULL") == [(0,)]


@pytest.mark.parametrize(("args", "left"), [("--drain", 0), ("--once", 1)])
def test_any_number_of_jobs_without_attempts_left_may_be_ahead(shell: ServerShell, args: str, left: int) -> None:
    shell.ok("enqueue", "send", "--count", 450)
    shell.sql("UPDATE qd_jobs SET attempts = 3 WHERE type = 'send'")
    shell.ok("enqueue", "send", "--count", 2)
    shell.ok("work", "--queue", "default", args)
    assert shell.count() == left
    assert shell.sql("SELECT COUNT(*) FROM qd_failed_jobs") == [(450,)]


def test_fail_makes_a_failed_attempt_exit_1_and_nothing_else_does(shell: ServerShell) -> None:
    shell.ok("enqueue", "boom")
    shell.ok("work", "--queue", "default", "--once")
    shell.sql("UPDATE qd_jobs SET available_at = NOW(6) WHERE type = 'boom'")
    assert shell.qd("work", "--queue", "default", "--once", "--fail").returncode == 1
    shell.ok("work", "--queue", "default", "--once", "--fail")
    assert shell.sql("SELECT attempts FROM qd_jobs WHERE type = 'boom'") == [(2,)]


def test_a_payload_arrives_byte_for_byte_with_all_that_was_asked(shell: ServerShell) -> None:
    payload = '{"a": 1.0, "b": "\\u00e9",  "a": 2}'
    job_id = int(
        shell.ok(
            "enqueue", "send", payload, "--queue", "mails", "--priority", "high", "--delay", "1h", "--max-attempts", 7
        )
    )
    columns = "payload, priority, queue, max_attempts, available_at > NOW(6) + INTERVAL 59 MINUTE"
    assert shell.sql(f"SELECT {columns} FROM qd_jobs WHERE id = %s", job_id) == [(payload, 1, "mails", 7, 1)]
    from_stdin = int(shell.ok("enqueue", "send", "-", input=payload))
    assert shell.sql("SELECT payload FROM qd_jobs WHERE id = %s", from_stdin) == [(payload,)]


def test_a_time_with_a_zone_is_kept_in_any_zone_of_this_process(shell: ServerShell) -> None:
    one = int(shell.ok("enqueue", "send", "--at", "2037-06-01T12:00:00+02:00"))
    many = [
        int(line) for line in shell.ok("enqueue", "send", "--at", "2037-06-01T12:00:00+02:00", "--count", 2).split()
    ]
    due = "ABS(UNIX_TIMESTAMP(available_at) - 2127463200)"
    assert shell.sql(f"SELECT {due} FROM qd_jobs WHERE id = %s", one) == [(0,)]
    for job_id in many:
        assert shell.sql(f"SELECT {due} < 5 FROM qd_jobs WHERE id = %s", job_id) == [(1,)]


def test_a_unique_key_gives_one_job_and_its_id_twice(shell: ServerShell) -> None:
    assert len({shell.ok("enqueue", "send", "--unique", "k") for _ in range(2)}) == 1
    assert shell.count() == 1


def test_a_payload_over_the_servers_limit_is_refused_with_both_sizes(
    tmp_path: Path, own_mariadb: Callable[..., MariaDB]
) -> None:
    server = own_mariadb("--max-allowed-packet=1M")
    shell = ServerShell(tmp_path, server, server.new_database())
    (tmp_path / "big.json").write_text('"' + "x" * 5_000_000 + '"')
    ended = shell.qd("enqueue", "send", "@big.json")
    assert ended.returncode == 1
    assert "5000002" in ended.stderr
    assert "1048576" in ended.stderr
    assert shell.count() == 0


def test_a_dead_letter_is_shown_and_retried_with_its_history(shell: ServerShell) -> None:
    job_id = int(shell.ok("enqueue", "boom", '{"n": 1.0}', "--max-attempts", 1))
    shell.ok("work", "--drain")
    assert "RuntimeError: boom" in shell.ok("failed", "show", job_id)
    assert int(shell.ok("failed", "retry", job_id)) == job_id
    assert shell.sql("SELECT attempts, payload FROM qd_jobs WHERE id = %s", job_id) == [(0, '{"n": 1.0}')]
    shell.ok("work", "--drain")
    shown = json.loads(shell.ok("failed", "show", job_id, "--json"))
    assert [entry["outcome"] for entry in shown["history"]] == ["failed", "failed"]


def test_retrying_all_ends_although_the_jobs_fail_at_once(shell: ServerShell) -> None:
    shell.ok("enqueue", "boom", "--max-attempts", 1, "--count", 50)
    shell.ok("work", "--drain")
    worker = shell.start("work", "--queue", "default")
    try:
        assert "retried 50 dead letters" in shell.ok("failed", "retry", "--all", "--yes")
    finally:
        worker.terminate()
        worker.wait(30)
    total = shell.count() + shell.sql("SELECT COUNT(*) FROM qd_failed_jobs")[0][0]
    assert total == 50


def test_check_passes_with_the_documented_grants(shell: ServerShell) -> None:
    shown = shell.ok("check")
    assert "FAIL" not in shown
    for what in ("isolation: READ COMMITTED", "claim plan: a range of qd_jobs_claim", "grants: all that qd needs"):
        assert f"ok    {what}" in shown


def test_status_counts_twelve_thousand_jobs(shell: ServerShell) -> None:
    shell.ok("enqueue", "send", "--queue", "mails", "--count", 12_000)
    queues = {queue["queue"]: queue for queue in json.loads(shell.ok("status", "--json"))["queues"]}
    assert queues["mails"]["ready"] == 12_000


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_worker_whose_handlers_never_load_can_be_ended(tmp_path: Path, number: int, status: int) -> None:
    shell = Shell(tmp_path, {"driver": "sqlite", "path": "qd.sqlite3"})
    (tmp_path / "shell_handlers.py").write_text(
        "import time\nprint('imports', flush=True)\nwhile True:\n    time.sleep(0.05)\n"
    )
    with shell.start("work", "--once", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as worker:
        try:
            assert worker.stdout is not None and worker.stdout.readline() == "imports\n"
            worker.send_signal(number)
            assert worker.wait(20) == status
        finally:
            worker.kill()
