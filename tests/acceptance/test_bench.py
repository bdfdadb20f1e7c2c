"""`qd bench` on real databases: what it tells, what it leaves, and whom it disturbs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.benches import (
    QUICK,
    command_of,
    descendants,
    documented,
    environment_of,
    in_folder,
    keys,
    told_first,
)
from tests.acceptance.cli_shell import ServerShell, Shell, section
from tests.support.daemon import Qd
from tests.support.server import PASSWORD, Server
from tests.support.waiting import wait_for

TABLES = ("qd_jobs", "qd_failed_jobs", "qd_queues", "qd_daemons")


@pytest.fixture
def shell(tmp_path: Path, mariadb: Server, mysql_database: str) -> ServerShell:
    """A fresh database on the shared server."""
    return ServerShell(tmp_path, mariadb, mysql_database)


@pytest.fixture
def sqlite(tmp_path: Path) -> Shell:
    """A fresh SQLite file."""
    shell = Shell(tmp_path, {"driver": "sqlite", "path": str(tmp_path / "qd.sqlite3")})
    shell.ok("migrate")
    return shell


def test_its_json_has_the_documented_keys_and_it_leaves_no_row_on_a_server(shell: ServerShell) -> None:
    told = shell.qd("bench", "--jobs", 60, "--rounds", 1, "--pickups", 1, "--daemons", 2, "--json", "--yes")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert keys(found) == keys(documented())
    assert found["drain"]["jobs"] == 60 and found["conditions"]["daemons"] == 2
    assert found["pickup"]["insert"]["jobs"] == 1 and found["memory"]["daemon_peak_bytes"] > 1 << 20
    assert found["per_job"]["statements"] > found["per_job"]["commits"] > 0 < found["per_job"]["claims"]
    assert found["rows_read"]["claim_backlog"]["claimed"] == 100 == found["rows_read"]["claim_backlog"]["asked"]
    assert found["rows_read"]["claim_nearly_empty"]["claimed"] == 1
    assert [shell.sql(f"SELECT * FROM {table}") for table in TABLES] == [[], [], [], []]


def test_on_sqlite_it_says_why_a_figure_is_missing_and_leaves_no_row(sqlite: Shell) -> None:
    (sqlite.folder / "shell_handlers.py").write_text("open('imported', 'w')")
    ended = sqlite.qd("bench", *QUICK, "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    missing = {
        name for name in keys(documented()) if name.startswith(("rows_read.", "pickup.", "conditions.settings."))
    }
    assert keys(found) - {"conditions.settings.journal_mode", "conditions.settings.synchronous"} == (
        keys(documented()) - missing
    )
    assert found["rows_read"] is None and "SQLite" in found["rows_read_missing"]
    status = json.loads(sqlite.ok("status", "--json"))
    assert status["daemons"] == [] and {queue["queue"] for queue in status["queues"]} == {"default", "mails"}
    assert sqlite.qd("bench", "--clean", "--yes").stderr.startswith("nothing to do")
    assert not (sqlite.folder / "imported").exists(), "handlers of the configuration aren't imported"


def test_for_people_it_says_what_it_will_do_what_came_out_and_under_which_conditions(sqlite: Shell) -> None:
    ended = sqlite.qd("bench", *QUICK, "--rounds", 2, "--threads", 2, "--batch", 5)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.startswith("qd: this will write 1,160 rows at most into queue qd.bench.")
    stages = ended.stderr.splitlines()[1:]
    assert stages == [f"qd: round {number} of 2: 60 jobs" for number in (1, 2)], "for who follows a file"
    for word in (
        "enqueue, one by one", "enqueue, in bulk", "drain", "start-up not included", "claims per job", "peak memory",
        "2 threads, executor thread, batch 5", "; rounds ", "the code of `qd run`", "synchronous=", "load before",
        "empty",
    ):  # fmt: skip
        assert word in ended.stdout


@pytest.fixture
def ear() -> Iterator[tuple[Path, socket.socket]]:
    """A runtime directory with the socket of a daemon that is there already."""
    with tempfile.TemporaryDirectory(prefix="qd-t-") as folder, closing(socket.socket(socket.AF_UNIX, 2)) as ear:
        ear.setblocking(False)
        ear.bind(f"{folder}/wake-1-0.sock")
        yield Path(folder), ear


def test_beside_a_daemon_it_disturbs_nobody_and_shows_no_secret(qd: Qd, ear: tuple[Path, socket.socket]) -> None:
    folder, heard = ear
    qd.write(database={"password": "${SHOP_DB_PW}"})
    (qd.folder / "shell").mkdir()
    daemon = qd.start(SHOP_DB_PW=PASSWORD, QD_RUNTIME_DIR=str(folder))
    login = section(qd.server.config(qd.database))
    shell = Shell(qd.folder / "shell", {**login, "password": "${SHOP_DB_PW}"})
    environment = {**shell.environment(), "SHOP_DB_PW": PASSWORD, "QD_RUNTIME_DIR": str(folder), "TMPDIR": str(folder)}
    bench = subprocess.Popen(
        shell.command("bench", "--jobs", 300, "--rounds", 1, "--pickups", 0, "--executor", "process", "--yes"),
        text=True, cwd=qd.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    queue = told_first(bench)
    own_command, seen = command_of(bench.pid), set[str]()

    def look() -> bool:
        for pid in descendants(bench.pid):
            command = command_of(pid)
            if command != own_command:  # else it is a copy of the bench that becomes another program in a moment
                seen.update((command, environment_of(pid)))
        seen.update((own_command, in_folder(folder)))
        return bench.poll() is not None

    (own,) = qd.enqueue("nap", seconds=0)
    wait_for(look, 60, "the bench's end")
    told, said = bench.communicate()
    assert bench.returncode == 0, said
    assert any(queue in text for text in seen), "its daemons were never seen"
    assert [text for text in [*seen, told, said] if PASSWORD in text] == []
    with pytest.raises(BlockingIOError):
        raise AssertionError(f"another daemon was woken: {heard.recv(4096)!r}")
    assert [name for name in os.listdir(folder) if name.startswith("qd-bench")] == []
    wait_for(lambda: qd.ran("end", own), 20, "its own job")
    assert daemon.metric('qd_jobs_claimed_total{queue="default"}') == 1
    assert daemon.metric('qd_jobs_claimed_total{queue="_other"}') == 0
    assert "level=warning" not in daemon.said() and "level=error" not in daemon.said()
    assert queue not in daemon.get("/metrics")[1]
    assert daemon.stop() == 0
