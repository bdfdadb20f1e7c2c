"""`qd check` as a user runs it, on real servers: what it counts is what daemons do, what it says is documented."""

from __future__ import annotations

import json
import re
import secrets
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import mysql.connector
import pytest

from tests.acceptance.cli_shell import ServerShell
from tests.acceptance.verbs import verb
from tests.support.clocks import Clock
from tests.support.daemon import Qd
from tests.support.private import PrivateServer
from tests.support.server import PASSWORD, ROOT, Server
from tests.support.waiting import wait_for

DOCS = (ROOT / "docs" / "cli.md").read_text()
DOCUMENTED = {
    name for row in re.findall(r"^\| (`.*?`) \| ", DOCS.partition("## qd check")[2], re.MULTILINE)
    for name in re.findall(r"`([^`]+)`", row)
}  # fmt: skip
SAMPLE = re.findall(r"^    ((?:ok|warn|FAIL) .*)$", DOCS, re.MULTILINE)


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


def findings(shell: ServerShell, code: int = 0, **env: str) -> dict[str, tuple[str, str]]:
    """What --json tells: level and detail by subject, for subjects that are told once."""
    return read(
        subprocess.run(
            shell.command("check", "--json"), capture_output=True, text=True, timeout=60, cwd=shell.folder,
            env={**shell.environment(), **env},
        ),
        code,
    )  # fmt: skip


def read(ended: subprocess.CompletedProcess[str], code: int = 0) -> dict[str, tuple[str, str]]:
    assert ended.returncode == code, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    assert told["ok"] is (code == 0)
    assert {found["what"] for found in told["findings"]} <= DOCUMENTED
    return {found["what"]: (found["level"], found["detail"]) for found in told["findings"]}


def test_a_sound_installation_is_told_as_the_documentation_shows_it(shell: ServerShell) -> None:
    shown = shell.ok("check").splitlines()
    expected = [line for line in SAMPLE if not line.startswith(("ok    unit:", "ok    user:"))]
    subjects = [line.split(":")[0] for line in expected]
    assert [line.split(":")[0] for line in shown] == subjects
    for line, sample in zip(shown, expected, strict=True):
        if subject_is_free_of_this_machine(sample):
            assert line == sample


def subject_is_free_of_this_machine(line: str) -> bool:
    return any(f" {what}: " in line for what in ("isolation", "schema", "claim plan", "grants", "handlers"))


def test_the_connections_that_are_counted_are_those_that_a_daemon_opens(qd: Qd) -> None:
    qd.write(workers=[{"queues": ["default"], "threads": {"min": 1, "max": 3}}, {"name": "b", "threads": 2}])
    told = int(re.findall(r"opens (\d+) at most", read(verb(qd, "check", "--json"))["connections"][1])[0])
    assert told == 3 + 2 + 6
    qd.write(batch=4)  # so that ends wait beside a job that runs, and the returner has to write them
    for _ in range(10):
        qd.enqueue("nap", 3, seconds=0)
        qd.enqueue("nap", 1, seconds=3)
    daemon = qd.start()
    opened: list[int] = []

    def done() -> bool:
        sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = %s AND user = %s"
        opened.append(int(qd.one(sql, (qd.database, qd.user))))
        return qd.jobs() == 0

    wait_for(done, 60, "all jobs to be done")
    assert told - 1 <= max(opened) <= told, "the look at the schema has its own for a moment only"
    assert daemon.stop() == 0


def test_what_the_server_grants_too_little_of_is_told(
    tmp_path: Path, own_mariadb: Callable[..., PrivateServer]
) -> None:
    server = own_mariadb("--max-connections=12", "--max-allowed-packet=524288")
    shell = ServerShell(
        tmp_path, server, server.new_database(), workers=[{"queues": ["default", "mails"], "threads": 7}]
    )
    told = findings(shell)
    assert told["connections"][0] == told["packet"][0] == "warn"
    assert "opens 13 at most" in told["connections"][1] and "gives out 12" in told["connections"][1]


def test_another_clock_is_told_by_how_much(shell: ServerShell, tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock", server=False)
    for offset, level, said in ((0, "ok", ""), (-3600, "warn", "1h ahead of this"), (300, "warn", "5m behind this")):
        clock.set(offset)
        told = findings(shell, **clock.env)["clock"]
        assert told[0] == level and said in told[1]


@pytest.mark.parametrize(
    "secret", ["a:b p#x", "$HOME${X}", "\"'\\", "!tag *x", "0123", " yes\n", "a\nconsole: {x: 1}", "pä€"]
)
def test_an_odd_password_from_the_environment_logs_in_and_is_not_told(shell: ServerShell, secret: str) -> None:
    user = f"odd_{secrets.token_hex(4)}"
    shell.sql(f"CREATE USER {user}@'%' IDENTIFIED BY %s", secret)
    try:
        shell.sql(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {shell.name}.* TO {user}@'%'")
        text = re.sub(r"  password: .*", "  password: ${ODD}", shell.config.read_text())
        shell.config.write_text(re.sub(r"  user: .*", f"  user: {user}", text))
        told = findings(shell, ODD=secret)
        assert told["grants"][0] == "ok"
        assert not any(secret.strip() in detail for _, detail in told.values() if secret != "0123")
    finally:
        shell.sql(f"DROP USER {user}@'%'")


def test_the_slow_flavour_of_the_driver_is_told_with_its_reason(shell: ServerShell) -> None:
    (shell.folder / "_mysql_connector.py").write_text("raise ImportError('libssl.so.3: OPENSSL_3.2.0 not found')\n")
    level, detail = findings(shell)["connector"]
    assert level == "warn"
    assert "pure Python" in detail and "OPENSSL_3.2.0 not found" in detail and "pip install" in detail


def test_a_missing_right_hides_nothing_else(shell: ServerShell) -> None:
    account = shell.server.config(shell.name).user
    shell.sql(f"REVOKE INSERT ON {shell.name}.qd_jobs FROM '{account}'@'%'")
    told = findings(shell, 78)
    assert told["grants"] == ("FAIL", "missing: INSERT on qd_jobs; see docs/grants.sql")
    assert told["claim path"][0] == "FAIL"
    assert told["claim plan"][0] == told["clock"][0] == told["connections"][0] == "ok"


def test_a_binlog_that_takes_no_write_is_the_reason_that_is_told(
    tmp_path: Path, own_mariadb: Callable[..., PrivateServer]
) -> None:
    server = own_mariadb("--log-bin=log", "--server-id=1", "--binlog-format=STATEMENT")
    told = findings(ServerShell(tmp_path, server, server.new_database()), 78)
    assert told["binlog"][0] == "FAIL" and "set ROW or MIXED" in told["binlog"][1]


def test_a_server_that_takes_no_writes_is_69_as_one_that_is_away(
    tmp_path: Path, own_mariadb: Callable[..., PrivateServer]
) -> None:
    server = own_mariadb()
    shell = ServerShell(tmp_path, server, server.new_database())
    server.run("SET GLOBAL read_only = 1")
    told = findings(shell, 69)
    assert "takes no writes" in told["database"][1]
    server.stop()
    assert "out of reach" in findings(shell, 69)["database"][1]


def test_a_login_without_a_password_says_where_the_password_may_be(
    tmp_path: Path, mariadb: Server, mysql_database: str
) -> None:
    shell = ServerShell(tmp_path, mariadb, mysql_database)
    text = shell.config.read_text()
    shell.config.write_text(re.sub(r"  password: .*\n", "", text))
    level, detail = findings(shell, 78)["database"]
    assert level == "FAIL"
    assert "1045" in detail and "no password is configured" in detail and "check database.user" not in detail
    assert "A service's qd.db-password is there for root and the daemon alone" in detail


def test_no_subject_tells_the_password_or_its_hash(shell: ServerShell) -> None:
    shell.sql(f"ALTER USER '{shell.server.config(shell.name).user}'@'%' WITH MAX_QUERIES_PER_HOUR 1000000")
    try:
        for ended in (shell.qd("check"), shell.qd("check", "--json")):
            said = ended.stdout + ended.stderr
            assert "MAX_QUERIES_PER_HOUR 1000000" in said
            assert PASSWORD not in said and not re.search(r"\*[0-9A-F]{40}|\$A\$|IDENTIFIED", said)
    finally:
        shell.sql(f"ALTER USER '{shell.server.config(shell.name).user}'@'%' WITH MAX_QUERIES_PER_HOUR 0")


def test_a_server_that_has_no_connection_left_is_out_of_reach_with_what_helps(
    tmp_path: Path, own_mariadb: Callable[..., PrivateServer]
) -> None:
    server = own_mariadb("--max-connections=10")
    shell = ServerShell(tmp_path, server, server.new_database())
    with ExitStack() as others:
        with suppress(mysql.connector.Error):
            for _ in range(20):
                others.enter_context(closing(server.connect(shell.name, "shop")))
        assert "raise max_connections" in findings(shell, 69)["database"][1]


def test_nothing_is_left_behind_by_a_check(shell: ServerShell) -> None:
    before = shell.sql("SELECT COUNT(*) FROM qd_jobs"), shell.sql("SELECT COUNT(*) FROM qd_daemons")
    shell.ok("check")
    assert (shell.sql("SELECT COUNT(*) FROM qd_jobs"), shell.sql("SELECT COUNT(*) FROM qd_daemons")) == before
