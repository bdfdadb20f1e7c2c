"""The first contact with the database: what passes is waited for, what a person must mend ends the start with 78."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import mysql.connector
import pytest

from tests.support.answering import AnsweringProxy, Talk
from tests.support.daemon import Daemon, Qd
from tests.support.mariadb import MariaDB
from tests.support.waiting import wait_for


def told_once(daemon: Daemon) -> str:
    """Ends with 78 before READY, and says why in exactly one line of complaint."""
    assert daemon.wait_exit(20) == 78, daemon.said()
    assert not daemon.notify.times("READY=1")
    complaints = [line for line in daemon.said().splitlines() if "level=warn" in line or "level=error" in line]
    assert len(complaints) == 1, complaints
    assert "event=daemon.failed " in complaints[0] and "Traceback" not in daemon.said()
    return complaints[0]


def _wrong_password(qd: Qd) -> None:
    qd.write(database={"password": "a-wrong-secret"})


def _no_such_database(qd: Qd) -> None:
    qd.write(database={"name": "qd_is_not_there"})
    qd.server.run(f"GRANT SELECT ON qd_is_not_there.* TO '{qd.user}'@'%'")


def _no_right_to_the_database(qd: Qd) -> None:
    qd.write(database={"name": "mysql"})


def _a_lost_table(qd: Qd) -> None:
    qd.sql("DROP TABLE qd_failed_jobs")


def _a_lost_column(qd: Qd) -> None:
    qd.sql("ALTER TABLE qd_jobs DROP COLUMN crashes")


def _tls_without_its_authority(qd: Qd) -> None:
    qd.write(database={"tls": {"mode": "verify_ca", "ca": str(qd.folder / "none.pem")}})


def _a_password_pipe_that_nobody_writes(qd: Qd) -> None:
    os.mkfifo(qd.folder / "pipe", 0o600)
    del qd.config["database"]["password"]
    qd.write(database={"password_file": str(qd.folder / "pipe")})


WRONG: dict[str, tuple[Callable[[Qd], None], str]] = {
    "a wrong password": (_wrong_password, "errno 1045"),
    "a database that is not there": (_no_such_database, "errno 1049"),
    "a database without a right to it": (_no_right_to_the_database, "errno 1044"),
    "a lost table": (_a_lost_table, "qd_failed_jobs"),
    "a lost column": (_a_lost_column, "qd_jobs has no column crashes"),
    "TLS without its authority": (_tls_without_its_authority, "none.pem"),
    "a password pipe that nobody writes": (_a_password_pipe_that_nobody_writes, "is no regular file"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_a_person_must_mend_ends_the_start_with_78_and_one_line(qd: Qd, what: str) -> None:
    breaks, words = WRONG[what]
    breaks(qd)
    daemon = qd.start(ready=False)
    assert words in told_once(daemon)
    assert "a-wrong-secret" not in daemon.said()


@contextmanager
def connections_taken(server: MariaDB) -> Iterator[None]:
    """No connection is left for a plain user."""
    held = []
    with suppress(mysql.connector.Error):
        while True:
            held.append(server.connect(user="qd"))
    try:
        yield
    finally:
        for one in held:
            one.close()


def works_soon(qd: Qd) -> None:
    (job,) = qd.enqueue("nap", seconds=0)
    wait_for(lambda: qd.ran("end", job), 20, "a job to run once the server is there")


def test_a_server_without_a_connection_to_spare_is_waited_for(
    folder: Path, own_mariadb: Callable[..., MariaDB]
) -> None:
    server = own_mariadb("--max-connections=30")
    qd = Qd(folder, server, server.new_database())
    try:
        with connections_taken(server):
            daemon = qd.start()
            assert daemon.notify.with_line("READY=1") == ["READY=1\nSTATUS=waiting for database"]
            assert daemon.get("/readyz")[0] == 503 and daemon.get("/livez")[0] == 200
        (line,) = daemon.lines("database.lost")
        assert "1040" in line and "max_connections" in line
        wait_for(lambda: daemon.get("/readyz")[0] == 200, 45, "a connection: every try comes later than the one before")
        works_soon(qd)
        assert len(daemon.lines("database.lost")) == len(daemon.lines("database.restored")) == 1
        assert daemon.stop() == 0
    finally:
        qd.end()


@pytest.mark.parametrize("errno", [1053, 1203, 1047, 1040, 2013])
def test_an_error_that_passes_never_ends_the_start(qd: Qd, errno: int) -> None:
    """A server that shuts down, a user with too many connections, a node that isn't in its cluster."""
    passing = threading.Event()

    def refusal(talk: Talk, statement: bytes) -> int | None:
        return None if passing.is_set() else errno

    with closing(AnsweringProxy(int(qd.server.port), refusal)) as proxy:
        qd.write(database={"port": proxy.port, "tls": {"mode": "disabled"}})
        daemon = qd.start()
        assert daemon.notify.with_line("READY=1") == ["READY=1\nSTATUS=waiting for database"]
        assert len(daemon.lines("database.lost")) == 1
        passing.set()
        wait_for(lambda: daemon.get("/readyz")[0] == 200, 30, "/readyz")
        works_soon(qd)
        assert len(daemon.lines("database.lost")) == len(daemon.lines("database.restored")) == 1
        assert daemon.stop() == 0
